"""Prediction of a job's result, for each directory and for the pool.

Where blocks are now, and from which evidence; where they will be, and the space they will take.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from zconsole.pool import allocator
from zconsole.pool.allocator import Space, new_write_shares
from zconsole.pool.volumes import file_bytes, volume_limit
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import (
    Dataset,
    Extent,
    FactsReader,
    JobDirectory,
    Listed,
    PoolFacts,
)
from zconsole.rebalance.planning.fill_new import FullVdevs, full_vdevs, usable_space
from zconsole.rebalance.planning.plan_document import (
    FillNew,
    PlanDocument,
    PlannedDirectory,
    PredictedFill,
)
from zconsole.rebalance.planning.settings import EVEN, Floor, Limits, Settings
from zconsole.rebalance.planning.survey import Survey

_NUMBER = re.compile(r"(mirror|raidz|draid).*-(\d+)$")

TOO_LARGE = "too large for the free space"
BATCH_BYTES = 256 << 20
"""Bytes that a batch of the copy engine has in flight, unless a single file is larger."""


@dataclass(slots=True)
class DirectoryPlan:
    """The plan for one directory, in the making."""

    place: JobDirectory
    found: Survey
    choice: Choice
    files: int
    bytes: int
    pinned: dict[str, int | None] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    """Current properties that its files were not written with."""
    shared: bool = False
    """Whether other hosts may have its files open."""
    in_flight: int = 0
    """Most bytes that exist twice while the job runs."""
    pinned_room: int | None = None
    """Free bytes for old blocks that stay, if a refquota leaves less for its files; else None."""
    held_most: int = 0
    """Most bytes that snapshots may hold: changed files may share blocks with a snapshot, too."""
    listed: Listed = field(default_factory=dict)
    """Blocks of the sampled files, as zdb lists them."""
    grown: float = 1.0
    """Bytes that its blocks will take for each byte now (``growth_of``)."""
    rewritten: float = 0.0
    """Share of the old files' sampled blocks rewritten since the newest vdev was added."""

    @property
    def room(self) -> int:
        """Free bytes beyond what is kept free, for blocks that move and blocks that stay."""
        return self.found.room if self.pinned_room is None else self.pinned_room

    @property
    def extents(self) -> list[Extent]:
        """All listed blocks."""
        return [extent for file in self.listed.values() for extent in file]

    @property
    def pinned_least(self) -> int:
        """Bytes that stay allocated after the move if all causes hold the same blocks."""
        return max((n or 0 for n in self.pinned.values()), default=0)

    @property
    def pinned_most(self) -> int:
        """Bytes that stay allocated if each cause holds other blocks.

        A clone's blocks are those of a snapshot.
        """
        found = {cause: n or 0 for cause, n in self.pinned.items()}
        held = max(found.pop("snapshots", 0), found.pop("clones", 0), self.held_most)
        return min(self.found.allocated, held + sum(found.values()))

    def within(self, goal: int, allocated: int) -> int:
        """Limit ``allocated`` to the most that ``goal`` bytes of its files can take."""
        # The files that move first may be less compressed or less sparse than the average.
        return min(allocated, round(goal * max(1.0, self.stored)))

    def growth(self, goal: int) -> int:
        """Bytes by which the blocks grow when ``goal`` bytes of files have moved, at least 0."""
        share = min(1.0, goal / self.bytes) if self.bytes else 0.0
        return max(0, round(self.found.allocated * (self.grown - 1) * share))

    @property
    def sent(self) -> int | None:
        """Bytes, without holes, by which the next incremental send (or from a bookmark) grows."""
        dataset, found = self.place.dataset, self.found
        if dataset is None:
            return None
        content = round(found.allocated * dataset.ratio)
        return min(found.snapshot_bytes + found.bookmark_bytes, content)

    @property
    def stored(self) -> float:
        """Bytes of blocks per byte of its files."""
        return self.found.allocated / self.bytes if self.bytes else 0.0

    def note_rewritten(self, added: int) -> None:
        """Count blocks rewritten in place as new, which the ctime of their files does not show.

        ``added``: the txg in which the newest vdev was added.
        """
        moment = self.found.ages.addition or 0.0
        old = {file.st_ino for file in self.found.sample.files if file.st_ctime < moment}
        blocks = [each for inode in old for each in self.listed.get(inode, ())]
        if every := sum(each.raw for each in blocks):
            self.rewritten = sum(each.raw for each in blocks if each.birth >= added) / every
            self.found.old_allocated = round(self.found.old_allocated * (1 - self.rewritten))

    def skip_files(self, reason: str, files: int, size: int) -> None:
        """Skip a number of files with ``size`` bytes in total."""
        self.found.skipped[reason] += files
        self.files -= files
        self.bytes -= size

    def skip_too_large(self) -> None:
        """Skip the files for which there is no room: a copy needs it for a whole file."""
        large = self.found.too_large
        self.found.allocated -= large.allocated
        self.found.old_allocated -= large.old_allocated
        if large.files:
            self.skip_files(TOO_LARGE, large.files, large.bytes)

    def spare_blocks(self, letters: str) -> None:
        """Subtract blocks that options of ``zfs rewrite`` spare: not moved, pinned or sent."""
        if self.choice.engine != "rewrite":
            return
        found = self.found
        if "S" in letters:
            # -S spares a clone's blocks as well: they are in a snapshot, its origin
            # (dmu_objset_block_is_shared).
            self.bytes = max(0, self.bytes - found.snapshot_bytes)
            found.old_allocated = max(0, found.old_allocated - found.snapshot_allocated)
            found.allocated = max(0, found.allocated - found.snapshot_allocated)
            self.pinned |= {"snapshots": 0, "clones": 0}
            self.held_most = 0
        if "C" in letters:
            self.pinned |= {"block_clones": 0}
        if "S" in letters or "P" in letters:
            found.snapshot_bytes = 0
        if "P" in letters:
            found.bookmark_bytes = 0

    def document(self, goal: int) -> PlannedDirectory:
        """Return this plan for display, in a job that moves ``goal`` bytes of files."""
        lasting = self.within(goal, self.pinned_most) + self.growth(goal)
        # If it was rewritten in part, the sample does not tell which subdirectories were.
        known = self.found.ages.addition is not None and self.rewritten in (0.0, 1.0)
        return PlannedDirectory(
            dir=self.place.path,
            dataset=self.place.dataset.name if self.place.dataset else None,
            files=self.files,
            bytes=self.bytes,
            skipped=dict(self.found.skipped),
            sampled=dict(self.found.sampled),
            engine=self.choice.engine,
            why=self.choice.why,
            space_needed_bytes=self.in_flight + lasting,
            pinned_bytes={
                cause: None if held is None else self.within(goal, held)
                for cause, held in self.pinned.items()
            },
            next_incremental_bytes=None if self.sent is None else min(self.sent, goal),
            allocated_bytes=self.found.allocated,
            differs=self.differs,
            old_bytes=self.found.old_allocated if known else None,
            below=tuple(self.found.below.best(known and not self.rewritten)),
        )


class RebalancePlan(NamedTuple):
    """A plan: measurements of all directories and their pool, and the document to display."""

    directories: Sequence[DirectoryPlan]
    pool: PoolFacts | None
    """The pool as it takes writes while the job runs: without the vdevs that are kept from them."""
    document: PlanDocument
    source: Sequence[float] | None = None
    """Share of the bytes to move that is on each vdev; None if unknown."""

    @property
    def allocated(self) -> int:
        """Bytes of all blocks to move."""
        return sum(each.found.allocated for each in self.directories)

    @property
    def raw_factor(self) -> float:
        """Raw bytes per allocated byte of the files, on the vdevs where they are now."""
        if self.pool is None:
            return 1.0
        # The pool's factor is a mean: files on vdevs with more parity take more.
        spaces = self.pool.spaces
        every = allocator.shares(spaces)
        here = every if self.source is None else self.source
        times = allocator.data_share(spaces, every) / allocator.data_share(spaces, here)
        return max(1.0, self.pool.raw_factor * times)

    @property
    def pinned(self) -> float:
        """Share of the blocks to move whose old copies stay allocated."""
        held = sum(each.pinned_least for each in self.directories)
        return held / self.allocated if self.allocated else 0.0

    @property
    def stored(self) -> float:
        """Bytes of blocks per byte of all files; 1 if there are none."""
        size = sum(each.bytes for each in self.directories)
        return self.allocated / size if size else 1.0


def vdev_shares(
    blocks: Sequence[Extent], names: Sequence[str], others: bool = False
) -> list[float] | None:
    """Return the share of the blocks' bytes on each named top-level vdev; None if ids don't match.

    With ``others``, blocks may be on further (special) vdevs, which do not count. A vdev's id is
    the number at the end of its name. A plain disk has none: its id is its position among all
    top-level vdevs, which is unknown with ``others``.
    """
    numbers = [_NUMBER.match(name) for name in names]
    if others and None in numbers:
        return None
    ids = [int(number[2]) if number else place for place, number in enumerate(numbers)]
    weight: Counter[int] = Counter()
    for block in blocks:
        weight[block.vdev] += block.size
    total = sum(weight[i] for i in ids)
    if not total or (set(weight) - set(ids) and not others):
        return None
    return [weight[i] / total for i in ids]


USUAL_SECTOR = 4096
_RAIDZ = re.compile(r"raidz(\d)")
_DRAID = re.compile(r"draid(\d):(\d+)d")


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Parity and disks of a top-level vdev; parity 0 for a disk or mirror."""

    sector: int
    parity: int = 0
    disks: int = 1
    """For raidz the current number of disks; for dRAID the data disks of a group."""
    grouped: bool = False

    def raw(self, size: int) -> int:
        """Raw bytes of a block of ``size`` (vdev_raidz_asize, vdev_draid_asize; module/zfs 2.3)."""
        if size == 0:
            return 0
        sectors = -(-size // self.sector)
        if self.grouped:
            return -(-sectors // self.disks) * (self.disks + self.parity) * self.sector
        if self.parity:
            sectors += self.parity * -(-sectors // (self.disks - self.parity))
            # Padded to a multiple of parity + 1, so that no hole too small for a block is left.
            sectors = -(-sectors // (self.parity + 1)) * (self.parity + 1)
        return sectors * self.sector


def layouts_of(pool: PoolFacts) -> list[tuple[float, BlockLayout]]:
    """Return the share of new writes of each vdev of a pool, and its layout."""
    sector, layouts = pool.sector or USUAL_SECTOR, []
    for space in pool.spaces:
        layout = BlockLayout(sector)
        if match := _DRAID.match(space.name):
            layout = BlockLayout(sector, int(match[1]), int(match[2]), grouped=True)
        elif (match := _RAIDZ.match(space.name)) and space.disks > int(match[1]):
            layout = BlockLayout(sector, int(match[1]), space.disks)
        layouts.append(layout)
    return list(zip(new_write_shares(pool.spaces), layouts, strict=True))


def width_ratio(extents: Sequence[Extent], pool: PoolFacts) -> float | None:
    """Ratio of the raw bytes that listed blocks take if rewritten to those now; None if empty."""
    shares = layouts_of(pool)
    before = sum(extent.raw for extent in extents)
    after = sum(
        extent.copies * share * layout.raw(extent.stored)
        for extent in extents
        for share, layout in shares
    )
    return after / before if before else None


DEFLATED = 128 << 10
"""Size of the block by which ZFS takes parity out of what it calls allocated (vdev_deflate_ratio).

Smaller blocks count with what they need more than that.
"""


def growth_of(plan: DirectoryPlan, pool: PoolFacts) -> float:
    """Return the bytes that a directory's blocks will take for each byte now; 1 if unknown.

    As the dataset writes now: with its compression, its copies and, in a copy, its recordsize,
    which adds parity and padding on raidz.
    """
    dataset = plan.place.dataset
    if dataset is None:
        return 1.0
    layouts = [(share / layout.raw(DEFLATED), layout) for share, layout in layouts_of(pool)]
    compressed, copies = dataset.is_on("compression"), dataset.number("copies") or 1
    record = dataset.number("recordsize") if plan.choice.engine == "copy" else None
    before = after = 0.0
    for each in plan.extents:
        size = each.stored if compressed else each.length
        parts = max(1, -(-each.length // record)) if record else 1
        part = -(-size // parts)
        before += each.copies * sum(share * layout.raw(each.stored) for share, layout in layouts)
        after += parts * copies * sum(share * layout.raw(part) for share, layout in layouts)
    return after / before if before else 1.0


LARGE_FIRST = "large before small"
OLD_FIRST = f"older than the newest vdev first, then {LARGE_FIRST}"
SPECIAL_FULL = 0.75
"""Fill of the special vdevs above which small data blocks go to the normal ones.

zfs_special_class_metadata_reserve_pct is 25 % (module/zfs/spa_misc.c).
"""
SAMPLED_BLOCKS = 1 << 16
"""Most blocks to list: zdb prints a line for every block."""


def list_sampled_blocks(
    reader: FactsReader, plans: Sequence[DirectoryPlan], pool: PoolFacts | None
) -> None:
    """List the blocks of each directory's sampled files with zdb (root only)."""
    if pool is None or os.geteuid() != 0:
        return
    added = reader.added_txg(pool.name) if pool.added is not None else None
    for plan in plans:
        if (dataset := plan.place.dataset) is None:
            continue
        if inodes := plan.found.sample.inodes(SAMPLED_BLOCKS):
            plan.listed = reader.blocks(dataset.name, inodes)
        if added is not None:
            plan.note_rewritten(added)


def source(plans: Sequence[DirectoryPlan], pool: PoolFacts) -> tuple[list[float] | None, str]:
    """Return the share of the bytes to move that is on each vdev now, and how it was estimated.

    None means the same shares as for all data.
    """
    found = [block for plan in plans for block in plan.extents]
    names = [space.name for space in pool.spaces]
    shares = vdev_shares(found, names, bool(pool.special)) if found else None
    if shares is not None:
        return shares, f"zdb on {sum(len(plan.listed) for plan in plans)} sampled files"
    allocated = sum(plan.found.allocated for plan in plans)
    if pool.added is not None and allocated:
        older = sum(plan.found.old_allocated for plan in plans) / allocated
        return allocator.by_age(pool.spaces, older), f"age: {older:.0%} older than the newest vdev"
    return None, "assumes uniform data"


def special_limit(dataset: Dataset | None) -> float:
    """Return the size in bytes up to which files go to special vdevs; 0 if none do."""
    limit = dataset.number("special_small_blocks") or 0 if dataset else 0
    record = dataset.number("recordsize") or 0 if dataset else 0
    # If the limit covers a whole record, data blocks of any file are small.
    return float("inf") if limit and record <= limit else limit


def small_blocks(plan: DirectoryPlan) -> float:
    """Bytes of a directory that go to special vdevs: blocks that are small after compression.

    The share is that of the listed blocks (spa_preferred_class, module/zfs/spa_misc.c). Without
    any, the lengths of files decide, unless a whole record is small at the dataset's ratio.
    """
    limit, dataset = plan.found.special, plan.place.dataset
    if dataset is None or not limit:
        return plan.found.special_allocated
    compressed = dataset.is_on("compression")
    if every := sum(each.raw for each in plan.extents):
        sizes = ((each, each.stored if compressed else each.length) for each in plan.extents)
        small = sum(each.raw for each, written in sizes if written <= limit)
        return plan.found.allocated * small / every
    record = dataset.number("recordsize") or 0
    if compressed and record / max(1.0, dataset.ratio) <= limit:
        return plan.found.allocated
    return plan.found.special_allocated


def special(plans: Sequence[DirectoryPlan], pool: PoolFacts) -> list[Space]:
    """Return the special vdevs at their fullest, as if no small block were on them yet."""
    small = sum(map(small_blocks, plans))
    free = sum(space.free for space in pool.special)
    share = min(1.0, small / free) if free else 0.0
    return [space._replace(alloc=space.alloc + share * space.free) for space in pool.special]


def special_notes(vdevs: Sequence[PredictedFill]) -> list[str]:
    """Notes on small blocks and the fill of special vdevs."""
    notes = [
        f"special vdev {vdev.name}: {vdev.fill_before:.0%} full,"
        f" at most {vdev.fill_after:.0%} afterwards"
        for vdev in vdevs
        if vdev.fill_after > vdev.fill_before
    ]
    if any(vdev.fill_after > SPECIAL_FULL for vdev in vdevs) and notes:
        notes.append(f"above {SPECIAL_FULL:.0%} small blocks go to the normal vdevs")
    return notes


Outcome = tuple[list[Space], int | None]
"""The vdevs after a job, and the bytes to move for the wanted spread; None if out of reach."""


def _fill_new(chosen: bool, full: FullVdevs, held: Outcome, without: Outcome) -> FillNew:
    """Compare a job while full vdevs are held from new writes with one without that."""
    (after, needed), (usual_after, usual_needed) = held, without
    return FillNew(
        chosen,
        full.names,
        full.less_available,
        allocator.spread(after),
        needed,
        allocator.spread(usual_after),
        usual_needed,
        full.refused,
    )


def predicted(
    plans: Sequence[DirectoryPlan], pool: PoolFacts | None, settings: Settings
) -> RebalancePlan:
    """Predict the pool after the job, and the bytes to move for the wanted spread."""
    limits = settings.limits
    every = sum(plan.bytes for plan in plans)
    told = PlanDocument(
        tuple(plan.document(every) for plan in plans),
        available_bytes=min(plan.room for plan in plans),
        estimate="size",
        order=OLD_FIRST if pool and pool.added else LARGE_FIRST,
    )
    if pool is None:
        return RebalancePlan(plans, pool, told)
    full = full_vdevs(pool, limits)
    usual, kept = pool, replace(pool, spaces=full.kept(pool.spaces))
    if settings.fill_new:
        pool = kept
    for plan in plans:
        plan.grown = growth_of(plan, pool)
    lies, estimate = source(plans, usual)
    made = RebalancePlan(plans, pool, told, lies)
    target = limits.until_spread if limits.until_spread is not None else EVEN
    by_byte = made.stored * made.raw_factor
    limit = by_byte * min(every, limits.max_bytes or every)
    limit = min(limit, file_bytes(usual.volumes, usual.spaces))

    def outcome(spaces: Sequence[Space], busy: bool = False) -> Outcome:
        raw = allocator.raw_to_target(spaces, target, limit, lies, made.pinned, busy)
        moved = limit if limits.until_spread is None or raw is None else raw
        after = allocator.rewritten(spaces, moved, lies, made.pinned, busy)
        return after, None if raw is None or not by_byte else round(raw / by_byte)

    held, without = outcome(kept.spaces), outcome(usual.spaces)
    after, needed = held if settings.fill_new else without
    busy_after, busy_needed = None, None
    if all(space.speed for space in pool.spaces):
        busy_after, busy_needed = outcome(pool.spaces, busy=True)
    told = replace(
        told,
        pool=pool.name,
        spread_before=allocator.spread(pool.spaces),
        spread_after=allocator.spread(after),
        target_spread=target,
        bytes_to_target=needed,
        busy_spread_after=None if busy_after is None else allocator.spread(busy_after),
        busy_bytes_to_target=busy_needed,
        fragmentation=pool.fragmentation,
        scanning=pool.condition.scanning,
        raw_factor=made.raw_factor,
        vdevs=fills(pool.spaces, after),
        special=fills(pool.special, special(plans, pool)),
        volumes=volume_limit(usual.volumes, usual.spaces),
        fill_new=_fill_new(settings.fill_new, full, held, without),
        estimate=estimate,
    )
    # Only now is the amount to move known, which limits what each directory pins and sends.
    goal = told.bytes_within(limits)
    told = replace(told, directories=tuple(plan.document(goal) for plan in plans))
    return made._replace(document=told)


def fills(before: Sequence[Space], after: Sequence[Space]) -> tuple[PredictedFill, ...]:
    """Return the fill of every vdev before and after."""
    pairs = zip(before, after, strict=True)
    return tuple(PredictedFill(now.name, now.fill, then.fill) for now, then in pairs)


def room_in(
    root: bytes, pool: PoolFacts | None, limits: Limits, fill_new: bool = False
) -> tuple[int, Floor]:
    """Return the bytes that may be written to a directory, and those that may not.

    The first are fewer with ``fill_new``; the second not, as the filesystem counts less free then.
    """
    status = os.statvfs(root)
    free = status.f_bavail * status.f_frsize
    whole: float = status.f_blocks * status.f_frsize
    room = free - round((limits.min_free or 0.0) * whole)
    if pool is not None:
        room = round(min(free, above_floor(pool, limits)))
        whole = pool.number("size") / pool.raw_factor
    room = max(0, room)
    floor = Floor(free - room, whole)
    if pool is not None and fill_new:
        room = max(0, round(min(room, above_floor(pool, limits, fill_new))))
    return room, floor


def above_floor(pool: PoolFacts, limits: Limits, fill_new: bool = False) -> float:
    """Bytes that may be written to a pool before the free-space floor is reached."""
    if fill_new:
        return usable_space(pool, limits) - full_vdevs(pool, limits).less_available
    return (pool.number("free") - limits.floor * pool.number("size")) / pool.raw_factor
