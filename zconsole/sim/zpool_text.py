"""Prints a pool as ``zpool`` of OpenZFS 2.2 to 2.4 does: status, iostat and events; dates in UTC.

Formats: cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from zconsole.pool.model import Activity, Event, Pool, Scan, Vdev
from zconsole.units import size

_HEADINGS = {
    "dedup": "dedup",
    "special": "special",
    "log": "logs",
    "cache": "cache",
    "spare": "spares",
}


def status(pool: Pool) -> str:
    """Return the text of one pool as ``zpool status -v`` prints it."""
    lines = [f"  pool: {pool.name}", f" state: {pool.state}"]
    for tag, text in (("status", pool.message), ("action", pool.action), ("   see", pool.see)):
        if text:
            lines += f"{tag}: {text}".replace(". ", ".\n\t").splitlines()
    for scan in pool.scans:
        lines += _scan(scan)
    lines += [line for activity in pool.activities for line in _activity(activity)]
    lines += ["config:", "", *_config(pool.root), "", *_errors(pool)]
    return "\n".join(lines) + "\n"


def ctime(moment: float | None) -> str:
    """Return a date like ``Sun Aug  3 15:14:45 2014`` in UTC."""
    when = datetime.fromtimestamp(moment or 0, UTC)
    return f"{when:%a %b} {when.day:2d} {when:%H:%M:%S %Y}"


def clock(seconds: float) -> str:
    """Return ``1 days 02:03:04``, or without days if there are none (secs_to_dhms, 2.0+)."""
    days, rest = divmod(int(seconds), 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days} days {text}" if days else text


def nice(number: float | None) -> str:
    """Return a number as zfs_nicebytes prints it: like zfs_nicenum, with a B below 1024."""
    text = size(number)
    return f"{text}B" if text.isdigit() else text


def _scan(scan: Scan) -> list[str]:
    what = "scrub" if scan.function == "scrub" else "resilver"
    vdev = f" ({scan.vdev})" if scan.vdev else ""
    if scan.state == "canceled":
        return [f"  scan: {what}{vdev} canceled on {ctime(scan.end)}"]
    if scan.state == "finished":
        done = "scrub repaired" if what == "scrub" else f"resilvered{vdev}"
        taken = clock(scan.duration or 0)
        head = f"  scan: {done} {nice(scan.processed_bytes)} in {taken}"
        return [f"{head} with {scan.errors} errors on {ctime(scan.end)}"]
    return [*_started(scan, f"{what}{vdev}"), *_progress(scan)]


def _started(scan: Scan, what: str) -> list[str]:
    if scan.state == "running":
        return [f"  scan: {what} in progress since {ctime(scan.start)}"]
    paused = f"  scan: {what} paused since {ctime(scan.paused_since)}"
    return [paused, f"\tscrub started on {ctime(scan.start)}"]


def _progress(scan: Scan) -> Iterator[str]:
    scan_rate = f" at {nice(scan.zpool_scan_rate)}/s" if scan.zpool_scan_rate else ""
    issue_rate = f" at {nice(scan.zpool_issue_rate)}/s" if scan.zpool_issue_rate else ""
    total, to_issue = nice(scan.total_bytes), nice(scan.to_issue_bytes)
    yield (
        f"\t{nice(scan.scanned_bytes)} / {total} scanned{scan_rate},"
        f" {nice(scan.issued_bytes)} / {to_issue} issued{issue_rate}"
    )
    eta = ", no estimated completion time"
    if scan.zpool_eta is not None:
        eta = f", {clock(scan.zpool_eta)} to go"
    verb = "repaired" if scan.function == "scrub" else "resilvered"
    done = f"\t{nice(scan.processed_bytes)} {verb}, {scan.percent:.2f}% done"
    yield done + (eta if scan.state == "running" else "")


def _activity(activity: Activity) -> list[str]:
    if activity.kind == "checkpoint":
        space = size(activity.total_bytes)
        return [f"checkpoint: created {ctime(activity.start)}, consumes {space}"]
    done, total = size(activity.done_bytes), size(activity.total_bytes)
    since = f"of {activity.vdev} in progress since {ctime(activity.start)}"
    if activity.kind == "removal":
        head, copied = f"remove: Evacuation {since}", f"{done} copied out of {total}"
    else:
        head, copied = f"expand: expansion {since}", f"{done} / {total} copied"
    rate, left = activity.zpool_rate, activity.zpool_eta
    at = "" if rate is None else f" at {size(rate)}/s"
    to_go = ", (copy is slow, no estimated time)" if left is None else f", {clock(left)} to go"
    return [head, f"\t{copied}{at}, {activity.percent:.2f}% done{to_go}"]


def _config(root: Vdev) -> Iterator[str]:
    width = max(10, *(2 * depth + len(name.encode()) for depth, name in _names(root, 0)))
    yield f"\t{'NAME':{width}}  STATE     READ WRITE CKSUM"
    yield _row(root, 0, width)
    heading = "normal"
    for child in root.children:
        if child.vclass != heading:
            heading = child.vclass
            yield f"\t{_HEADINGS[heading]}\t"
        yield from _rows(child, 1, width)


def _names(vdev: Vdev, depth: int) -> Iterator[tuple[int, str]]:
    yield depth, vdev.name
    for child in vdev.children:
        yield from _names(child, depth + 1)


def _rows(vdev: Vdev, depth: int, width: int) -> Iterator[str]:
    yield _row(vdev, depth, width)
    for child in vdev.children:
        yield from _rows(child, depth + 1, width)


def _padded(name: str, width: int) -> str:
    """Pad like printf: to a number of bytes, not characters."""
    return name + " " * (width - len(name.encode()))


def _row(vdev: Vdev, depth: int, width: int) -> str:
    errors = vdev.errors
    cells = f"\t{'  ' * depth}{_padded(vdev.name, width - 2 * depth)}  {vdev.state:8s}"
    if vdev.vclass != "spare":
        cells += f" {size(errors.read):>5} {size(errors.write):>5} {size(errors.cksum):>5}"
    return f"{cells}  {vdev.note}" if vdev.note else cells


def _errors(pool: Pool) -> list[str]:
    if pool.errors:
        head = "errors: Permanent errors have been detected in the following files:"
        return [head, "", *(f"        {name}" for name in pool.errors)]
    if pool.error_count:
        return [f"errors: {pool.error_count} data errors, use '-v' for a list"]
    return ["errors: No known data errors"]


_COLUMNS = 6
"""Columns of ``zpool iostat -v`` besides the name."""


def iostat(pool: Pool) -> str:
    """Return the text of one pool as ``zpool iostat -v`` prints it: averages since its import."""
    rows = [*_iostat_rows(pool.root, 0)]
    width = max(10, *(len(name) for name, _ in rows))
    rule = "  ".join(("-" * width, *("-----",) * _COLUMNS))
    heads = ("alloc", "free", "read", "write", "read", "write")
    lines = [
        f"{'':{width}}    capacity     operations     bandwidth ",
        _iostat_line("pool", heads, width),
        rule,
        *(_iostat_line(name, cells, width) for name, cells in rows),
        rule,
    ]
    return "\n".join(lines) + "\n"


def _iostat_line(name: str, cells: Iterable[str], width: int) -> str:
    return "  ".join((f"{name:{width}}", *(f"{cell:>5}" for cell in cells)))


def _iostat_rows(vdev: Vdev, depth: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the indented name and the cells of a vdev, and of those below it."""
    cells = ["-"] * _COLUMNS
    total, used = vdev.size_bytes, vdev.alloc_bytes
    if depth < 2 and total is not None and used is not None:
        cells[:2] = size(used), size(total - used)
    if (io := vdev.io) is not None and io.timestamp > 0:
        counts = io.read_ops, io.write_ops, io.read_bytes, io.write_bytes
        cells[2:] = [size(int(count / io.timestamp)) for count in counts]
    yield f"{'  ' * depth}{vdev.name}", cells
    heading = "normal"
    for child in vdev.children:
        if child.vclass == "spare":  # iostat leaves hot spares out
            continue
        if depth == 0 and child.vclass != heading:
            heading = child.vclass
            yield _HEADINGS[heading], ["-"] * _COLUMNS
        yield from _iostat_rows(child, depth + 1)


_CLASSES = {"statechange": "resource", "io_failure": "ereport"}
"""First word of the class of events that are no ``sysevent`` (include/sys/fm/fs/zfs.h)."""


def events(happened: Iterable[Event]) -> str:
    """Return events as ``zpool events`` prints them."""
    lines = [f"{'TIME':30} CLASS"]
    for event in happened:
        when = f"{datetime.fromtimestamp(event.t, UTC):%b %d %Y %H:%M:%S.%f}000"
        lines.append(f"{when:30} {_CLASSES.get(event.name, 'sysevent')}.fs.zfs.{event.name}")
    return "\n".join(lines) + "\n"
