"""Text output of jobs: while they run, at their end, and as their status.

A job keeps running if its output is closed.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from zconsole.rebalance.backend import JobStatus, JobView, own_days
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


def job_line(job: JobView) -> str:
    """Render a job on one line: id, state and progress."""
    why = f" ({clean(job.why)})" if job.why else ""
    moved = f"{size(job.bytes_handled)} of {size(job.goal)} logical"
    dirs = clean(" ".join(job.settings.dirs))
    return f"{job.job}  {job.state}{why}  {moved}  {job.engine}  {dirs}"


def job_lines(job: JobView) -> Iterator[str]:
    """Render a job in full: with its rate, vdevs, days, notes and the files left out."""
    yield job_line(job)
    if job.settings.accept_races:
        yield "  lost writes were accepted: another program's write may be lost"
    if job.files_total is not None:
        pace = f", at {rate(job.rate)}, ETA {duration(job.eta_seconds)}" if job.rate else ""
        # It is unknown how many files a job has that ends before its last one.
        yield f"  {job.files_done}{f' of {job.files_total}' * job.whole} files{pace}"
    if job.current:
        yield f"  now: {clean(job.current)}"
    yield from vdev_lines(job.vdevs or ())
    yield from map(_day, own_days(job.days))
    yield from (f"  note: {clean(note)}" for note in job.notes)
    for outcome, reasons in (("failed", job.failed), ("skipped", job.skipped)):
        for reason, count in reasons.items():
            yield f"  {outcome}: {count} ({clean(reason)})"
    for file in job.left_out:
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
