"""What libzfs, JSON and text said of live pools, kept from real releases, is the same."""

from __future__ import annotations

import pytest

from tests.vm.kept import Kept, kept

STATES = [pytest.param(each, id=f"{each.release}-{each.state.name}") for each in kept()]


@pytest.mark.parametrize("state", STATES)
def test_every_source_tells_the_same(state: Kept) -> None:
    state.check()
