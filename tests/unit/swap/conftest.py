"""Fixture with the shelf on which every swap is played."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import Play


@pytest.fixture
def play() -> Play:
    return Play()
