"""A job as text for people: one line, and, for who asks for it alone, all there is to tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zconsole.rebalance.planning.plan_text import left_out_lines
from zconsole.units import clean, duration, rate, size


def job_line(data: Mapping[str, Any]) -> str:
    """Which job, its state and how far it is; of the object ``status --json`` prints."""
    done, total = size(data["bytes_done"]), size(data["bytes_total"])
    why = f" ({clean(data['why'])})" if data["why"] else ""
    dirs = clean(" ".join(data["dirs"]))
    return f"{data['job']}  {data['state']}{why}  {done} of {total}  {data['engine']}  {dirs}"


def job_lines(data: Mapping[str, Any], left: Mapping[str, Any]) -> Iterator[str]:
    """The same with its pace, its vdevs, its days, its notes, and ``left`` out files."""
    yield job_line(data)
    if data["accept_races"]:
        yield "  races were accepted: a write of another program may have been lost"
    if data["files_total"] is not None:
        pace = f", at {rate(data['rate'])}, ETA {duration(data['eta_seconds'])}"
        yield f"  {data['files_done']} of {data['files_total']} files{pace if data['rate'] else ''}"
    if data["current"]:
        yield f"  now: {clean(data['current'])}"
    yield from vdev_lines(data["vdevs"] or ())
    yield from map(_day, data["days"])
    yield from (f"  note: {clean(note)}" for note in data["notes"])
    yield from left_out_lines(left)


def vdev_lines(vdevs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What every vdev held at the beginning, and holds now."""
    for vdev in vdevs:
        before, after = vdev["alloc_before"], vdev["alloc_after"]
        moved = f"{'+' if after >= before else ''}{size(after - before)}"
        yield f"  {clean(vdev['name'])}: {size(before)} -> {size(after)} ({moved})"


def _day(day: Mapping[str, Any]) -> str:
    """One day of a job: the figures are those at its end, or as of now."""
    spread, holes = day.get("spread"), day.get("fragmentation")
    words = [
        f"{size(day.get('moved_bytes'))} done",
        f"{day.get('files_done', '-')} files",
        f"{day.get('files_skipped', '-')} skipped",
        f"{day.get('files_failed', '-')} failed",
        f"spread {'-' if spread is None else f'{spread:.3f}'}",
        f"{'-' if holes is None else f'{holes:.0%}'} fragmented",
        f"{size(day.get('free_bytes'))} free",
        f"ETA {duration(day.get('eta_seconds'))}",
    ]
    return f"  {clean(str(day.get('day', '')))}: {', '.join(words)}"
