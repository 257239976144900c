"""Graph of a scan's rate since its start, with scale, and the time axis with marks of events.

The graph shows the newest steps that fit, or those up to a moment that was scrolled back to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.timeline.frame import DONE, Frame, ScanView
from zconsole.timeline.scan_rate import Mark, PastRates
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Ink
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.graph import graph_lines, graph_values, scale
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
    """Label the marks at their right, else at their left, if there is room; the newest first."""
    for at, mark in reversed(marks):
        said = f"{look.cut(mark.text, _MOST)} {look.clock(mark.t)}"
        if not line.put(at + 2, said, "notice"):
            line.put(at - 1 - cell_len(said), said, "notice")


_LABEL = 11
_SPAN = 16
"""Columns of the time span beside a graph of one row."""
_SCALE = "scale "
"""Label before the rate at the top of a graph of one row."""


class ShownSteps(NamedTuple):
    """The steps of a scan's past that are shown."""

    rates: tuple[float | None, ...]
    begin: float
    """Start and end in epoch seconds."""
    end: float
    is_now: bool
    """Whether it ends with the newest sample."""


def shown_steps(past: PastRates, most: int, until: float | None = None) -> ShownSteps:
    """Return at most ``most`` steps up to ``until`` (epoch seconds), or the newest without it."""
    last = len(past.rates)
    if until is not None:
        last = min(last, max(min(most, last), math.ceil((until - past.begin) / past.step)))
    first = max(0, last - most)
    begin, end = (past.begin + n * past.step for n in (first, last))
    return ShownSteps(past.rates[first:last], begin, end, last == len(past.rates))


def graph_width(width: int, rows: int, number: int) -> int:
    """Return the columns of the graph itself in a pane of ``width`` columns."""
    beside = _LABEL + 3 if rows > 1 else _LABEL + len(_SCALE) + number + len("/s") + _SPAN + 2
    return max(8, width - beside)


def rate_lines(view: ScanView, ink: Ink, rows: int, until: float | None) -> list[Line]:
    """Return the graph in ``rows`` lines; with several, plus one for the time axis."""
    look = ink.look
    width = graph_width(ink.width, rows, look.number)
    shown = shown_steps(view.past, graph_values(width, rows, look.glyphs), until)
    # If the pool does not answer, or the scan is over, the newest step is not "now".
    going = view.scan.active and not ink.frame.problem
    top = scale(shown.rates)
    said = look.rate(top) if any(shown.rates) else ""
    drawn = graph_lines(shown.rates, width, rows, top, look.glyphs)
    # Events in the time shown, with their columns in the graph.
    cell = view.past.step * graph_values(1, rows, look.glyphs)
    marks = [
        (max(0, width - 1 - int((shown.end - mark.t) / cell)), mark)
        for mark in happened(view.past.marks, ink.frame, view.past.step)
        if shown.begin <= mark.t <= shown.end
    ]
    if rows > 1:
        labels, scaled = {0: said, 1: "rate"}, []
        for row, text in enumerate(drawn):  # with the scale before each row
            label = f"{labels.get(row, ''):>{_LABEL}} {look.glyphs.axis[min(row, 1)]}"
            scaled.append((Span(label, "dim"), Span(text, "spark")))
        return [*scaled, _axis(shown, marks, width, rows, ink, going)]
    named = f"{_SCALE}{said}" if said else ""  # without its label it would be read as the rate
    size = f" {named:<{len(_SCALE) + look.number + 2}} "
    span = f"{_span(shown, ink, going):>{_SPAN - 1}} "
    head = Span(f" {'rate':<{_LABEL - 1}}", "dim")
    line = TimeAxis(drawn[0], look.glyphs.mark, "spark")
    line.mark(*(at for at, _ in marks))
    return [(head, *line.spans(), Span(f"{size}{span[:_SPAN]}", "dim"))]


def _span(shown: ShownSteps, ink: Ink, going: bool) -> str:
    """Return ``last 47m28s``, or ``3h10m-2h23m ago`` if scrolled back.

    For a scan that is over: ``22:19-23:07``.
    """
    if not shown.rates:
        return ""
    if shown.is_now:
        length = units.duration(shown.end - shown.begin)
        begin, end = map(ink.look.clock, (shown.begin, shown.end))
        if going:
            return f"last {length}"
        if shown.end - shown.begin >= _DAY:  # the clock alone would not tell the days
            return f"{length} to {end}"
        return f"{begin}-{end}" if begin != end else f"{length} until {end}"
    begin, end = (units.duration(max(0.0, ink.frame.t - t)) for t in (shown.begin, shown.end))
    whole = f"{begin}-{end} ago"
    return whole if len(whole) < _SPAN else f"to {end} ago"


def _axis(
    shown: ShownSteps,
    marks: Sequence[tuple[int, Mark]],
    width: int,
    rows: int,
    ink: Ink,
    going: bool,
) -> Line:
    """Return the time axis: begin and end, and between them marks, the newest labeled first."""
    look = ink.look
    line = TimeAxis(look.glyphs.rule * width, look.glyphs.mark)
    if shown.rates:
        end = "now" if shown.is_now and going else look.when(shown.end, ink.frame.t)
        first = width - math.ceil(len(shown.rates) / graph_values(1, rows, look.glyphs))
        line.mark(*(at for at, _ in marks))
        line.put(width - len(end), end)
        name_marks(line, marks, look)
        begin = look.when(shown.begin, ink.frame.t)
        line.put(max(0, min(first, width - len(end) - 2 - len(begin))), begin)
        # Round times where there is room.
        told = {look.when(t, shown.end) for t in (shown.begin, shown.end)}
        columns, seconds = width - first, shown.end - shown.begin
        for t in round_times(shown.begin, shown.end, columns, look.zone):
            if (said := look.when(t, shown.end)) not in told:  # else it would be there twice
                at, clock = first + int((t - shown.begin) / seconds * columns), look.clock(t)
                said = said.removesuffix(" 00:00")
                line.put(at, said if clock == "00:00" else clock, away=_AWAY)
    return (Span(f"{'0':>{_LABEL}} {look.glyphs.axis[2]}", "dim"), *line.spans())
