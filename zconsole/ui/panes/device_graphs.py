"""Graphs of a device's past: latency, reads and writes, each with its scale, over the same time.

They show the newest samples that fit, or those up to a moment that was scrolled back to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.timeline.rates import CAPACITY
from zconsole.timeline.scan_rate import HOLE, USUAL, Mark
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.rate_graph import TimeAxis, happened, name_marks
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.graph import graph_lines, graph_values, scale

LABEL = 13
"""Cells before a graph, and before the values of the details."""
_SCALE = 13
"""Cells for ``  scale 128ms`` at the right."""
_LEAST = 20
"""Least cells of a graph that shows more than its number does."""


class _Metric(NamedTuple):
    name: str
    top: Callable[[Sequence[float | None]], float]
    said: Callable[[float], str]


class ShownSamples(NamedTuple):
    """The samples of a device that are shown."""

    times: Sequence[float]
    """Epoch seconds, oldest first."""
    newer: int
    """Number of newer samples, which are not shown."""


def shown_samples(frame: Frame, most: int, until: float | None = None) -> ShownSamples:
    """Return at most ``most`` samples up to ``until`` (epoch seconds), or the newest without it."""
    times = [frame.t - age for age in frame.series.ages(CAPACITY)]
    last = len(times)
    if until is not None:
        # Scrolled to the oldest sample, the graph is still full.
        last = max(min(most, last), bisect_right(times, until))
    return ShownSamples(times[max(0, last - most) : last], len(times) - last)


def scrolled(frame: Frame, most: int, until: float | None, direction: int) -> float | None:
    """Return ``until`` moved by an eighth of what is shown, back (-1) or on; None for now."""
    times = [frame.t - age for age in frame.series.ages(CAPACITY)]
    newer = shown_samples(frame, most, until).newer - direction * max(1, most // 8)
    newer = min(newer, len(times) - most)
    return times[-newer - 1] if newer > 0 and most else None


def graph_room(width: int, rows: int, look: DisplayFormat) -> int:
    """Return the cells of a graph in a line of ``width``; 0 if that is too narrow."""
    room = width - LABEL - _SCALE
    if room < _LEAST:
        return 0
    return min(room, CAPACITY * room // graph_values(room, rows, look.glyphs))


def graphs(
    row: VdevRow,
    frame: Frame,
    look: DisplayFormat,
    width: int,
    rows: int,
    until: float | None = None,
) -> tuple[Line, ...]:
    """Return graphs ``width`` cells wide, each ``rows`` lines high; none for unknown metrics."""
    room = graph_room(width, rows, look)
    if not room:
        return ()
    shown = shown_samples(frame, graph_values(room, rows, look.glyphs), until)
    metrics = (
        _Metric("latency", _latency_top, units.latency),
        _Metric("read", scale, look.size),
        _Metric("write", scale, look.size),
    )
    lines: list[Line] = []
    for metric in metrics:
        kept = frame.series.tail(row.key, metric.name, len(shown.times) + shown.newer)
        past = even_in_time(shown.times, kept[: len(shown.times)])
        if any(value is not None for value in kept):
            lines += _graph(metric, past, look, room, rows)
    return (*lines, _axis(row, frame, shown, look, room, rows)) if lines else ()


def even_in_time(times: Sequence[float], values: Sequence[float | None]) -> Sequence[float | None]:
    """Resample values evenly in time: the highest value in each slot, else that of the next sample.

    The distance between samples varies: the speed of a demo or the interval may change. Slots
    before a sample that came later than usual stay empty (None).
    """
    step = _step(times)
    if len(values) != len(times) or not step > 0:  # samples of an earlier run have no times
        return values
    even: list[float | None] = [None] * len(times)
    before, usual = times[0], 0.0
    for t, value in zip(times, values, strict=True):
        last, apart = round((t - times[0]) / step), t - before
        is_usual = apart <= max(HOLE, USUAL * usual)
        first = min(last, round((before - times[0]) / step) + 1) if is_usual else last
        for place in range(first, last + 1):
            even[place] = max((v for v in (even[place], value) if v is not None), default=None)
        before, usual = t, apart
    return even


def _step(times: Sequence[float]) -> float:
    """Return the mean seconds between two moments; 0 for a single one."""
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0


def _graph(
    metric: _Metric, past: Sequence[float | None], look: DisplayFormat, width: int, rows: int
) -> Iterator[Line]:
    """Yield the lines of a graph with its name and scale; one word if all values are 0."""
    if not any(past):
        yield (Span(fit(metric.name, LABEL), "dim"), Span("none"))
        return
    top = metric.top(past)
    drawn = graph_lines(past, width, rows, top, look.glyphs)
    for number, text in enumerate(drawn):
        label = fit(metric.name if number == 0 else "", LABEL)
        bound = f"  scale {metric.said(top)}" if number == 0 else ""
        yield (Span(label, "dim"), Span(text, "spark"), Span(bound, "dim"))


def _axis(
    row: VdevRow, frame: Frame, shown: ShownSamples, look: DisplayFormat, width: int, rows: int
) -> Line:
    """Return the time axis: begin and end of what is shown, with marks of events between them."""
    begin, end = (units.duration(frame.t - t) for t in (shown.times[0], shown.times[-1]))
    line = TimeAxis(" " * width, look.glyphs.mark)
    marks = [*_marks(row, frame, shown.times, width, graph_values(1, rows, look.glyphs))]
    line.mark(*(at for at, _ in marks))
    last = f"{end} ago" if shown.newer else "now"
    line.put(width - len(last), last)
    first = width - -(-len(shown.times) // graph_values(1, rows, look.glyphs))
    said = f"{begin} ago" if shown.newer else f"last {begin}"
    line.put(max(0, min(first, width - len(last) - 2 - len(said))), said)
    name_marks(line, marks, look)
    return (Span(" " * LABEL), *line.spans())


def _marks(
    row: VdevRow, frame: Frame, times: Sequence[float], width: int, per_cell: int
) -> Iterator[tuple[int, Mark]]:
    """Yield the columns of events on the device, of its scan, and of commands, with their marks."""
    name = row.vdev.name
    # Texts of its own events begin with the name of the device, which is known here.
    own = [
        Mark(e.t, e.text.removeprefix(name).lstrip(": ")) for e in frame.events if e.vdev == name
    ]
    scan = frame.scan.past.marks if frame.scan is not None and frame.scan.scan.active else ()
    step = _step(times) or 1.0
    for mark in happened((*scan, *own), frame, 0.0):
        if times[0] <= mark.t <= times[-1]:
            yield width - 1 - int((times[-1] - mark.t) / step) // per_cell, mark


def _latency_top(past: Sequence[float | None]) -> float:
    """Return the top of the scale, round in ms, or in µs if all values are below 1 ms."""
    unit = 1e3 if any(v is not None and v >= 0.001 for v in past) else 1e6
    return scale([None if v is None else v * unit for v in past]) / unit
