"""Plans and summaries of jobs as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zconsole.rebalance.planning import hot_directories
from zconsole.rebalance.planning.pool_text import looked_words, pool_lines
from zconsole.units import clean, size

ALIKE = 0.05
"""Changes of size up to this share are within what a sample tells."""


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """A plan as ``RebalancePlan.as_json`` has it: its directories, the spread, and what to know."""
    lines = []
    for part in plan["directories"]:
        lines.append(
            f"{clean(part['dir'])}: {part['files']} files, {size(part['bytes'])},"
            f" engine {part['engine'] or 'none'} ({part['why']})"
        )
        lines += [f"  skipped: {count} ({reason})" for reason, count in part["skipped"].items()]
        looked = looked_words(part["sampled"], part["engine"])
        best = hot_directories.words(part["below"], part["old_bytes"], size, clean)
        lines += [f"  {line}" for line in (looked, best) if line]
        lines += [
            f"  {size(count)} stay allocated ({cause})"
            for cause, count in part["pinned_bytes"].items()
            if count
        ]
        sizes = (part[key] for key in ("allocated_bytes", "allocated_after_bytes", "sizes_from"))
        if line := size_line(*sizes):
            lines.append(f"  {clean(line)}")
        if part["next_incremental_bytes"]:
            lines.append(f"  next incremental send: {size(part['next_incremental_bytes'])} more")
    if plan["spread_before"] is not None:
        lines.append(
            f"spread of pool {clean(plan['pool'])}: {plan['spread_before']:.3f} now,"
            f" {plan['spread_after']:.3f} after ({plan['estimate']})"
        )
        lines.append(
            f"to move for a spread of {plan['target_spread']:g}: {size(plan['bytes_to_target'])}"
        )
    lines += pool_lines(plan)
    lines += [f"note: {clean(note)}" for note in plan["notes"]]
    if plan["refused"]:
        lines.append(f"refused: {clean(plan['refused'])}")
    return lines


def is_alike(before: int, after: int | None) -> bool:
    """Whether two sizes are the same, as far as a sample tells."""
    return after is not None and abs(after - before) <= ALIKE * before


def size_line(
    before: int, after: int | None, basis: str | None, show: Callable[[int], str] = size
) -> str | None:
    """What the blocks of a directory take, now and afterwards (bytes); None off ZFS."""
    if basis is None or not before:
        return None
    if after is None:
        return f"takes {show(before)}; afterwards not known: {basis}"
    much = "about as much" if is_alike(before, after) else f"about {show(after)}"
    return f"takes {show(before)}, afterwards {much} ({basis})"


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """What a run came to."""
    lines = [
        f"moved {summary['files_moved']} files, {size(summary['bytes_moved'])};"
        f" skipped {summary['files_skipped']}, failed {summary['files_failed']};"
        f" {summary['stopped_by']}"
    ]
    lines += [f"  skipped: {count} ({reason})" for reason, count in summary["skipped"].items()]
    for vdev in summary["vdevs"] or ():
        before, after = size(vdev["alloc_before"]), size(vdev["alloc_after"])
        lines.append(f"  {clean(vdev['name'])}: {before} -> {after}")
    return lines


def left_out_lines(left: Mapping[str, Any]) -> Iterator[str]:
    """What ``aftermath.as_json`` tells: reasons with their numbers, then files."""
    for outcome in ("failed", "skipped"):
        for reason, count in left[outcome].items():
            yield f"  {outcome}: {count} ({clean(reason)})"
    for file in left["left_out"]:
        yield f"    {file['outcome']}: {clean(file['path'])}: {clean(file['reason'] or '')}"
