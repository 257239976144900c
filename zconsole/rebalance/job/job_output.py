"""Text output of jobs: while they run, at their end, and as their status.

A job keeps running if its output is closed.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from zconsole.rebalance.backend import JobStatus, own_days
from zconsole.system.printable import clean, swallow
from zconsole.units import counted, duration, percent, rate, size

PREFIX = "zconsole: "
"""Prefix of our messages."""
Show = Callable[[JobStatus], None]
"""Called with each event of a run."""


def lasting(show: Show) -> Show:
    """Wrap ``show`` so that a closed pipe does not end the job; ``status`` tells its result."""

    def _show(event: JobStatus) -> None:
        try:
            show(event)
        except OSError as error:
            swallow()
            with contextlib.suppress(OSError):
                reason = "closed" if error.errno == errno.EPIPE else error.strerror
                say(f"zconsole: stdout: {reason}; the job goes on")

    return _show


def say(text: str, end: str = "\n") -> bool:
    """Print to stderr; return False if the pipe is closed, which must not end a job."""
    try:
        sys.stderr.write(text + end)
        sys.stderr.flush()
    except BrokenPipeError:
        swallow(sys.stderr)
        return False
    return True


def last_line(text: str) -> str:
    """Return the last nonblank line that a job printed, without our prefix."""
    lines = [line for line in text.split("\n") if line.strip()]
    return lines[-1].removeprefix(PREFIX) if lines else ""


def job_line(data: Mapping[str, Any]) -> str:
    """Render a job on one line: id, state and progress, from the object of ``status --json``."""
    goal = data["bytes_total"] if data.get("bytes_goal") is None else data["bytes_goal"]
    done, total = size(data["bytes_handled"]), size(goal)
    why = f" ({clean(data['why'])})" if data["why"] else ""
    dirs = clean(" ".join(data["dirs"]))
    moved = f"{done} of {total} logical"
    return f"{data['job']}  {data['state']}{why}  {moved}  {data['engine']}  {dirs}"


def job_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Render a job in full: with its rate, vdevs, days, notes and the files left out."""
    yield job_line(data)
    if data["accept_races"]:
        yield "  lost writes were accepted: another program's write may be lost"
    if data["files_total"] is not None:
        pace = f", at {rate(data['rate'])}, ETA {duration(data['eta_seconds'])}"
        # It is unknown how many files a job has that ends before its last one.
        whole = data.get("bytes_goal") in (None, data["bytes_total"])
        total = f" of {data['files_total']}" * whole
        yield f"  {data['files_done']}{total} files{pace if data['rate'] else ''}"
    if data["current"]:
        yield f"  now: {clean(data['current'])}"
    yield from vdev_lines(data["vdevs"] or ())
    yield from map(_day, own_days(data["days"]))
    yield from (f"  note: {clean(note)}" for note in data["notes"])
    for outcome in ("failed", "skipped"):
        for reason, count in data[outcome].items():
            yield f"  {outcome}: {count} ({clean(reason)})"
    for file in data["left_out"]:
        yield f"    {file['outcome']}: {clean(file['path'])}: {clean(file['reason'] or '')}"


def vdev_lines(vdevs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Render the allocation of each vdev at the start and now."""
    for vdev in vdevs:
        before, after = vdev["alloc_before"], vdev["alloc_after"]
        moved = f"{'+' if after >= before else ''}{size(after - before)}"
        yield f"  {clean(vdev['name'])}: {size(before)} -> {size(after)} raw ({moved})"


def _day(day: Mapping[str, Any]) -> str:
    """Render one day of a job: its work, and the state of the pool at its end."""
    words = [
        f"{size(day.get('moved_bytes'))} done",
        f"{day.get('files_done', '-')} files",
        f"{day.get('files_skipped', '-')} skipped",
        f"{day.get('files_failed', '-')} failed",
        f"spread {percent(day.get('spread'), 1)}",
        f"{percent(day.get('fragmentation'))} fragmented",
        f"{size(day.get('free_bytes'))} raw free",
    ]
    return f"  {clean(str(day.get('day', '')))}: {', '.join(words)}"


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """Render the summary of a run."""
    lines = [
        f"moved {counted(summary['files_moved'], 'file')}, {size(summary['bytes_moved'])} logical;"
        f" skipped {summary['files_skipped']}, failed {summary['files_failed']};"
        f" {summary['stopped_by']}"
    ]
    lines += [f"  skipped: {count} ({reason})" for reason, count in summary["skipped"].items()]
    return [*lines, *vdev_lines(summary["vdevs"] or ())]
