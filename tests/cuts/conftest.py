"""Fixtures that isolate every crash on the model filesystem from this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cuts.machine import isolated


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield
