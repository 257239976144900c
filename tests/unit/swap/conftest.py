"""The shelf that every swap is played on."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import Play


@pytest.fixture
def play() -> Play:
    return Play()
