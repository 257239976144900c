"""What stands below a graph, or on one of a single row: round times, and marks of what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import groupby

from rich.cells import cell_len

from zconsole.timeline.frame import DONE, Frame
from zconsole.timeline.scan_rate import Mark
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Span
from zconsole.units import date_of

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
    there = date_of(end, zone)
    offset = (there if zone is not None else there.astimezone()).utcoffset()
    ahead = offset.total_seconds() if offset is not None else 0.0  # of UTC
    t = begin + ahead
    t += -t % step
    while t < end + ahead:
        yield t - ahead
        t += step


_MOST = 40
"""Columns of what is said of a mark."""
_BESIDE = 5.0
"""Seconds by which a command and the change it made may lie apart."""

_AWAY = 3
"""Columns between a round time and other words."""


def happened(marks: Sequence[Mark], frame: Frame, step: float) -> list[Mark]:
    """What happened to the scan and what was done from consoles, oldest first.

    What a command changed is not told beside the command. ``step``: seconds of a scan's steps.
    """
    done = [Mark(event.t, event.text) for event in frame.events if event.name == DONE]
    beside = max(_BESIDE, 2 * step)
    seen = [m for m in marks if all(abs(m.t - each.t) > beside for each in done)]
    return sorted((*seen, *done))


def name_marks(line: TimeAxis, marks: Sequence[tuple[int, Mark]], look: DisplayFormat) -> None:
    """Say at their columns what the marks are, the newest first."""
    for at, mark in reversed(marks):
        said = look.cut(mark.text, _MOST)
        line.name(at, f"{said} {look.clock(mark.t)}")


def name_times(
    line: TimeAxis, begin: float, end: float, first: int, width: int, look: DisplayFormat
) -> None:
    """Write round times where there is room; ``begin`` is at the column ``first``."""
    columns, ends = width - first, {look.when(begin, end), look.when(end, end)}
    for t in round_times(begin, end, columns, look.zone):
        if look.when(t, end) in ends:
            continue  # it would stand there twice
        said = look.when(t, end).removesuffix(" 00:00")
        at = first + int((t - begin) / (end - begin) * columns)
        line.put(at, said if look.clock(t) == "00:00" else look.clock(t), away=_AWAY)
