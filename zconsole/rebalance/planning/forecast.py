"""Where blocks lie now, how that is known, where they will lie, and what they will take.

Those of single files from ``zdb -ddddd`` (root; zdb(8)).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.pool import allocator
from zconsole.pool.allocator import Space, new_write_shares
from zconsole.rebalance.planning.facts import Dataset, FactsReader, PoolFacts, Run
from zconsole.rebalance.planning.plan_document import PlanDocument, PredictedFill
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.rebalance.planning.settings import EVEN, FLOOR, Limits
from zconsole.system.process import DeadlineError

_EXTENT = re.compile(
    r"^[ \t]*[0-9a-f]+ +L0 ((?:\d+:[0-9a-f]+:[0-9a-f]+ )+)([0-9a-f]+)L/([0-9a-f]+)P", re.MULTILINE
)
_OBJECT = re.compile(r"^ +Object +lvl .*\n +(\d+) ", re.MULTILINE)
_NUMBER = re.compile(r"(mirror|raidz|draid).*-(\d+)$")
DEADLINE = 30.0
"""Seconds; zdb reads the pool's metadata from its disks."""


class Extent(NamedTuple):
    """A block of data, but for holes and what block pointers hold. Sizes in bytes."""

    vdev: int
    offset: str
    """On the vdev, hexadecimal; of the first copy."""
    size: int
    """Raw, of that copy."""
    length: int
    stored: int
    """What is left of its length, compressed."""
    copies: int
    raw: int
    """Of all copies."""


Listed = Mapping[int, Sequence[Extent]]
"""The blocks of files, by inode."""


def listed(run: Run, dataset: str, inodes: Sequence[int]) -> Listed:
    """What zdb lists of files, by inode; empty where it cannot list anything.

    A pool's name alone would stand for its meta object set: its root dataset needs the slash.
    """
    target = dataset if "/" in dataset else f"{dataset}/"
    argv = ["zdb", "-ddddd", target, *map(str, inodes)]
    try:
        done = run(argv, DEADLINE)
    except (OSError, DeadlineError):
        return {}
    # Text before the first object, then in turn an inode and what is said of it.
    _, *parts = _OBJECT.split(done.stdout)
    found: dict[int, list[Extent]] = {}
    for inode, text in zip(parts[::2], parts[1::2], strict=True):
        extents = found[int(inode)] = []
        for addresses, length, stored in _EXTENT.findall(text):
            copies = [address.split(":") for address in addresses.split()]
            raw = [int(size, 16) for _, _, size in copies]
            vdev, offset, _ = copies[0]
            sizes = int(length, 16), int(stored, 16)
            extents.append(Extent(int(vdev), offset, raw[0], *sizes, len(raw), sum(raw)))
    return found


def vdev_shares(
    blocks: Sequence[Extent], names: Sequence[str], others: bool = False
) -> list[float] | None:
    """Share of the blocks' bytes on each named top-level vdev; None when ids do not fit them.

    With ``others`` blocks may lie on further (special) vdevs, which do not count.
    The number at the end of a vdev's name is its id; a plain disk has its place among all, which
    is not known with ``others``.
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
    """Parity and disks of a top-level vdev; without parity a disk or mirror."""

    sector: int
    parity: int = 0
    disks: int = 1
    """Of raidz, those it has now; of dRAID, the data disks of a group."""
    grouped: bool = False

    def raw(self, size: int) -> int:
        """Raw bytes of a block of so many (vdev_raidz_asize, vdev_draid_asize; module/zfs 2.3)."""
        if size == 0:
            return 0
        sectors = -(-size // self.sector)
        if self.grouped:
            return -(-sectors // self.disks) * (self.disks + self.parity) * self.sector
        if self.parity:
            sectors += self.parity * -(-sectors // (self.disks - self.parity))
            sectors = -(-sectors // (self.parity + 1)) * (self.parity + 1)
        return sectors * self.sector


def layouts_of(pool: PoolFacts) -> list[tuple[float, BlockLayout]]:
    """The layouts of a pool's vdevs, each with the share of new writes it gets."""
    layouts = (_layout(space, pool.sector or USUAL_SECTOR) for space in pool.spaces)
    return list(zip(new_write_shares(pool.spaces), layouts, strict=True))


def _layout(space: Space, sector: int) -> BlockLayout:
    if match := _DRAID.match(space.name):
        return BlockLayout(sector, int(match[1]), int(match[2]), grouped=True)
    match = _RAIDZ.match(space.name)
    if match and space.disks > int(match[1]):
        return BlockLayout(sector, int(match[1]), space.disks)
    return BlockLayout(sector)


def narrowed(listed: Listed, pool: PoolFacts) -> float | None:
    """Raw bytes of the listed blocks as written now by those they take; None without any."""
    shares = layouts_of(pool)
    extents = [extent for file in listed.values() for extent in file]
    before = sum(extent.raw for extent in extents)
    after = sum(
        extent.copies * share * layout.raw(extent.stored)
        for extent in extents
        for share, layout in shares
    )
    return after / before if before else None


def growth(plan: DirectoryPlan, listed: Listed) -> int:
    """Bytes by which a directory's blocks grow; 0 where they shrink, or where nothing tells.

    By its compression if that is off now, and its copies, against those of the listed blocks.
    """
    dataset, extents = plan.place.dataset, [each for file in listed.values() for each in file]
    before = sum(each.stored * each.copies for each in extents)
    if dataset is None or not before:
        return 0
    compressed = dataset.is_on("compression")
    after = sum(each.stored if compressed else each.length for each in extents)
    after *= dataset.number("copies") or 1
    return max(0, round(plan.found.allocated * (after / before - 1)))


LARGE_FIRST = "large before small"
OLD_FIRST = f"older than the newest vdev first, then {LARGE_FIRST}"
SPECIAL_FULL = 0.75
"""Fill of the special vdevs from which on small blocks of data go to the normal ones
(zfs_special_class_metadata_reserve_pct is 25 %, module/zfs/spa_misc.c)."""
SAMPLED_BLOCKS = 1 << 16
"""Of the files whose blocks are listed: zdb has a line for every block."""


def sampled(reader: FactsReader, plans: Sequence[DirectoryPlan]) -> list[Listed]:
    """What zdb has to say of the sampled files of each directory (root), by inode."""
    found: list[Listed] = []
    for plan in plans:
        dataset, asked = plan.place.dataset, os.geteuid() == 0
        inodes = plan.found.sample.inodes(SAMPLED_BLOCKS) if dataset and asked else []
        found.append(listed(reader.run, dataset.name, inodes) if dataset and inodes else {})
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
    shares = vdev_shares(found, names, bool(pool.special)) if found else None
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


def small_blocks(plan: DirectoryPlan, listed: Listed) -> float:
    """Bytes of a directory that go to special vdevs: of blocks that are small once compressed.

    As in the listed files (spa_preferred_class, module/zfs/spa_misc.c); without any by the lengths
    of files, unless a whole record is small with the ratio that the dataset's blocks compress to.
    """
    limit, dataset = plan.found.special, plan.place.dataset
    if dataset is None or not limit:
        return plan.found.special_allocated
    compressed = dataset.is_on("compression")
    extents = [each for file in listed.values() for each in file]
    if every := sum(each.raw for each in extents):
        sizes = ((each, each.stored if compressed else each.length) for each in extents)
        small = sum(each.raw for each, written in sizes if written <= limit)
        return plan.found.allocated * small / every
    record = dataset.number("recordsize") or 0
    if compressed and record / max(1.0, dataset.ratio) <= limit:
        return plan.found.allocated
    return plan.found.special_allocated


def special(
    plans: Sequence[DirectoryPlan], pool: PoolFacts, listed: Sequence[Listed]
) -> list[Space]:
    """The special vdevs afterwards, at most: as if none of the small blocks were there yet."""
    small = sum(small_blocks(plan, files) for plan, files in zip(plans, listed, strict=True))
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
    every = sum(plan.bytes for plan in plans)
    made = PlanDocument(
        tuple(plan.document(every) for plan in plans),
        available_bytes=min(plan.found.room for plan in plans),
        estimate="size",
        order=OLD_FIRST if pool and pool.added else LARGE_FIRST,
    )
    if pool is None:
        return made
    target = limits.until_spread if limits.until_spread is not None else EVEN
    lies, estimate = source(plans, pool, listed)
    allocated = sum(plan.found.allocated for plan in plans)
    pinned = sum(plan.pinned_least for plan in plans) / allocated if allocated else 0.0
    size = made.bytes
    by_byte = allocated / size * pool.raw_factor if size else pool.raw_factor
    limit = by_byte * min(size, limits.max_bytes or size)
    raw = allocator.raw_to_target(pool.spaces, target, limit, lies, pinned)
    moved = limit if limits.until_spread is None or raw is None else raw
    after = allocator.rewritten(pool.spaces, moved, lies, pinned)
    made = replace(
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
        special=fills(pool.special, special(plans, pool, listed)),
        estimate=estimate,
    )
    goal = made.bytes_within(limits)
    return replace(made, directories=tuple(plan.document(goal) for plan in plans))


def fills(before: Sequence[Space], after: Sequence[Space]) -> tuple[PredictedFill, ...]:
    """Fill of every vdev, now and afterwards."""
    pairs = zip(before, after, strict=True)
    return tuple(PredictedFill(now.name, now.fill, then.fill) for now, then in pairs)


def room_in(root: bytes, pool: PoolFacts | None, limits: Limits) -> tuple[int, tuple[int, float]]:
    """Bytes that may be written to a directory, and its ``Survey.floor``."""
    status = os.statvfs(root)
    free = status.f_bavail * status.f_frsize
    whole: float = status.f_blocks * status.f_frsize
    room = free - round((limits.min_free or 0.0) * whole)
    if pool is not None:
        room = round(min(free, above_floor(pool, limits)))
        whole = pool.number("size") / pool.raw_factor
    room = max(0, room)
    return room, (free - room, whole)


def above_floor(pool: PoolFacts, limits: Limits) -> float:
    """Bytes that may be written to a pool before the free-space floor is reached."""
    share = FLOOR if limits.min_free is None else limits.min_free
    return (pool.number("free") - share * pool.number("size")) / pool.raw_factor
