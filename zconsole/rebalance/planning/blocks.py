"""Blocks of single files: where they lie, and what they would take if they were written now.

From ``zdb -ddddd`` (root; zdb(8)).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zconsole.pool.allocator import Space, new_write_shares
from zconsole.rebalance.planning.facts import PoolFacts, Run
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
    The number at the end of a vdev's name is its id; a plain disk has its place in the list.
    """
    numbers = [_NUMBER.match(name) for name in names]
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
