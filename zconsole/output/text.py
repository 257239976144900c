"""Frames as plain text, for pipes, dumb terminals and screen readers; safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo

from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.health import explained
from zconsole.pool.model import Activity
from zconsole.pool.redundancy import Redundancy, unmarked_repairs
from zconsole.pool.volumes import volume_sentences
from zconsole.system.printable import clean
from zconsole.timeline.eta.estimate import MEASURING, SUSPENDED, Estimate
from zconsole.timeline.frame import (
    SCRUB_HOURS,
    ActivityView,
    Frame,
    ScanView,
    VdevRow,
    range_words,
    repaired_fact,
    result_facts,
    seconds_taken,
    stage_words,
    work_name,
)
from zconsole.units import counted, date_of, days, duration, latency, percent, rate, size

NAME_WIDTH = 16
BAR_WIDTH = 30
_WATCHED = frozenset({"removal", "expansion", "condense"})


def status_report(frame: Frame) -> str:
    """Report a pool in full: health, redundancy, scans, tree, balance, errors.

    Ends in a newline. Clock times are in the machine's time zone.
    """
    parts: list[str] = [*_heading(frame)]
    for view in frame.scans:
        parts.extend(_scan(view, frame))
    parts.extend(limit_lines(frame))
    parts.extend(_last_scrub(frame))
    parts.extend(_activity(activity, frame.t) for activity in frame.activities)
    if frame.rows:
        parts.extend(("", *_table(frame.rows)))
    if frame.balance.vdevs:
        parts.extend(("", *balance_lines(frame.balance)))
    parts.extend(_errors(frame))
    parts += (f"one cause: {c.text(_day_clock(c.since, frame.t))}" for c in frame.common_causes)
    parts.extend(f"{trouble.label}: {trouble.text}" for trouble in frame.troubles)
    return "\n".join(clean_lines(parts)) + "\n"


def clean_lines(lines: Iterable[str]) -> Iterator[str]:
    """Make each line safe for a terminal."""
    return (clean(text).rstrip() for text in lines)


def padded(text: str, width: int) -> str:
    """Pad cleaned text with blanks to ``width`` cells of a terminal."""
    return text + " " * (width - cells(text))


def cells(text: str) -> int:
    """Return the number of terminal cells that cleaned text takes."""
    if text.isascii():
        return len(text)
    # lazy: most names are plain, and loading it takes ten milliseconds
    from rich.cells import cell_len

    return cell_len(text)


def watch_line(frame: Frame, zone: tzinfo | None) -> str:
    """Describe a pool's sample in one line: time, pool, health, scan, redundancy left."""
    words = [date_of(frame.t, zone).strftime("%H:%M:%S"), frame.pool, frame.health.word]
    if frame.problem:
        age = frame.stale_seconds
        words.append(frame.problem if age is None else f"{frame.problem} ({duration(age)} old)")
    elif frame.scan is not None:
        words.extend(_scan_words(frame.scan))
    else:
        words.append("no scan" if frame.seen.scans_known else "scan unknown")
    if not frame.problem:
        words.extend(word for view in frame.activities for word in _activity_words(view))
    words.extend(f"{entry.vdev}:{entry.left}" for entry in frame.redundancy)
    if frame.health.word == "ATTENTION":
        words.extend(frame.health.reasons[:1])
    return clean("  ".join(words))


def _heading(frame: Frame) -> Iterator[str]:
    state = f" ({frame.state})" if frame.state and frame.state != frame.health.word else ""
    yield f"{frame.pool or 'unnamed pool'}: {frame.health.word}{state}"
    yield from (f"  {reason}" for reason in frame.health.reasons)
    if frame.problem and frame.problem not in frame.health.reasons:
        yield f"  {frame.problem}"
    if frame.redundancy:
        entries = [_left(entry) for entry in frame.redundancy]
        apart = "; " if any(":" in entry or "," in entry for entry in entries) else ", "
        yield "  redundancy left: " + apart.join(entries)
    if frame.untold:
        yield f"  redundancy unknown: {', '.join(frame.untold)} ({_why_untold(frame)})"
    if frame.seen.message:
        yield f"  zpool says: {frame.seen.message}"
    if frame.seen.action:
        yield f"  action: {frame.seen.action}"


def _why_untold(frame: Frame) -> str:
    seen = frame.seen
    if not seen.lacks and unmarked_repairs(seen.root, seen.scans):
        return "no device is marked yet"
    # A pasted text that lost its indentation may show a vdev's devices as another's.
    partial = any(top.partial and top.name in frame.untold for top in seen.root.children)
    return "too little of it is shown" if partial and not seen.lacks else "not all of it is shown"


def limit_lines(frame: Frame) -> Iterator[str]:
    """Yield the limit of the running scan, its confidence, a suggestion, the estimated maximum."""
    limit, ceiling = frame.limit, frame.ceiling
    if limit is None or not limit.figures:
        return
    sure = f" ({percent(limit.sure)} sure)" if limit.sure else ""
    yield f"  slowed by: {limit.text}{sure}"
    if advice := limit.suggestion.text:
        yield f"  try: {advice}"
    if ceiling is not None and ceiling.share is not None:
        reached = f"{percent(ceiling.share)} of the estimated maximum"
        yield f"  {reached}, {rate(ceiling.rate)} ({ceiling.text})"


def _left(entry: Redundancy) -> str:
    if entry.left or len(entry.untouchable) < 2:
        return ", ".join(filter(None, (f"{entry.vdev} {entry.left}", entry.reservation)))
    return f"{entry.vdev} 0: do not remove {', '.join(entry.untouchable)}"


def _scan(view: ScanView, frame: Frame) -> Iterator[str]:
    scan, now = view.scan, frame.t
    if not scan.active:
        yield _ended(view, now)
        return
    stage = f", {words}" if (words := stage_words(scan, view.stage)) else ""
    errors = f", {counted(scan.errors, 'error')}" if scan.errors else ""
    done = "progress unknown" if view.percent is None else f"{view.percent:.2f} % done"
    yield f"{work_name(scan.name, scan.vdev)}: {scan.state}{stage}, {done}{errors}"
    if scan.paused_since is not None:
        began = f", started {_day_clock(scan.start, now)}" if scan.start is not None else ""
        yield f"  paused since {_day_clock(scan.paused_since, now)}{began}"
    if amounts := _amounts(view):
        yield f"  {amounts}"
    yield f"  {_eta(view, frame)}"
    if view.full is not None and view.full.eta is not None:
        yield f"  {view.full_called} in {_span(view.full, frame)}; {view.full.reason}"
    yield from (f"  {note}" for note in view.notes)


def _ended(view: ScanView, now: float) -> str:
    scan, name = view.scan, work_name(view.scan.name, view.scan.vdev)
    on = f" on {_day_clock(scan.end, now)}" if scan.end else ""
    if scan.state != "finished":
        return f"{name}: {scan.state}{on}"
    found = {fact.label: fact for fact in result_facts(scan, size)}
    errors = found.pop("errors", None)
    found.pop("skipped", None)
    said = "".join(f", {fact.label} {fact.value}" for fact in found.values())
    said += f" in {duration(taken)}" if (taken := seconds_taken(scan)) is not None else ""
    said += f", {errors.value} error{'s' * (errors.value != '1')}" if errors else ""
    return f"{name}: finished{said}{on}"


def _last_scrub(frame: Frame) -> Iterator[str]:
    """Yield the last full scrub, which later scans may have replaced in the list of scans."""
    scrub = frame.scrub
    if scrub.last is None and not scrub.never:
        return
    words = ["none" if scrub.last is None else _day_clock(scrub.last, frame.t)]
    if scrub.age is not None:
        words.append(f"{'pool created ' * scrub.never}{days(scrub.age)} ago")
    if scrub.overdue:
        words.append("overdue")
    yield f"last full scrub: {', '.join(words)}"


def _amounts(view: ScanView) -> str:
    """Return the bytes scanned, issued and repaired; empty for a scan without (an error scrub)."""
    scan = view.scan
    if (*scan.progress_bytes, scan.processed_bytes) == (None, None, None):
        return ""
    words = [f"scanned {size(scan.scanned_bytes)} of {size(scan.total_bytes)}"]
    if scan.two_stage:
        at = f" at {rate(view.issue_rate)}" if view.issue_rate is not None else ""
        words.append(f"issued {size(scan.issued_bytes)}{at}")
    elif view.scan_rate is not None:
        words[0] += f" at {rate(view.scan_rate)}"
    repaired = repaired_fact(scan, size)
    words.append(f"{repaired.label} {repaired.value}")
    return ", ".join(words)


def _eta(view: ScanView, frame: Frame) -> str:
    found = view.estimate
    if found.reason == SUSPENDED:  # zpool's estimate is from before the suspension
        return _no_eta(found.reason)
    zpool = f"; zpool says {duration(view.scan.zpool_eta, 'nothing')}"
    if found.eta is None:
        return f"{_no_eta(found.reason)}{zpool}"
    restarts = f", {counted(view.restarts, 'restart')}" if view.restarts else ""
    return f"ETA {_span(found, frame)}; {found.reason}{zpool}{restarts}"


def _no_eta(reason: str) -> str:
    """Say why there is no ETA: ``no ETA yet: 1 sample``. Most reasons say "no estimate" already."""
    if reason.startswith(MEASURING):
        return f"no ETA yet: {reason}"
    told = reason.replace("no estimate", "no ETA", 1)
    return told if told.startswith("no ETA") else f"no ETA: {reason}"


def _span(found: Estimate, frame: Frame) -> str:
    """Return ``1h26m (1h01m to 2h01m), Sun 22 Nov 20:05``; no date if the sample has none."""
    span = " ".join(filter(None, (duration(found.eta), range_words(found))))
    if frame.sample is not None and not frame.sample.dated:
        return span
    return f"{span}, {_day_clock(frame.t + (found.eta or 0.0), frame.t)}"


def _activity(view: ActivityView, now: float) -> str:
    activity = view.activity
    name = work_name(activity.kind, activity.vdev)
    done = f", {activity.percent:.2f} % done" if activity.percent is not None else ""
    at = f" at {rate(view.rate)}" if view.rate is not None else ""
    eta = f", ETA {duration(view.estimate.eta)}" if view.estimate.eta is not None else ""
    zpool = f"; zpool says {duration(activity.zpool_eta)}" if activity.zpool_eta is not None else ""
    state = "discarding" if activity.discarding else activity.state
    if view.stalled is not None:
        state = f"stuck, no progress for {duration(view.stalled)}"
    if activity.state == "finished":
        on = f" on {_day_clock(activity.end, now)}" if activity.end else ""
        return f"{name}: finished{_moved(activity)}{on}"
    if activity.state == "exists" and activity.start is not None:
        state = f"exists since {_day_clock(activity.start, now)}"
    told = activity.state == "paused" or activity.kind == SCRUB_HOURS
    why = f", {activity.note}" if activity.note and told else ""
    advice = f"; {view.advice}" if view.advice else ""
    return f"{name}: {state}{_moved(activity)}{at}{done}{eta}{zpool}{why}{advice}"


def _moved(activity: Activity) -> str:
    if activity.kind == "condense":
        return f", {activity.note}"
    done, total = activity.done_bytes, activity.total_bytes
    if activity.state == "finished" and done is not None:
        return f", {size(done)}"
    if done is None:
        left = " remaining" if activity.discarding else ""
        return "" if total is None else f", {size(total)}{left}"
    return f", {size(done)}" if total is None else f", {size(done)} of {size(total)}"


def _activity_words(view: ActivityView) -> Iterator[str]:
    """Yield words on a removal, expansion or condensing; not on trims, as a pool may have many."""
    activity = view.activity
    if activity.kind not in _WATCHED or activity.state not in ("running", "paused"):
        return
    yield activity.kind if activity.vdev is None else f"{activity.kind} {activity.vdev}"
    yield activity.state
    if view.stalled is not None:
        yield f"stuck for {duration(view.stalled)}"
    if activity.percent is not None:
        yield f"{activity.percent:.2f} %"
    if activity.kind == "condense":
        yield activity.note
        return
    yield f"{size(activity.done_bytes)}/{size(activity.total_bytes)} at {rate(view.rate)}"
    if view.estimate.eta is not None:
        yield f"ETA {duration(view.estimate.eta)}"


def _scan_words(view: ScanView) -> Iterator[str]:
    scan = view.scan
    yield scan.function if scan.vdev is None else f"{scan.function} {scan.vdev}"
    yield stage_words(scan, view.stage) or scan.state
    if view.percent is not None:
        yield f"{view.percent:.2f} %"
    if not scan.active:
        return
    scanning = scan.function == "rebuild" or not scan.two_stage
    done, total = scan.progress_bytes
    speed = view.scan_rate if scanning else view.issue_rate
    if (done, total, speed) != (None, None, None):
        yield f"{size(done)}/{size(total)} at {rate(speed)}"
    found = view.estimate
    if found.eta is None:
        yield _no_eta(found.reason)
        if found.lacking == MEASURING and scan.zpool_eta is not None:
            yield f"zpool says {duration(scan.zpool_eta)}"
    else:
        yield f"ETA {duration(found.eta)} ({duration(found.low)} to {duration(found.high)})"
    if view.full is not None:
        yield f"{view.full_called} {duration(view.full.eta)}"


def _table(rows: tuple[VdevRow, ...]) -> Iterator[str]:
    width = max(NAME_WIDTH, *(cells(clean(row.vdev.name)) + 2 * row.depth for row in rows))
    rates = f"{'READ/s':>7} {'WRITE/s':>7} {'LATENCY':>7}"
    disks = max((cells(clean(_disk_words(row))) for row in rows), default=0)
    disk = f"  {'DISK':<{disks}}" if disks else ""
    yield f"{'NAME':<{width}}  {'STATE':<9} {rates} {'ERRORS':>11}{disk}"
    vclass = "normal"
    for row in rows:
        if row.vdev.vclass != vclass and row.depth == 1:
            vclass = row.vdev.vclass
            if vclass != "normal":
                yield vclass
        yield _table_row(row, width, disks)


def _disk_words(row: VdevRow) -> str:
    """Return the bay and identity of a leaf's disk, as far as the leaf's name doesn't have them."""
    return "" if row.vdev.disk is None else row.vdev.disk.words(row.vdev.name)


def _table_row(row: VdevRow, width: int, disks: int) -> str:
    vdev, rates = row.vdev, row.rates
    name = padded(f"{'  ' * row.depth}{clean(vdev.name)}", width)
    counters = (vdev.errors.read, vdev.errors.write, vdev.errors.cksum)
    errors = "" if None in counters else " ".join(size(c) for c in counters)
    notes = [vdev.note] if vdev.note else []
    if vdev.errors.slow:
        notes.append(f"{size(vdev.errors.slow)} slow I/O{'s' * (vdev.errors.slow != 1)}")
    if row.slow_sibling:
        notes.append(f"slow: {row.slow_sibling}")
    disk = f"  {padded(clean(_disk_words(row)), disks)}" if disks else ""
    return (
        f"{name}  {vdev.state:<9} {size(rates.read, ''):>7} {size(rates.write, ''):>7} "
        f"{latency(rates.latency):>7} {errors:>11}{disk}  {', '.join(notes)}"
    )


def balance_lines(found: Balance) -> Iterator[str]:
    """Yield spread and bytes to move, each vdev's fill and share of new writes, then volumes."""
    if all(vdev.fill is None for vdev in found.vdevs):
        yield "balance: needs zpool list -v"
        return
    spread, moving = percent(found.spread, 1), size(found.imbalance_bytes)
    yield f"balance: spread {spread}, {moving} to move for an even pool (raw)"
    width = max((cells(clean(v.name)) for v in found.vdevs), default=0)
    yield from (_balance_line(vdev, width) for vdev in found.vdevs)
    yield from (f"  {told}" for told in volume_sentences(found.volumes, size))


def _balance_line(vdev: VdevBalance, width: int) -> str:
    filled = "" if vdev.fill is None else "#" * round(min(1.0, max(0.0, vdev.fill)) * BAR_WIDTH)
    words = [
        f"  {padded(clean(vdev.name), width)}  {filled:.<{BAR_WIDTH}}",
        f"{percent(vdev.fill, 1):>7}",
        f"{size(vdev.free_bytes):>5} free",
    ]
    if vdev.frag is not None:
        words.append(f"{percent(vdev.frag)} fragmented")
    if vdev.new_write_share is not None:
        words.append(f"{percent(vdev.new_write_share)} of new writes")
    return "  ".join(words)


def _errors(frame: Frame) -> Iterator[str]:
    if frame.seen.error_count:
        yield ""
        yield f"data errors: {frame.seen.error_count}"
        for path in frame.seen.errors or ():
            yield f"  {path}"
            if note := explained(path, frame.seen.destroyed):
                yield f"      {note}"
        if not frame.seen.errors:
            yield "  (for the file names: zpool status -v, as root)"


def _day_clock(at: float, now: float) -> str:
    """Return day and time, with the year unless it is the current one."""
    then, today = date_of(at, None), date_of(now, None)
    return then.strftime("%a %d %b %H:%M" if then.year == today.year else "%a %d %b %Y %H:%M")
