"""The graph of a scan's rate since it began: its scale, its time axis, and marks of what happened.

It shows the newest steps that fit, or those up to a moment that was scrolled back to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.history.past_rates import Mark, PastRates
from zconsole.history.views import ScanView
from zconsole.monitor.frame import DONE, Frame
from zconsole.ui.panes.scan_parts import Ink
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.graph import graph_lines, graph_values
from zconsole.ui.widgets.spark import scale

_LABEL = 11
_SPAN = 17
"""Columns of the time span beside a graph of one row."""
_MARK = 40
"""Columns of what is said of a mark."""
_BESIDE = 5.0
"""Seconds by which a command and the change it made may lie apart."""


class ShownSteps(NamedTuple):
    """The steps of a scan's past that are shown."""

    rates: tuple[float | None, ...]
    begin: float
    """Epoch seconds."""
    end: float
    is_now: bool
    """Whether it ends with the newest sample."""


def shown_steps(past: PastRates, most: int, until: float | None = None) -> ShownSteps:
    """At most ``most`` steps up to the moment ``until``; without it, the newest."""
    last = len(past.rates)
    if until is not None:
        last = min(last, max(min(most, last), math.ceil((until - past.begin) / past.step)))
    first = max(0, last - most)
    begin, end = (past.begin + n * past.step for n in (first, last))
    return ShownSteps(past.rates[first:last], begin, end, last == len(past.rates))


def graph_width(width: int, rows: int, number: int) -> int:
    """The columns of the graph itself in a pane of ``width``."""
    beside = _LABEL + 3 if rows > 1 else _LABEL + number + len("/s") + _SPAN + 2
    return max(8, width - beside)


def rate_lines(view: ScanView, ink: Ink, rows: int, until: float | None) -> list[Line]:
    """The graph in ``rows`` lines, and where it has several, one more for the time axis."""
    look = ink.look
    width = graph_width(ink.width, rows, look.number)
    shown = shown_steps(view.past, graph_values(width, rows, look.glyphs), until)
    # Of a pool that does not answer, and of a scan that is over, the newest step is not of now.
    going = view.scan.active and not ink.frame.problem
    top = scale(shown.rates)
    said = look.rate(top) if any(shown.rates) else ""
    drawn = graph_lines(shown.rates, width, rows, top, look.glyphs)
    if rows > 1:
        return [*_scaled(drawn, said, ink), _axis(shown, view.past, width, rows, ink, going)]
    size, span = f" {said:>{look.number + 2}} ", f"{_span(shown, ink, going):>{_SPAN}}"
    head = Span(f" {'rate':<{_LABEL - 1}}", "dim")
    return [(head, Span(drawn[0], "spark"), Span(size, "dim"), Span(span, "dim"))]


def _scaled(drawn: Sequence[str], top: str, ink: Ink) -> Iterator[Line]:
    """The rows of the graph with the scale before them."""
    upper, side = ink.look.glyphs.axis[0], ink.look.glyphs.axis[1]
    labels = {0: top, 1: "rate"}
    for row, text in enumerate(drawn):
        label = labels.get(row, "")
        yield (Span(f"{label:>{_LABEL}} {side if row else upper}", "dim"), Span(text, "spark"))


def _span(shown: ShownSteps, ink: Ink, going: bool) -> str:
    """``last 47m28s``, or ``3h10m-2h23m ago`` where it was scrolled back."""
    if not shown.rates:
        return ""
    if shown.is_now:
        length = units.duration(shown.end - shown.begin)
        return f"last {length}" if going else f"{length} to {ink.look.clock(shown.end)}"
    begin, end = (units.duration(max(0.0, ink.now - t)) for t in (shown.begin, shown.end))
    return f"{begin}-{end} ago"


def _axis(shown: ShownSteps, past: PastRates, width: int, rows: int, ink: Ink, going: bool) -> Line:
    """When it begins and ends, and between these the marks, the newest in words first."""
    look, per_cell = ink.look, graph_values(1, rows, ink.look.glyphs)
    line = Axis(width, look.glyphs.rule, look.glyphs.mark)
    if shown.rates:
        seen = [mark for mark in _marks(past, ink.frame) if shown.begin <= mark.t <= shown.end]
        places = [
            max(0, width - 1 - int((shown.end - mark.t) / (past.step * per_cell))) for mark in seen
        ]
        for at in places:
            line.mark(at)
        end = "now" if shown.is_now and going else look.when(shown.end, ink.now)
        line.put(width - len(end), end)
        for at, mark in reversed([*zip(places, seen, strict=True)]):
            said = fit(look.text(mark.text), _MARK, ellipsis=look.glyphs.ellipsis).rstrip()
            line.name(at, f"{said} {look.clock(mark.t)}")
        line.put(width - math.ceil(len(shown.rates) / per_cell), look.when(shown.begin, ink.now))
    return (Span(f"{'0':>{_LABEL}} {look.glyphs.axis[2]}", "dim"), *line.spans())


def _marks(past: PastRates, frame: Frame) -> list[Mark]:
    """What happened to the scan and what was done from consoles, oldest first.

    What a command changed is not told beside the command.
    """
    done = [Mark(event.t, event.text) for event in frame.events if event.name == DONE]
    beside = max(_BESIDE, 2 * past.step)
    seen = [m for m in past.marks if all(abs(m.t - each.t) > beside for each in done)]
    return sorted((*seen, *done))


class Axis:
    """A line of a given width on which words and marks find room, first come, first served."""

    def __init__(self, width: int, rule: str, mark: str) -> None:
        self._cells = [rule] * width
        self._roles = ["dim"] * width
        self._taken = [False] * width
        self._mark = mark

    def mark(self, at: int) -> None:
        """Mark a column."""
        self._cells[at], self._roles[at], self._taken[at] = self._mark, "notice", True

    def name(self, at: int, text: str) -> None:
        """Say what a mark is, at its right or else its left, where there is room."""
        if not self.put(at + 2, text, "notice"):
            self.put(at - 1 - cell_len(text), text, "notice")

    def put(self, at: int, text: str, role: str = "dim") -> bool:
        """Write a text at a column, with a space on each side; whether there is room."""
        end = at + cell_len(text)
        begin, after = max(0, at - 1), min(len(self._cells), end + 1)
        if (
            at < 0
            or end > len(self._cells)
            or any(self._taken[begin:after])
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
