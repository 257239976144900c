"""A plan as text for people, and the sentences of it that the console shows as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from zconsole.rebalance.planning import hot_directories
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory, PredictedFill
from zconsole.system.printable import clean
from zconsole.units import size

ALIKE = 0.05
"""Changes of size up to this share are within the error of a sample."""
PINS = {
    "snapshots": "snapshots",
    "clones": "clones",
    "checkpoint": "the checkpoint",
    "dedup": "dedup",
    "block_clones": "block clones",
}

Sentence = tuple[str, str]
"""Its text, not yet safe for a terminal, and its role on a screen."""


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
    lines += [f"  {_fill(vdev)} then" for vdev in plan.vdevs or ()]
    lines += [f"  {_fill(vdev)} then at most (special)" for vdev in plan.special or ()]
    lines += [clean(text) for text, _ in cost_sentences(plan, size)]
    lines += [f"note: {clean(note)}" for note in plan.notes]
    if plan.refused:
        lines.append(f"refused: {clean(plan.refused)}")
    return lines


def _directory(part: PlannedDirectory) -> Iterator[str]:
    yield (
        f"{clean(part.dir)}: {part.files} files, {size(part.bytes)},"
        f" engine {part.engine or 'none'} ({part.why})"
    )
    yield from (f"  {clean(text)}" for text, _ in file_sentences(part, size))
    if line := size_line(part.allocated_bytes, part.allocated_after_bytes, part.sizes_from):
        yield f"  {clean(line)}"


def file_sentences(part: PlannedDirectory, show: Callable[[float], str]) -> Iterator[Sentence]:
    """What there is to know of a directory's files; ``show`` words a size."""
    for reason, files in part.skipped.items():
        yield f"{files} skipped: {reason}", "warning"
    if seen := sample_words(part.sampled, part.engine):
        yield seen, "warning"
    if best := hot_directories.words(part.below, part.old_bytes, show):
        yield best, "notice"


def cost_sentences(plan: PlanDocument, show: Callable[[float], str]) -> Iterator[Sentence]:
    """What the move costs, and what it has to get along with; ``show`` words a size."""
    for cause, words in PINS.items():
        if held := sum(part.pinned_bytes.get(cause) or 0 for part in plan.directories):
            yield f"{show(held)} of old blocks stay, held by {words}", "warning"
    if sent := sum(part.next_incremental_bytes or 0 for part in plan.directories):
        yield f"the next incremental send grows by {show(sent)}", "warning"
    if plan.order:
        yield f"order of files: {plan.order}", "dim"
    yield f"{show(plan.available_bytes)} may be used before the free-space floor", "dim"
    if plan.fragmentation is not None:
        yield f"the pool's free space is {plan.fragmentation * 100:.0f} % fragmented", "dim"


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
