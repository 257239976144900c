"""A report's rate over time as one SVG chart, for a page or a mail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from xml.sax.saxutils import escape

from zconsole.diagnosis.bottleneck.finding import CAUSES
from zconsole.scan_report.report import Moment, ScanReport
from zconsole.scan_report.statistics import waits
from zconsole.system.printable import clean
from zconsole.timeline.frame import work_name
from zconsole.units import duration, percent, rate

WIDTH, HEIGHT = 860, 320
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 46, 58
NEAR = 2.0
"""A maximum beyond this many times the best rate is left out: the curve would be flat."""
COLOURS = {
    "new-disk": "#3b7dd8",
    "slow-disk": "#d8743b",
    "random": "#8f5fd0",
    "foreground": "#2f9e6e",
    "throttle": "#c2a21a",
    "memory": "#c0499a",
    "cpu": "#c03a3a",
    "bus": "#4aa3b5",
    "smr": "#8a4b21",
}


def svg(report: ScanReport, zone: tzinfo | None = None) -> str:
    """The chart: issued bytes/s over the scan's hours, coloured below by its limit.

    Its start is given in ``zone``, None for the machine's own.
    """
    parts = (
        *_frame(report, zone),
        *_ceiling(report),
        *_curve(report),
        *_causes(report),
        *_changes(report),
        "</svg>",
    )
    return "\n".join(parts) + "\n"


def _frame(report: ScanReport, zone: tzinfo | None) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    title = f"{work_name(report.function, report.vdev)} on {report.pool}: {report.state}"
    title += f" after {duration(report.duration)}, {rate(report.rate)} on average"
    yield _text(LEFT, 22, title, "start", 15)
    yield _text(LEFT, 39, _began(report, zone), "start", 11)
    floor, top = HEIGHT - BOTTOM, _top(report)
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        y = floor - share * (floor - TOP)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(LEFT - 6, y + 4, rate(share * top), "end")
        x = LEFT + share * (WIDTH - LEFT - RIGHT)
        yield _text(x, floor + 18, duration(share * report.duration), anchor)


def _began(report: ScanReport, zone: tzinfo | None) -> str:
    began = datetime.fromtimestamp(report.start, zone).astimezone(zone)
    words = f"from {began:%Y-%m-%d %H:%M:%S} {began.tzname()}"
    return f"{words}, OpenZFS {report.version}" if report.version else words


def _ceiling(report: ScanReport) -> Iterator[str]:
    """The estimated maximum, if it is within the chart."""
    if not report.ceiling or report.ceiling > _top(report):
        return
    y = _y(report.ceiling, _top(report))
    ends = f'x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"'
    yield f'<line {ends} stroke="#777" stroke-dasharray="4 4"/>'
    yield _text(WIDTH - RIGHT, y - 4, f"estimated maximum {rate(report.ceiling)}", "end", 10)


def _curve(report: ScanReport) -> Iterator[str]:
    top = _top(report)
    points = " ".join(
        f"{_x(report, m.t):.1f},{_y(m.issue_rate, top):.1f}"
        for m in report.moments
        if m.issue_rate is not None
    )
    if points:
        yield f'<polyline points="{points}" fill="none" stroke="#1f4e8c" stroke-width="1.5"/>'


def _causes(report: ScanReport) -> Iterator[str]:
    """A strip below the axis, and its legend."""
    y = HEIGHT - BOTTOM + 26
    for cause, here, after in _runs(report):
        x, end = _x(report, here.t), _x(report, after.t)
        colour = COLOURS.get(cause or "", "#bbbbbb")
        width = max(0.5, end - x)
        yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="8" fill="{colour}"/>'
    x = float(LEFT)
    for cause, _, share in waits(report)[:5]:
        words = f"{CAUSES.get(cause, cause)} {percent(share)}"
        colour = COLOURS.get(cause, "#bbbbbb")
        yield f'<rect x="{x:.0f}" y="{y + 14}" width="9" height="9" fill="{colour}"/>'
        yield _text(x + 13, y + 23, words, "start")
        x += 30 + 6.6 * len(words)


def _runs(report: ScanReport) -> Iterator[tuple[str | None, Moment, Moment]]:
    """Each cause with the moments from which and to which it was one and the same."""
    moments = report.moments
    first = 0
    for n in range(1, len(moments)):
        if n == len(moments) - 1 or moments[n].cause != moments[first].cause:
            yield moments[first].cause, moments[first], moments[n]
            first = n


def _changes(report: ScanReport) -> Iterator[str]:
    for change in report.changes:
        x = _x(report, change.t)
        ends = f'x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"'
        yield f'<line {ends} stroke="#c2a21a"/>'
        yield _text(x + 3, TOP + 10, f"{change.name}={change.after}", "start", 10)


def _top(report: ScanReport) -> float:
    """The rate at the upper edge: the best one, or the ceiling where that is not far above."""
    best = max((m.issue_rate or 0.0 for m in report.moments), default=0.0) or 1.0
    near = report.ceiling is not None and best < report.ceiling < NEAR * best
    return report.ceiling if near and report.ceiling else best


def _x(report: ScanReport, t: float) -> float:
    share = (t - report.start) / report.duration if report.duration > 0 else 0.0
    return LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT)


def _y(issue_rate: float, top: float) -> float:
    """Where a rate is, with that of the upper edge; both in bytes/s."""
    floor = HEIGHT - BOTTOM
    return floor - issue_rate / top * (floor - TOP)


def _text(x: float, y: float, words: str, anchor: str, points: int = 12) -> str:
    inside = escape(clean(words))
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{points}">{inside}</text>'
    )
