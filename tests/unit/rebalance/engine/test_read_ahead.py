from __future__ import annotations

import errno

import pytest

from zconsole.rebalance.engine import read_ahead
from zconsole.rebalance.engine.content import WINDOW
from zconsole.rebalance.engine.directories import MovedError
from zconsole.rebalance.engine.read_ahead import ReadAhead


class Asked:
    """Files by number, all of one size; a filesystem that refuses each request."""

    def __init__(self, files: int, size: int) -> None:
        self.asked: list[tuple[int, int]] = []
        self.front = ReadAhead(iter(range(files)), lambda number: size, self._ask)

    def _ask(self, number: int, count: int) -> None:
        self.asked.append((number, count))
        raise MovedError if number % 2 else OSError(errno.EINVAL, "no advice here")

    def after(self, steps: int) -> list[int]:
        """Return how many files have been requested when each is due."""
        found = []
        for _ in range(steps):
            self.front.step()
            found.append(len(self.asked))
        return found


def test_asks_for_those_that_follow_and_for_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD_FILES", 3)
    files = Asked(6, 10)
    assert files.after(8) == [3, 4, 5, 6, 6, 6, 6, 6]
    assert files.asked == [(number, 10) for number in range(6)]


def test_asks_for_the_first_window_of_large_files_and_for_few_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD_BYTES", 2 * WINDOW)
    files = Asked(4, 5 * WINDOW)
    assert files.after(2) == [2, 3]
    assert files.asked == [(number, WINDOW) for number in range(3)]


def test_asks_for_nothing_of_files_without_content() -> None:
    assert Asked(5, 0).after(5) == [0] * 5
