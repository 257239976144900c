"""Where the bytes to move lie now, how that is known, and what goes to special vdevs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning import blocks
from zconsole.rebalance.planning.blocks import Listed
from zconsole.rebalance.planning.facts import Dataset, FactsReader, PoolFacts
from zconsole.rebalance.planning.plan_document import PlanDocument, PredictedFill
from zconsole.rebalance.planning.plan_model import DirectoryPlan, RebalancePlan
from zconsole.rebalance.planning.settings import EVEN, FLOOR, Limits

LARGE_FIRST = "large before small"
OLD_FIRST = f"older than the newest vdev first, then {LARGE_FIRST}"
SPECIAL_FULL = 0.75
"""Fill of the special vdevs from which on small blocks of data go to the normal ones
(zfs_special_class_metadata_reserve_pct is 25 %, module/zfs/spa_misc.c)."""
SAMPLED_BLOCKS = 1 << 16
"""Of the files whose blocks are listed: zdb has a line for every block."""


def listed(reader: FactsReader, plans: Sequence[DirectoryPlan]) -> list[Listed]:
    """What zdb has to say of the sampled files of each directory (root), by inode."""
    found: list[Listed] = []
    for plan in plans:
        dataset, asked = plan.place.dataset, os.geteuid() == 0
        inodes = plan.found.sample.inodes(SAMPLED_BLOCKS) if dataset and asked else []
        found.append(blocks.listed(reader.run, dataset.name, inodes) if dataset and inodes else {})
    return found


def source(
    plans: Sequence[DirectoryPlan], pool: PoolFacts, listed: Sequence[Listed]
) -> tuple[list[float] | None, str]:
    """Share of the bytes to move that lies on each vdev now, and the estimate it comes from.

    None stands for the shares of all data.
    """
    files = [file for each in listed for file in each.values()]
    found = [block for file in files for block in file]
    names = [space.name for space in pool.spaces]
    shares = blocks.vdev_shares(found, names, bool(pool.special)) if found else None
    if shares is not None:
        return shares, f"zdb on {len(files)} sampled files"
    allocated = sum(plan.found.allocated for plan in plans)
    if pool.added is not None and allocated:
        older = sum(plan.found.old_allocated for plan in plans) / allocated
        return allocator.by_age(pool.spaces, older), f"age: {older:.0%} older than the newest vdev"
    return None, "assumes uniform data"


def special_limit(dataset: Dataset | None) -> float:
    """Files up to this size (bytes) are written to special vdevs; 0 where none are."""
    limit = dataset.number("special_small_blocks") or 0 if dataset else 0
    record = dataset.number("recordsize") or 0 if dataset else 0
    return float("inf") if limit and record <= limit else limit


def special(plans: Sequence[DirectoryPlan], pool: PoolFacts) -> list[Space]:
    """The special vdevs afterwards, at most: as if none of the small blocks were there yet."""
    small = sum(plan.found.special_allocated for plan in plans)
    free = sum(space.free for space in pool.special)
    share = min(1.0, small / free) if free else 0.0
    return [replace(space, alloc=space.alloc + share * space.free) for space in pool.special]


def special_notes(vdevs: Sequence[PredictedFill]) -> list[str]:
    """What the operator should know about small blocks."""
    notes = [
        f"special vdev {vdev.name}: {vdev.fill_before:.0%} full,"
        f" at most {vdev.fill_after:.0%} afterwards"
        for vdev in vdevs
        if vdev.fill_after > vdev.fill_before
    ]
    if any(vdev.fill_after > SPECIAL_FULL for vdev in vdevs) and notes:
        notes.append(f"above {SPECIAL_FULL:.0%} small blocks go to the normal vdevs")
    return notes


def predicted(
    plans: Sequence[DirectoryPlan],
    pool: PoolFacts | None,
    limits: Limits,
    listed: Sequence[Listed],
) -> PlanDocument:
    """Where the bytes will lie: the pool afterwards, and what reaches the wanted spread."""
    made = PlanDocument(
        tuple(plan.document() for plan in plans),
        available_bytes=min(plan.found.room for plan in plans),
        estimate="size",
        order=OLD_FIRST if pool and pool.added else LARGE_FIRST,
    )
    if pool is None:
        return made
    target = limits.until_spread if limits.until_spread is not None else EVEN
    lies, estimate = source(plans, pool, listed)
    allocated = sum(plan.found.allocated for plan in plans)
    pinned = sum(plan.pinned_most for plan in plans) / allocated if allocated else 0.0
    size = made.bytes
    by_byte = allocated / size * pool.raw_factor if size else pool.raw_factor
    limit = by_byte * min(size, limits.max_bytes or size)
    raw = allocator.raw_to_target(pool.spaces, target, limit, lies, pinned)
    moved = limit if limits.until_spread is None or raw is None else raw
    after = allocator.rewritten(pool.spaces, moved, lies, pinned)
    return replace(
        made,
        pool=pool.name,
        spread_before=allocator.spread(pool.spaces),
        spread_after=allocator.spread(after),
        target_spread=target,
        bytes_to_target=None if raw is None or not by_byte else round(raw / by_byte),
        fragmentation=pool.fragmentation,
        scanning=pool.scanning,
        raw_factor=pool.raw_factor,
        vdevs=fills(pool.spaces, after),
        special=fills(pool.special, special(plans, pool)),
        estimate=estimate,
    )


def fills(before: Sequence[Space], after: Sequence[Space]) -> tuple[PredictedFill, ...]:
    """Fill of every vdev, now and afterwards."""
    pairs = zip(before, after, strict=True)
    return tuple(PredictedFill(now.name, now.fill, then.fill) for now, then in pairs)


def available(root: bytes, pool: PoolFacts | None, limits: Limits) -> int:
    """Bytes that may be written to a directory before the free-space floor is reached."""
    status = os.statvfs(root)
    free = status.f_bavail * status.f_frsize
    if pool is None:
        return max(0, free - round((limits.min_free or 0.0) * status.f_blocks * status.f_frsize))
    return max(0, round(min(free, above_floor(pool, limits))))


def above_floor(pool: PoolFacts, limits: Limits) -> float:
    """Bytes that may be written to a pool before the free-space floor is reached."""
    share = FLOOR if limits.min_free is None else limits.min_free
    return (pool.number("free") - share * pool.number("size")) / pool.raw_factor


def floors(plan: RebalancePlan) -> dict[str, tuple[int, float]]:
    """By root: free bytes that are not for the job, and what a share to keep free is a share of."""
    pool, found = plan.pool, {}
    for directory in plan.directories:
        status = os.statvfs(directory.place.root)
        free = status.f_bavail * status.f_frsize
        whole = pool.number("size") / pool.raw_factor if pool else status.f_blocks * status.f_frsize
        found[os.fsdecode(directory.place.root)] = (max(0, free - directory.found.room), whole)
    return found
