"""A report as Markdown that also reads as plain text, to send to a colleague."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo

from zconsole.diagnosis.bottleneck.finding import CAUSES
from zconsole.output.text import cells, padded
from zconsole.pool.scan_outcome import WELL
from zconsole.scan_report.report import DeviceReport, ScanReport, TunableChange
from zconsole.scan_report.statistics import (
    Difference,
    Promise,
    differences,
    promises,
    reached,
    set_apart,
    unusual,
    waits,
)
from zconsole.system.printable import clean
from zconsole.timeline.frame import work_name
from zconsole.units import counted, duration, latency, percent, rate, size

ROWS = 12
"""Lines of the rate over time."""
BAR = 30
LATE = 60.0
"""Seconds after its start from which a scan counts as not watched from the start."""
MOST = 0.9
"""Share of its duration from which a scan counts as watched."""
FAR = 5.0
"""Errors from here on are shown as multiples: 17 times is easier to read than +1600 %."""


def markdown(report: ScanReport, zone: tzinfo | None = None) -> str:
    """The whole report; clock times in ``zone``, None for the machine's own."""
    parts = (
        _title_of(report),
        _short(report),
        _head(report, zone),
        _course(report, zone),
        _limits(report),
        _devices(report.devices),
        _promised(report),
        _set(report),
        _changes(report.changes, zone),
        _troubles(report),
        _notes(report),
    )
    return "\n".join(clean(line).rstrip() for part in parts for line in part) + "\n"


def compared(first: ScanReport, second: ScanReport, zone: tzinfo | None = None) -> str:
    """Two reports side by side."""
    rows = [
        (d.name, _value(d.first, d.unit), _value(d.second, d.unit), _change(d))
        for d in differences(first, second)
        if d.first is not None or d.second is not None
    ]
    head = ("", _title(first, zone), _title(second, zone), "change")
    lines = [
        f"# {first.function} compared",
        "",
        *_table(head, rows),
        "",
        *_limited("first", first),
        *_limited("second", second),
        *_apart(first, second),
    ]
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"


def _limited(which: str, report: ScanReport) -> Iterator[str]:
    words = ", ".join(f"{CAUSES.get(c, c)} {percent(share)}" for c, _, share in waits(report)[:3])
    if words:
        yield f"- {which}: limited by {words}"


def _apart(first: ScanReport, second: ScanReport) -> Iterator[str]:
    differ = set_apart(first, second)
    if differ:
        yield "- tunables: " + ", ".join(f"{n} {a}, then {b}" for n, (a, b) in differ.items())


def _title(report: ScanReport, zone: tzinfo | None) -> str:
    return f"{report.pool} {_clock(report.start, zone)}"


def _title_of(report: ScanReport) -> Iterator[str]:
    yield f"# {work_name(report.function, report.vdev)} on {report.pool}: {report.state}"


def _head(report: ScanReport, zone: tzinfo | None) -> Iterator[str]:
    yield ""
    yield f"- {_span(report, zone)}"
    late = report.watched_from - report.start
    if late > LATE:
        yield f"- watched from {duration(late)} after its start"
    at = f" at {rate(report.rate)} on average" if report.rate else ""
    yield f"- issued {size(report.issued_bytes)} of {size(report.total_bytes)}{at}"
    if report.ceiling:
        share = reached(report)
        now = "" if share is None else f"; {percent(share)} of it reached while watched"
        yield f"- estimated maximum: {rate(report.ceiling)}, {report.ceiling_text}{now}"
    yield f"- {_done(report)}: {size(report.processed_bytes)}"
    yield f"- errors: {'unknown' if report.errors is None else report.errors}"
    if report.restarts is not None:
        yield f"- restarts: {report.restarts}"
    elif late > LATE:
        yield "- restarts: unknown before that"
    if report.health:
        yield f"- health of the pool when last seen: {report.health}"
    if report.version:
        yield f"- OpenZFS {report.version}"


def _span(report: ScanReport, zone: tzinfo | None) -> str:
    """From when to when, in which zone; the date once where it is the same."""
    first, last = _clock(report.start, zone), _clock(report.end, zone)
    last = last.removeprefix(first[:11])
    ended = f" to {last}" if report.end is not None else ""
    name = datetime.fromtimestamp(report.start, zone).astimezone(zone).tzname()
    return f"{first}{ended} {name}" + ("" if report.end is not None else ", still running")


def _done(report: ScanReport) -> str:
    if report.function == "scrub":
        return "repaired"
    filled = sum(device.filled for device in report.devices)
    if not filled:
        return "written to new devices"
    return f"written to the {filled} new devices" if filled > 1 else "written to the new device"


def _short(report: ScanReport) -> Iterator[str]:
    """The summary, in a sentence or two."""
    words = {"finished": "It took", "running": "It has run for", "paused": "It is paused after"}
    said = f"{words.get(report.state, f'It was {report.state} after')} {duration(report.duration)}"
    if report.state == "finished" and report.health:
        safe = report.health in WELL and not report.errors
        said += "; the pool is safe" if safe else f"; the pool is NOT safe: {_unsafe(report)}"
        said += ", but its devices collect errors" if safe and report.health != "OK" else ""
    yield from ("", f"{said}.")
    cause, _, share = next(iter(waits(report)), ("unclear", 0.0, 0.0))
    if cause == "unclear":
        return
    total = sum(report.limits.values())
    part = f" it was watched ({duration(total)})" if total < MOST * report.duration else ""
    yield f"For {percent(share)} of the time{part}, the limit was {CAUSES.get(cause, cause)}."


def _unsafe(report: ScanReport) -> str:
    return counted(report.errors or 0, "error") if report.health in WELL else report.health


def _course(report: ScanReport, zone: tzinfo | None) -> Iterator[str]:
    moments = report.moments
    rates = [m.issue_rate or 0.0 for m in moments]
    if len(moments) < 2 or max(rates) <= 0:
        return
    yield from ("", "## Rate over time", "", "```")
    step = max(1, -(-len(moments) // ROWS))
    top, day = max(rates), ""
    for start in range(0, len(moments), step):
        part = moments[start : start + step]
        mean = sum(m.issue_rate or 0.0 for m in part) / len(part)
        bar = "#" * round(mean / top * BAR)
        clock = _clock(part[0].t, zone)
        when, day = (clock if clock[:10] != day else f"{'':11}{clock[11:]}"), clock[:10]
        share = part[0].percent
        done = f"{share:5.1f} %" if share is not None else "      -"
        yield f"{when}  {done}  {rate(mean):>9}  {bar}"
    yield "```"


def _limits(report: ScanReport) -> Iterator[str]:
    found = waits(report)
    if not found:
        return
    yield from ("", "## Limits", "")
    rows = [(CAUSES.get(c, c), duration(seconds), percent(share)) for c, seconds, share in found]
    yield from _table(("limit", "time", "share"), rows)
    evidence = [report.evidence[cause] for cause, *_ in found if cause in report.evidence]
    if evidence:
        yield ""
        yield from (f"- {text}" for text in evidence)


def _devices(devices: Sequence[DeviceReport]) -> Iterator[str]:
    if not devices:
        return
    yield from ("", "## Devices", "")
    head = ["device", "read", "written", "mean rate", "busy", "latency", "worst", "new errors"]
    rows = [list(_device(device)) for device in devices]
    if any(device.disk for device in devices):
        head.append("disk")
        for row, device in zip(rows, devices, strict=True):
            row.append(device.disk)
    yield from _table(head, rows)


def _device(device: DeviceReport) -> tuple[str, ...]:
    moved = device.read_bytes + device.write_bytes
    return (
        f"{device.name} (new)" if device.filled else device.name,
        size(device.read_bytes),
        size(device.write_bytes),
        rate(moved / device.seconds if device.seconds else None),
        percent(device.busy),
        latency(device.latency, "-"),
        latency(device.worst_latency, "-"),
        str(device.new_errors),
    )


def _promised(report: ScanReport) -> Iterator[str]:
    found = promises(report)
    if not found:
        return
    yield from ("", "## ETA accuracy", "")
    rows = [(percent(p.share), duration(p.promised), duration(p.taken), _off(p)) for p in found]
    yield from _table(("at", "predicted", "actual", "error"), rows)


def _off(promise: Promise) -> str:
    far = promise.error >= FAR
    return f"{promise.error + 1:.0f} times" if far else _signed(promise.error)


def _signed(share: float) -> str:
    whole = round(100 * share)
    return f"{whole:+d} %" if whole else "0 %"


def _set(report: ScanReport) -> Iterator[str]:
    found = unusual(report.tunables, report.version)
    if found:
        yield from ("", "## Tunables set", "")
        rows = [(name, str(value), str(usual)) for name, (value, usual) in found.items()]
        yield from _table(("tunable", "value", "default"), rows)


def _changes(changes: Sequence[TunableChange], zone: tzinfo | None) -> Iterator[str]:
    if not changes:
        return
    yield from ("", "## Tunables changed", "")
    head = ("when", "tunable", "from", "to", "rate before", "after", "latency before", "after")
    rows = [
        (
            _clock(c.t, zone), c.name, str(c.before), str(c.after),
            rate(c.issue_before), rate(c.issue_after),
            latency(c.latency_before, "-"), latency(c.latency_after, "-"),
        )
        for c in changes
    ]  # fmt: skip
    yield from _table(head, rows)


def _troubles(report: ScanReport) -> Iterator[str]:
    if report.troubles:
        yield from ("", "## Devices in trouble", "")
        yield from (f"- {text}" for text in report.troubles.values())


def _notes(report: ScanReport) -> Iterator[str]:
    if report.notes:
        yield from ("", "## Notes", "")
        yield from (f"- {note}" for note in report.notes)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table whose columns line up; a ``|`` inside a cell is escaped."""
    lines = [[clean(cell).replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(cells(row[i]) for row in lines) for i in range(len(head))]
    for number, row in enumerate(lines):
        shown = (padded(cell, width) for cell, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(shown)} |"
        if number == 0:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "s":
        return duration(value) if value >= 1 else latency(value)
    if unit == "share":
        return percent(value, 1)
    return {"bytes": size(value), "bytes/s": rate(value)}.get(unit, f"{value:.0f}")


def _change(difference: Difference) -> str:
    return "" if difference.change is None else _signed(difference.change)


def _clock(t: float | None, zone: tzinfo | None) -> str:
    return "-" if t is None else datetime.fromtimestamp(t, zone).strftime("%Y-%m-%d %H:%M:%S")
