"""Where the blocks of single files lie, from ``zdb -ddddd`` (root; zdb(8))."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from zconsole.rebalance.planning.facts import Run
from zconsole.system.process import DeadlineError

_DVA = re.compile(r"DVA\[0\]=<(\d+):([0-9a-f]+):([0-9a-f]+)>")
_INDIRECT_LINE = re.compile(r"^[ \t]*[0-9a-f]+ +L0 (\d+):([0-9a-f]+):([0-9a-f]+)", re.MULTILINE)
_EXTENT = re.compile(
    r"^[ \t]*([0-9a-f]+) +L0 ((?:\d+:[0-9a-f]+:[0-9a-f]+ )+)([0-9a-f]+)L/([0-9a-f]+)P", re.MULTILINE
)
_OBJECT = re.compile(r"^ +Object +lvl .*\n +(\d+) ", re.MULTILINE)
MOST_SECTOR = 4096
"""Bytes; larger ones are so rare that a few blocks on round addresses do not tell of one."""
DEADLINE = 30.0
"""Seconds; zdb reads the pool's metadata from its disks."""

Blocks = list[tuple[int, str, int]]
"""Vdev id, offset and raw bytes of every data block."""


class Extent(NamedTuple):
    """A block: where it begins, its bytes, what is stored of them, in how many copies, and raw."""

    at: int
    length: int
    stored: int
    copies: int
    raw: int


class Listed(NamedTuple):
    """What zdb lists of a file."""

    blocks: Blocks
    extents: Sequence[Extent]
    """The same by their place in the file; without holes and what block pointers hold."""

    def raw(self, at: int, length: int) -> float:
        """Raw bytes of a part of the file; a block only partly in it counts for its share."""
        begin = bisect_right(self.extents, at, key=attrgetter("at")) - 1
        end = bisect_left(self.extents, at + length, key=attrgetter("at"))
        total = 0.0
        for extent in self.extents[max(0, begin) : end]:
            common = min(extent.at + extent.length, at + length) - max(extent.at, at)
            total += extent.raw * max(0, common) / extent.length
        return total


def listed(run: Run, dataset: str, inodes: Sequence[int]) -> dict[int, Listed]:
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
    return {
        int(inode): Listed(_blocks(text), _extents(text))
        for inode, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _blocks(text: str) -> Blocks:
    found = _INDIRECT_LINE.findall(text) or _DVA.findall(text)
    return [(int(vdev), offset, int(size, 16)) for vdev, offset, size in found]


def _extents(text: str) -> list[Extent]:
    found = []
    for at, addresses, length, stored in _EXTENT.findall(text):
        raw = [int(address.split(":")[2], 16) for address in addresses.split()]
        found.append(Extent(int(at, 16), int(length, 16), int(stored, 16), len(raw), sum(raw)))
    return found


def sector(files: Iterable[Listed]) -> int | None:
    """The largest piece that all blocks begin and end on, up to MOST_SECTOR; None without any."""
    found = [block for file in files for block in file.blocks]
    piece = math.gcd(*(value for _, at, size in found for value in (int(at, 16), size)))
    return min(piece, MOST_SECTOR) or None


def vdev_shares(
    blocks: Sequence[tuple[int, str, int]], names: Sequence[str], others: bool = False
) -> list[float] | None:
    """Share of the blocks' bytes on each named top-level vdev; None when ids do not fit them.

    With ``others`` blocks may lie on further (special) vdevs, which do not count.
    The number at the end of a vdev's name is its id; a plain disk has its place in the list.
    """
    ids = [_id(name, place) for place, name in enumerate(names)]
    weight: Counter[int] = Counter()
    for vdev, _, size in blocks:
        weight[vdev] += size
    total = sum(weight[i] for i in ids)
    if not total or (set(weight) - set(ids) and not others):
        return None
    return [weight[i] / total for i in ids]


def _id(name: str, place: int) -> int:
    match = re.search(r"-(\d+)$", name)
    return int(match[1]) if match and name.startswith(("mirror", "raidz", "draid")) else place
