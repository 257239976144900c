"""What stands below a graph, or on one of a single row: words and marks at moments in time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from itertools import groupby

from rich.cells import cell_len

from zconsole.output.text import date_of
from zconsole.ui.widgets.draw import Span

_HOUR, _DAY = 3600, 86400
_STEPS = (
    *(60 * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7)),
)
"""Seconds between two moments that people call round."""
_APART = 16
"""Columns between two round moments, at the least."""


class TimeAxis:
    """A line on which words and marks find room, first come, first served."""

    def __init__(self, ground: str, mark: str, role: str = "dim") -> None:
        """``ground``: what the line shows where nothing is put on it."""
        self._cells = [*ground]
        self._roles = [role] * len(ground)
        self._taken = [False] * len(ground)
        self._mark = mark

    def mark(self, *columns: int) -> None:
        """Mark these columns."""
        for at in columns:
            self._cells[at], self._roles[at], self._taken[at] = self._mark, "notice", True

    def name(self, at: int, text: str) -> None:
        """Say what a mark is, at its right or else its left, where there is room."""
        if not self.put(at + 2, text, "notice"):
            self.put(at - 1 - cell_len(text), text, "notice")

    def put(self, at: int, text: str, role: str = "dim", away: int = 1) -> bool:
        """Write a text at a column, with a space on each side; whether there is room.

        It stays ``away`` columns from what was put before.
        """
        end = at + cell_len(text)
        begin, after = max(0, at - 1), min(len(self._cells), end + 1)
        if (
            at < 0
            or end > len(self._cells)
            or any(self._taken[max(0, at - away) : end + away])
            or end - at > len(text)
        ):
            return False
        self._cells[begin:after] = [" "] * (after - begin)
        self._taken[begin:after] = [True] * (after - begin)
        self._cells[at:end], self._roles[at:end] = text, [role] * (end - at)
        return True

    def spans(self) -> Iterator[Span]:
        """The line in its roles."""
        at = 0
        for role, cells in groupby(self._roles):
            length = len(list(cells))
            yield Span("".join(self._cells[at : at + length]), role)
            at += length


def round_times(begin: float, end: float, width: int, zone: tzinfo | None) -> Iterator[float]:
    """The round moments between two epoch seconds, as many as ``width`` columns have room for."""
    least = (end - begin) * _APART / max(1, width)
    step = next((each for each in _STEPS if each >= least), None)
    if step is None:
        return
    ahead = _ahead_of_utc(end, zone)
    t = begin + ahead
    t += -t % step
    while t < end + ahead:
        yield t - ahead
        t += step


def _ahead_of_utc(t: float, zone: tzinfo | None) -> float:
    """Seconds by which the clock of the zone is ahead of UTC."""
    there = date_of(t, zone)
    offset = (there if zone is not None else there.astimezone()).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0
