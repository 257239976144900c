"""Where the blocks of single files lie, from ``zdb -ddddd`` (root; zdb(8))."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from zconsole.rebalance.facts import Run
from zconsole.sources.blocking import DeadlineError

_DVA = re.compile(r"DVA\[0\]=<(\d+):([0-9a-f]+):([0-9a-f]+)>")
_INDIRECT_LINE = re.compile(r"^\s*[0-9a-f]+ +L0 (\d+):([0-9a-f]+):([0-9a-f]+)", re.MULTILINE)
_OBJECT = re.compile(r"^ +Object +lvl .*\n +(\d+) ", re.MULTILINE)
DEADLINE = 30.0
"""Seconds; zdb reads the pool's metadata from its disks."""

Blocks = list[tuple[int, str, int]]
"""Vdev id, offset and raw bytes of every data block."""


def block_addresses(run: Run, dataset: str, inodes: Sequence[int]) -> Blocks | None:
    """Every data block of all these files together; None when zdb cannot say."""
    blocks = [b for found in blocks_of(run, dataset, inodes).values() for b in found]
    return blocks or None


def blocks_of(run: Run, dataset: str, inodes: Sequence[int]) -> dict[int, Blocks]:
    """The data blocks of every file that zdb can tell something of, by inode.

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
    found = {int(inode): _blocks(text) for inode, text in zip(parts[::2], parts[1::2], strict=True)}
    return {inode: blocks for inode, blocks in found.items() if blocks}


def _blocks(text: str) -> Blocks:
    found = _INDIRECT_LINE.findall(text) or _DVA.findall(text)
    return [(int(vdev), offset, int(size, 16)) for vdev, offset, size in found]


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
