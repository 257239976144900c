"""Time axis of a graph: round times and marks of events, below the graph or on it."""

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
"""Seconds between two round times."""
_APART = 16
"""Least columns between two round times."""


class TimeAxis:
    """A line on which texts and marks are placed, if there is still room for them."""

    def __init__(self, ground: str, mark: str, role: str = "dim") -> None:
        """``ground`` is the line without anything placed on it."""
        self._cells = [*ground]
        self._roles = [role] * len(ground)
        self._taken = [False] * len(ground)
        self._mark = mark

    def mark(self, *columns: int) -> None:
        """Mark these columns."""
        for at in columns:
            self._cells[at], self._roles[at], self._taken[at] = self._mark, "notice", True

    def name(self, at: int, text: str) -> None:
        """Place the label of a mark at its right, else at its left, if there is room."""
        if not self.put(at + 2, text, "notice"):
            self.put(at - 1 - cell_len(text), text, "notice")

    def put(self, at: int, text: str, role: str = "dim", away: int = 1) -> bool:
        """Place a text at a column with a space on each side; return whether there was room.

        ``away`` is the least number of columns to earlier texts.
        """
        end = at + cell_len(text)
        begin, after = max(0, at - 1), min(len(self._cells), end + 1)
        if (
            at < 0
            or end > len(self._cells)
            or any(self._taken[max(0, at - away) : end + away])
            # Cells hold one character: texts with wide ones find no room.
            or end - at > len(text)
        ):
            return False
        self._cells[begin:after] = [" "] * (after - begin)
        self._taken[begin:after] = [True] * (after - begin)
        self._cells[at:end], self._roles[at:end] = text, [role] * (end - at)
        return True

    def spans(self) -> Iterator[Span]:
        """Yield the line as spans with their roles."""
        at = 0
        for role, cells in groupby(self._roles):
            length = len(list(cells))
            yield Span("".join(self._cells[at : at + length]), role)
            at += length


def round_times(begin: float, end: float, width: int, zone: tzinfo | None) -> Iterator[float]:
    """Yield round times between two epoch seconds, as many as fit ``width`` columns."""
    least = (end - begin) * _APART / max(1, width)
    step = next((each for each in _STEPS if each >= least), None)
    if step is None:
        return
    there = date_of(end, zone)
    offset = (there if zone is not None else there.astimezone()).utcoffset()
    ahead = offset.total_seconds() if offset is not None else 0.0  # offset from UTC
    t = begin + ahead
    # Up to the next multiple of a step, in local time.
    t += -t % step
    while t < end + ahead:
        yield t - ahead
        t += step


_MOST = 40
"""Most columns of the label of a mark."""
_BESIDE = 5.0
"""Seconds within which a change is taken for the effect of a command."""

_AWAY = 3
"""Least columns between a round time and other texts."""


def happened(marks: Sequence[Mark], frame: Frame, step: float) -> list[Mark]:
    """Return events of the scan and commands of consoles, oldest first.

    Events that are the effect of a command are left out. ``step``: seconds of a step of the scan.
    """
    done = [Mark(event.t, event.text) for event in frame.events if event.name == DONE]
    beside = max(_BESIDE, 2 * step)
    seen = [m for m in marks if all(abs(m.t - each.t) > beside for each in done)]
    return sorted((*seen, *done))


def name_marks(line: TimeAxis, marks: Sequence[tuple[int, Mark]], look: DisplayFormat) -> None:
    """Label the marks at their columns, the newest first."""
    for at, mark in reversed(marks):
        said = look.cut(mark.text, _MOST)
        line.name(at, f"{said} {look.clock(mark.t)}")


def name_times(
    line: TimeAxis, begin: float, end: float, first: int, width: int, look: DisplayFormat
) -> None:
    """Place round times where there is room; ``begin`` is at the column ``first``."""
    columns, ends = width - first, {look.when(begin, end), look.when(end, end)}
    for t in round_times(begin, end, columns, look.zone):
        if look.when(t, end) in ends:
            continue  # it would be there twice
        said = look.when(t, end).removesuffix(" 00:00")
        at = first + int((t - begin) / (end - begin) * columns)
        line.put(at, said if look.clock(t) == "00:00" else look.clock(t), away=_AWAY)
