"""The past of one device as graphs: latency and bandwidth, each with its scale, over one time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.history.series import CAPACITY
from zconsole.monitor.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.graph import graph_lines, graph_values
from zconsole.ui.widgets.spark import scale

_LABEL = 11
_SCALE = 9
"""Cells for ``  0-128ms`` at the right."""
_LEAST = 20
"""Cells below which a graph shows nothing that its number does not."""


class _Metric(NamedTuple):
    name: str
    top: Callable[[Sequence[float | None]], float]
    said: Callable[[float], str]


def graphs(key: str, frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Graphs ``width`` cells wide and each ``rows`` lines high; none of what was never measured."""
    room = width - _LABEL - _SCALE
    if room < _LEAST:
        return ()
    room = min(room, CAPACITY * room // graph_values(room, rows, look.glyphs))
    ages = frame.series.ages(graph_values(room, rows, look.glyphs))
    metrics = (
        _Metric("latency", _latency_top, units.latency),
        _Metric("read", scale, look.size),
        _Metric("write", scale, look.size),
    )
    lines: list[Line] = []
    for metric in metrics:
        past = frame.series.tail(key, metric.name, len(ages))
        if any(value is not None for value in past):
            lines += _graph(metric, past, look, room, rows)
    return (*lines, _axis(ages, room)) if lines else ()


def _graph(
    metric: _Metric, past: Sequence[float | None], look: DisplayFormat, width: int, rows: int
) -> Iterator[Line]:
    """One graph with its name and scale; a word where it stood at 0 all the time."""
    if not any(past):
        yield (Span(fit(metric.name, _LABEL), "dim"), Span("none"))
        return
    top = metric.top(past)
    drawn = graph_lines(past, width, rows, top, look.glyphs)
    for number, text in enumerate(drawn):
        label = fit(metric.name if number == 0 else "", _LABEL)
        bound = f"  0-{metric.said(top)}" if number == 0 else ""
        yield (Span(label, "dim"), Span(text, "spark"), Span(bound, "dim"))


def _axis(ages: Sequence[float], width: int) -> Line:
    """How much time is shown; it ends at the right."""
    shown = f"last {units.duration(ages[0])}"
    return (Span(" " * _LABEL + shown + "now".rjust(width - len(shown)), "dim"),)


def _latency_top(past: Sequence[float | None]) -> float:
    """In whole milliseconds, or in microseconds where all is faster than that."""
    unit = 1e3 if any(v is not None and v >= 0.001 for v in past) else 1e6
    return scale([None if v is None else v * unit for v in past]) / unit
