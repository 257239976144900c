"""Reports as Markdown that also reads as plain text, comparisons of two, and SVG charts.

Clock times are in the time zone ``zone`` of each function; None is the machine's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from xml.sax.saxutils import escape

from zconsole.diagnosis.bottleneck.finding import CAUSES
from zconsole.output.text import cells, padded
from zconsole.pool.scan_outcome import WELL
from zconsole.scan_report.report import (
    CheckedPrediction,
    DeviceReport,
    Moment,
    ScanReport,
    differences,
    different_tunables,
    limits_by_time,
    predictions,
    share_of_maximum,
)
from zconsole.system.printable import clean, inert
from zconsole.timeline.frame import work_name
from zconsole.tunables.catalog import unusual
from zconsole.units import counted, duration, latency, percent, rate, size

ROWS = 12
"""Lines of the section on the rate over time."""
BAR = 30
"""Characters of the longest bar in that section."""
LATE = 60.0
"""Seconds that watching may begin after the scan without a note in the report."""
MOST = 0.9
"""Share of a scan's duration from which it counts as watched all the time."""
FAR = 5.0
"""Error of an ETA from which it is shown as a multiple: 17 times reads easier than +1600 %."""


def markdown(report: ScanReport, zone: tzinfo | None = None) -> str:
    """Return the whole report as Markdown."""
    tunables = unusual(report.tunables, report.version).items()
    sections = {
        "Rate over time": _course(report, zone),
        "Limits": _limits(report),
        "Devices": _devices(report.devices),
        "ETA accuracy": _table(
            ("at", "predicted", "actual", "error"),
            [
                (percent(p.share), duration(p.predicted), duration(p.actual), _error(p))
                for p in predictions(report)
            ],
        ),
        "Tunables set": _table(
            ("tunable", "value", "default"),
            [(name, str(value), str(usual)) for name, (value, usual) in tunables],
        ),
        "Tunables changed": _changes(report, zone),
        "Devices in trouble": [f"- {text}" for text in report.troubles.values()],
        "Notes": [f"- {note}" for note in report.notes],
    }
    lines = [f"# {work_name(report.function, report.vdev)} on {report.pool}: {report.state}"]
    lines += ["", *_summary(report), "", *_head(report, zone)]
    for title, body in sections.items():
        if body:
            lines += ["", f"## {title}", "", *body]
    return _text(lines)


def compared(first: ScanReport, second: ScanReport, zone: tzinfo | None = None) -> str:
    """Return a comparison of two reports as Markdown."""
    rows = [
        (
            d.name,
            _value(d.first, d.unit),
            _value(d.second, d.unit),
            "" if d.change is None else _signed(d.change),
        )
        for d in differences(first, second)
        if d.first is not None or d.second is not None
    ]
    titles = (f"{report.pool} {_clock(report.start, zone)}" for report in (first, second))
    lines = [f"# {first.function} compared", "", *_table(("", *titles, "change"), rows), ""]
    for which, report in (("first", first), ("second", second)):
        words = ", ".join(
            f"{_cause(c)} {percent(share)}" for c, _, share in limits_by_time(report)[:3]
        )
        lines += [f"- {which}: limited by {words}"] if words else []
    if differ := different_tunables(first, second):
        apart = ", ".join(f"{name} {a}, then {b}" for name, (a, b) in differ.items())
        lines.append(f"- tunables: {apart}")
    return _text(lines)


def _text(lines: Iterable[str]) -> str:
    return "\n".join(inert(line).rstrip() for line in lines) + "\n"


def _summary(report: ScanReport) -> Iterator[str]:
    """Yield a sentence on the outcome, and one on the main limit if it is known."""
    words = {"finished": "It took", "running": "It has run for", "paused": "It is paused after"}
    said = f"{words.get(report.state, f'It was {report.state} after')} {duration(report.duration)}"
    if report.state == "finished" and report.health:
        well = report.health in WELL
        if well and not report.errors:
            collects = ", but its devices collect errors" if report.health != "OK" else ""
            said += f"; the pool is safe{collects}"
        else:
            why = counted(report.errors or 0, "error") if well else report.health
            said += f"; the pool is NOT safe: {why}"
    yield f"{said}."
    cause, _, share = next(iter(limits_by_time(report)), ("unclear", 0.0, 0.0))
    if cause != "unclear":
        total = sum(report.limits.values())
        part = f" it was watched ({duration(total)})" if total < MOST * report.duration else ""
        yield f"For {percent(share)} of the time{part}, the limit was {_cause(cause)}."


def _head(report: ScanReport, zone: tzinfo | None) -> Iterator[str]:
    first = _clock(report.start, zone)
    last = _clock(report.end, zone).removeprefix(first[:11])  # without the date if it is the same
    name = datetime.fromtimestamp(report.start, zone).astimezone(zone).tzname()
    over = report.end is not None
    yield f"- {first}{f' to {last}' if over else ''} {name}{'' if over else ', still running'}"
    late = report.watched_from - report.start
    if late > LATE:
        yield f"- watched from {duration(late)} after its start"
    at = f" at {rate(report.rate)} on average" if report.rate else ""
    yield f"- issued {size(report.issued_bytes)} of {size(report.total_bytes)}{at}"
    if report.ceiling:
        share = share_of_maximum(report)
        now = "" if share is None else f"; {percent(share)} of it reached while watched"
        yield f"- estimated maximum: {rate(report.ceiling)}, {report.ceiling_text}{now}"
    filled = sum(device.filled for device in report.devices)
    new = {0: "new devices", 1: "the new device"}.get(filled, f"the {filled} new devices")
    done = "repaired" if report.function == "scrub" else f"written to {new}"
    yield f"- {done}: {size(report.processed_bytes)}"
    yield f"- errors: {'unknown' if report.errors is None else report.errors}"
    if report.restarts is not None:
        yield f"- restarts: {report.restarts}"
    elif late > LATE:
        yield "- restarts: unknown before that"
    if report.health:
        yield f"- health of the pool when last seen: {report.health}"
    if report.version:
        yield f"- OpenZFS {report.version}"


def _course(report: ScanReport, zone: tzinfo | None) -> list[str]:
    moments = report.moments
    rates = [m.issue_rate or 0.0 for m in moments]
    if len(moments) < 2 or max(rates) <= 0:
        return []
    lines, day = ["```"], ""
    step = max(1, -(-len(moments) // ROWS))  # rounded up, for at most ROWS lines
    for start in range(0, len(moments), step):
        part = rates[start : start + step]
        mean = sum(part) / len(part)
        clock, share = _clock(moments[start].t, zone), moments[start].percent
        when, day = (clock if clock[:10] != day else f"{'':11}{clock[11:]}"), clock[:10]
        done = f"{share:5.1f} %" if share is not None else "      -"
        lines.append(f"{when}  {done}  {rate(mean):>9}  {'#' * round(mean / max(rates) * BAR)}")
    return [*lines, "```"]


def _limits(report: ScanReport) -> list[str]:
    found = limits_by_time(report)
    rows = [(_cause(c), duration(seconds), percent(share)) for c, seconds, share in found]
    evidence = [f"- {report.evidence[c]}" for c, *_ in found if c in report.evidence]
    return [*_table(("limit", "time", "share"), rows), *([""] if evidence else []), *evidence]


def _devices(devices: Sequence[DeviceReport]) -> list[str]:
    head = ["device", "read", "written", "mean rate", "busy", "latency", "worst", "new errors"]
    rows = [
        [
            f"{each.name} (new)" if each.filled else each.name,
            size(each.read_bytes),
            size(each.write_bytes),
            rate((each.read_bytes + each.write_bytes) / each.seconds if each.seconds else None),
            percent(each.busy),
            latency(each.latency, "-"),
            latency(each.worst_latency, "-"),
            str(each.new_errors),
            each.disk,
        ]
        for each in devices
    ]
    return _table(head, rows, "disk")


def _changes(report: ScanReport, zone: tzinfo | None) -> list[str]:
    head = ("when", "tunable", "from", "to", "rate before", "after", "latency before", "after")
    rows = [
        (
            _clock(c.t, zone), c.name, str(c.before), str(c.after),
            rate(c.issue_before), rate(c.issue_after),
            latency(c.latency_before, "-"), latency(c.latency_after, "-"),
            f"unmeasurable: {c.doubt}" if c.doubt else "",
        )
        for c in report.changes
    ]  # fmt: skip
    return _table(head, rows, "effect")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], last: str = "") -> list[str]:
    """Return the lines of a Markdown table with aligned columns; none if there are no rows.

    ``last`` is the head of a last column that is left out if it is empty. A ``|`` in a cell is
    escaped.
    """
    if not rows:
        return []
    if last and any(row[-1] for row in rows):
        head = (*head, last)
    wide = len(head)
    lines = [[inert(cell).replace("|", "\\|") for cell in row[:wide]] for row in (head, *rows)]
    widths = [max(cells(row[i]) for row in lines) for i in range(wide)]
    drawn = [
        f"| {' | '.join(padded(c, w) for c, w in zip(row, widths, strict=True))} |" for row in lines
    ]
    return [drawn[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *drawn[1:]]


def _cause(name: str) -> str:
    return CAUSES.get(name, name)


def _error(prediction: CheckedPrediction) -> str:
    far = prediction.error >= FAR
    return f"{prediction.error + 1:.0f} times" if far else _signed(prediction.error)


def _signed(share: float) -> str:
    whole = round(100 * share)
    return f"{whole:+d} %" if whole else "0 %"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "s":
        return duration(value) if value >= 1 else latency(value)
    if unit == "share":
        return percent(value, 1)
    return {"bytes": size(value), "bytes/s": rate(value)}.get(unit, f"{value:.0f}")


def _clock(at: float | None, zone: tzinfo | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M:%S")


# The chart

WIDTH, HEIGHT = 860, 320
"""Pixels of the whole chart."""
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 46, 58
"""Pixels of the margins around the curve."""
FLOOR = HEIGHT - BOTTOM
"""Vertical position of the time axis."""
NEAR = 2.0
"""Multiple of the best rate up to which the maximum is drawn: beyond, the curve would be flat."""
COLORS = {
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
"""Colors by cause of a limit."""
OTHER = "#bbbbbb"
"""Color of any other cause, and of time without one."""


def svg(report: ScanReport, zone: tzinfo | None = None) -> str:
    """Return a chart of the issued bytes/s over time, with a colored strip of the limits below."""
    best = max((m.issue_rate or 0.0 for m in report.moments), default=0.0) or 1.0
    near = report.ceiling is not None and best < report.ceiling < NEAR * best
    chart = _Chart(report, report.ceiling if near and report.ceiling else best)
    parts = (*chart.frame(zone), *chart.rates(), *chart.limits(), *chart.changes(), "</svg>")
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Chart:
    """The chart of a report; each method yields the SVG elements of a part."""

    report: ScanReport
    top: float
    """Rate at the upper edge in bytes/s: the estimated maximum if it is NEAR, else the best."""

    def frame(self, zone: tzinfo | None) -> Iterator[str]:
        """Yield the title, axes and grid."""
        report = self.report
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
        )
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        title = f"{work_name(report.function, report.vdev)} on {report.pool}: {report.state}"
        title += f" after {duration(report.duration)}, {rate(report.rate)} on average"
        yield _label(LEFT, 22, title, "start", 15)
        began = datetime.fromtimestamp(report.start, zone).astimezone(zone)
        words = f"from {began:%Y-%m-%d %H:%M:%S} {began.tzname()}"
        words += f", OpenZFS {report.version}" if report.version else ""
        yield _label(LEFT, 39, words, "start", 11)
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
            y = self.y(share * self.top)
            yield _line(LEFT, y, WIDTH - RIGHT, y, 'stroke="#ddd"')
            yield _label(LEFT - 6, y + 4, rate(share * self.top), "end")
            x = LEFT + share * (WIDTH - LEFT - RIGHT)
            yield _label(x, FLOOR + 18, duration(share * report.duration), anchor)

    def rates(self) -> Iterator[str]:
        """Yield the curve, and a line for the estimated maximum if it is within the chart."""
        ceiling = self.report.ceiling
        if ceiling and ceiling <= self.top:
            y = self.y(ceiling)
            yield _line(LEFT, y, WIDTH - RIGHT, y, 'stroke="#777" stroke-dasharray="4 4"')
            yield _label(WIDTH - RIGHT, y - 4, f"estimated maximum {rate(ceiling)}", "end", 10)
        known = [(m.t, m.issue_rate) for m in self.report.moments if m.issue_rate is not None]
        points = " ".join(f"{self.x(t):.1f},{self.y(issued):.1f}" for t, issued in known)
        if points:
            yield f'<polyline points="{points}" fill="none" stroke="#1f4e8c" stroke-width="1.5"/>'

    def limits(self) -> Iterator[str]:
        """Yield a strip below the axis in the colors of the limits, and its legend."""
        y = FLOOR + 26
        for cause, here, after in _runs(self.report.moments):
            x, color = self.x(here.t), COLORS.get(cause or "", OTHER)
            width = max(0.5, self.x(after.t) - x)
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="8" fill="{color}"/>'
        x = float(LEFT)
        for cause, _, share in limits_by_time(self.report)[:5]:
            words, color = f"{_cause(cause)} {percent(share)}", COLORS.get(cause, OTHER)
            yield f'<rect x="{x:.0f}" y="{y + 14}" width="9" height="9" fill="{color}"/>'
            yield _label(x + 13, y + 23, words, "start")
            x += 30 + 6.6 * len(words)  # about the width of a character at 12 points

    def changes(self) -> Iterator[str]:
        """Yield a mark at each change of a tunable."""
        for change in self.report.changes:
            x = self.x(change.t)
            yield _line(x, TOP, x, FLOOR, 'stroke="#c2a21a"')
            yield _label(x + 3, TOP + 10, f"{change.name}={change.after}", "start", 10)

    def x(self, at: float) -> float:
        """Return the horizontal position of a time (epoch seconds)."""
        whole = self.report.duration
        share = (at - self.report.start) / whole if whole > 0 else 0.0
        return LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT)

    def y(self, issued: float) -> float:
        """Return the vertical position of a rate (bytes/s)."""
        return FLOOR - issued / self.top * (FLOOR - TOP)


def _runs(moments: Sequence[Moment]) -> Iterator[tuple[str | None, Moment, Moment]]:
    """Yield each run of moments with the same cause: the cause, its first moment, and its end."""
    first = 0
    for n in range(1, len(moments)):
        if n == len(moments) - 1 or moments[n].cause != moments[first].cause:
            yield moments[first].cause, moments[first], moments[n]
            first = n


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    ends = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    words = (f'{name}="{at if isinstance(at, int) else f"{at:.1f}"}"' for name, at in ends)
    return f"<line {' '.join(words)} {style}/>"


def _label(x: float, y: float, words: str, anchor: str, points: int = 12) -> str:
    inside = escape(clean(words))
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{points}">{inside}</text>'
    )
