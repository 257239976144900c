"""What a block takes on the disks: raw bytes, with parity and padding, on one kind of vdev."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from zconsole.pool.allocator import Space

RECKONED = 128 << 10
"""The block by which ZFS reckons used space from raw space (SPA_OLD_MAXBLOCKSIZE)."""
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

    def used(self, size: int) -> float:
        """What ``du`` and quotas count for it (vdev_set_deflate_ratio, module/zfs/vdev.c)."""
        return self.raw(size) * RECKONED / self.raw(RECKONED)


def layouts(spaces: Sequence[Space], sector: int) -> list[tuple[float, BlockLayout]]:
    """The layouts of a pool's vdevs, each with the share of new writes it gets."""
    given = [space.free * space.weight for space in spaces]
    total = sum(given) or 1.0
    return [(one / total, _layout(s, sector)) for one, s in zip(given, spaces, strict=True)]


def _layout(space: Space, sector: int) -> BlockLayout:
    if match := _DRAID.match(space.name):
        return BlockLayout(sector, int(match[1]), int(match[2]), grouped=True)
    match = _RAIDZ.match(space.name)
    if match and space.disks > int(match[1]):
        return BlockLayout(sector, int(match[1]), space.disks)
    return BlockLayout(sector)
