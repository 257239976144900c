"""Graph of a scan's rate since its start, with scale, time axis and marks of events.

It shows the newest steps that fit, or those up to a moment that was scrolled back to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.frame import ScanView
from zconsole.timeline.scan_rate import Mark, PastRates
from zconsole.ui.panes.scan_parts import Ink
from zconsole.ui.panes.time_axis import TimeAxis, happened, name_marks, name_times
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.graph import graph_lines, graph_values, scale

_DAY = 86400.0
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
    marks = _marks(view.past, shown, width, rows, ink)
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
    begin, end = (units.duration(max(0.0, ink.now - t)) for t in (shown.begin, shown.end))
    whole = f"{begin}-{end} ago"
    return whole if len(whole) < _SPAN else f"to {end} ago"


def _marks(
    past: PastRates, shown: ShownSteps, width: int, rows: int, ink: Ink
) -> list[tuple[int, Mark]]:
    """Return events in the time shown, with their columns in the graph."""
    cell = past.step * graph_values(1, rows, ink.look.glyphs)
    seen = happened(past.marks, ink.frame, past.step)
    return [
        (max(0, width - 1 - int((shown.end - mark.t) / cell)), mark)
        for mark in seen
        if shown.begin <= mark.t <= shown.end
    ]


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
        end = "now" if shown.is_now and going else look.when(shown.end, ink.now)
        first = width - math.ceil(len(shown.rates) / graph_values(1, rows, look.glyphs))
        line.mark(*(at for at, _ in marks))
        line.put(width - len(end), end)
        name_marks(line, marks, look)
        begin = look.when(shown.begin, ink.now)
        line.put(max(0, min(first, width - len(end) - 2 - len(begin))), begin)
        name_times(line, shown.begin, shown.end, first, width, look)
    return (Span(f"{'0':>{_LABEL}} {look.glyphs.axis[2]}", "dim"), *line.spans())
