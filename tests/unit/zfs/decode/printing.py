"""Prints a model pool as ``zpool status`` of OpenZFS 2.2 to 2.4 does, to be decoded again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from zconsole.pool.model import Activity, Pool, Scan, Vdev
from zconsole.units import size

_HEADINGS = {
    "dedup": "dedup",
    "special": "special",
    "log": "logs",
    "cache": "cache",
    "spare": "spares",
}


def printed(pool: Pool) -> str:
    """Return the text of one pool."""
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
    return [
        f"expand: expansion of {activity.vdev} in progress since {ctime(activity.start)}",
        f"\t{done} / {total} copied at 1M/s, {activity.percent:.2f}% done, 00:00:09 to go",
    ]


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
