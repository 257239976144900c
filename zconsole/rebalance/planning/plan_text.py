"""A plan as text for people, and the sentences of it that the console shows as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from zconsole.rebalance.planning import hot_directories
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory, PredictedFill
from zconsole.units import clean, size

ALIKE = 0.05
"""Changes of size up to this share are within the error of a sample."""


def plan_lines(plan: PlanDocument) -> list[str]:
    """A plan: its directories, the spread, the pool, and what to know."""
    lines = [line for part in plan.directories for line in _directory(part)]
    if plan.pool is not None:
        lines.append(
            f"spread of pool {clean(plan.pool)}: {plan.spread_before:.3f} now,"
            f" {plan.spread_after:.3f} after ({plan.estimate})"
        )
        lines.append(
            f"to move for a spread of {plan.target_spread:g}: {size(plan.bytes_to_target)}"
        )
    lines += _pool(plan)
    lines += [f"note: {clean(note)}" for note in plan.notes]
    if plan.refused:
        lines.append(f"refused: {clean(plan.refused)}")
    return lines


def _directory(part: PlannedDirectory) -> Iterator[str]:
    yield (
        f"{clean(part.dir)}: {part.files} files, {size(part.bytes)},"
        f" engine {part.engine or 'none'} ({part.why})"
    )
    yield from (f"  skipped: {count} ({reason})" for reason, count in part.skipped.items())
    seen = sample_words(part.sampled, part.engine)
    best = hot_directories.words(part.below, part.old_bytes, size, clean)
    yield from (f"  {line}" for line in (seen, best) if line)
    for cause, count in part.pinned_bytes.items():
        if count:
            yield f"  {size(count)} stay allocated ({cause})"
    if line := size_line(part.allocated_bytes, part.allocated_after_bytes, part.sizes_from):
        yield f"  {clean(line)}"
    if part.next_incremental_bytes:
        yield f"  next incremental send: {size(part.next_incremental_bytes)} more"


def _pool(plan: PlanDocument) -> Iterator[str]:
    """The fill of every vdev now and then, and what the move has to get along with."""
    yield from (f"  {_fill(vdev)} then" for vdev in plan.vdevs or ())
    yield from (f"  {_fill(vdev)} then at most (special)" for vdev in plan.special or ())
    words = [f"{size(plan.available_bytes)} may be used before the free-space floor"]
    if plan.fragmentation is not None:
        words.append(f"free space is {plan.fragmentation:.0%} fragmented")
    yield "; ".join(words)
    yield f"order of files: {plan.order}"


def _fill(vdev: PredictedFill) -> str:
    return f"{clean(vdev.name)}: {vdev.fill_before:.1%} full now, {vdev.fill_after:.1%}"


def sample_words(sampled: Mapping[str, int], engine: str | None) -> str | None:
    """What the files that a plan opened showed of those a run will skip; None for nothing.

    ``sampled`` counts them by what was seen, those that could be opened under ``opened``.
    """
    opened = sampled.get("opened", 0)
    # In place nothing is taken from under a process that writes.
    harmless = {"opened", *(("open for writing",) if engine == "rewrite" else ())}
    seen = [f"{files} {clean(word)}" for word, files in sampled.items() if word not in harmless]
    return f"in a sample of files, {opened} of them opened: {', '.join(seen)}" if seen else None


def is_alike(before: int, after: int | None) -> bool:
    """Whether two sizes are the same, as far as a sample can show."""
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
