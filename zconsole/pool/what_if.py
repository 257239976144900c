"""Prediction of the balance after adding vdevs, or replacing disks by bigger ones."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zconsole.errors import UsageError
from zconsole.pool.allocator import LEVEL, raw_to_target, rewritten, spread
from zconsole.pool.balance import Balance, VdevBalance, balance, spaces_of
from zconsole.pool.health import LEAST_DEVICE
from zconsole.pool.model import Vdev, Volumes, data_vdevs, parse_version
from zconsole.pool.volumes import file_bytes
from zconsole.units import counted, size, typed_size

_SHAPE = re.compile(
    r"(?:(?P<kind>mirror|raidz[123]|disk):)?(?:(?P<n>\d{1,9})x)?(?P<size>[\d.]+[BKMGTPE]?(?:i?B)?)"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A requested top-level vdev: its members and the raw bytes of each."""

    kind: str
    members: int
    member_bytes: int

    @property
    def raw(self) -> int:
        """Bytes that the vdev can allocate, parity included; for a mirror, of one side."""
        return self.member_bytes * (1 if self.kind == "mirror" else self.members)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Balance before and after, and the cost of a rebalance afterwards."""

    before: Balance
    after: Balance
    rewrite_bytes: float | None
    """Raw bytes to rewrite until the spread is LEVEL; None if one pass is not enough."""
    spread_after: float
    """Spread after rewriting those bytes, or all files once."""

    @property
    def without_redundancy(self) -> tuple[str, ...]:
        """Names of added vdevs without redundancy: losing a disk loses the pool."""
        return tuple(vdev.name for vdev in self.added if vdev.kind == "disk")

    @property
    def added(self) -> tuple[VdevBalance, ...]:
        """The added vdevs."""
        return self.after.vdevs[len(self.before.vdevs) :]

    @property
    def busy_share(self) -> float | None:
        """Share of new writes to added vdevs while the disks are busy, which is then another.

        None where it is not known, or within a fifth of the usual.
        """
        usual = sum(vdev.new_write_share or 0.0 for vdev in self.added)
        busy = sum(vdev.busy_write_share or 0.0 for vdev in self.added)
        return busy if busy and abs(busy - usual) > busy / 5 else None


@dataclass(frozen=True, slots=True)
class Changes:
    """Requested changes: vdevs to add or resize, and the size of a disk to resilver."""

    adds: tuple[Shape, ...] = ()
    resizes: Mapping[str, Shape] = field(default_factory=dict)
    disk: int | None = None
    """Raw bytes of a disk whose resilver is to be predicted."""

    def __bool__(self) -> bool:
        """Whether it changes any vdev."""
        return bool(self.adds or self.resizes)


def parse_changes(text: str) -> Changes:
    """Parse changes such as ``+ raidz2:6x4T raidz2-0=6x8T disk=8T``.

    SIZE adds a vdev, NAME=SIZE resizes one, ``disk=`` asks for the time of a resilver. A ``+`` may
    precede an added vdev. Raises UsageError for anything else.
    """
    try:
        words = [word.removeprefix("+") for word in shlex.split(text)]
    except ValueError:
        raise UsageError("unclosed quotation mark") from None
    adds, resizes, disk = [], {}, None
    for word in filter(None, words):
        if word.startswith("disk="):
            disk = disk_of(word.removeprefix("disk="))
        elif "=" in word:
            name, shape = resize_of(word)
            resizes[name] = shape
        else:
            adds.append(shape_of(word))
    return Changes(tuple(adds), resizes, disk)


MOST_DISKS = 10_000
"""Most disks of one vdev; more must be a typing error."""


def resize_of(word: str) -> tuple[str, Shape]:
    """Parse ``NAME=SIZE``. Raises UsageError for anything else."""
    name, equals, size = word.rpartition("=")
    if not equals or not name:
        raise UsageError(f"{word!r} is not NAME=SIZE")
    return name, shape_of(size)


def shape_of(word: str) -> Shape:
    """Parse ``36.4T`` (raw bytes in total), ``6x3T``, ``raidz2:6x3TB`` or ``mirror:2x4T``.

    Units are those of ``typed_size``. Raises UsageError for anything else.
    """
    match = _SHAPE.fullmatch(word)
    each = typed_size(match["size"]) if match else None
    if match is None or not each:
        raise UsageError(f"{word!r} is not a size: use 36.4T, 18TB, raidz2:6x3T or mirror:2x4T")
    if each < LEAST_DEVICE:
        counts = word.isdecimal() and len(word) < 3  # "2 raidz2:6x18T": two of them
        more = f"; for {word} vdevs, write the SIZE {word} times" if counts else ""
        raise UsageError(f"{word!r}: the smallest disk of ZFS is {size(LEAST_DEVICE)}{more}")
    kind = match["kind"] or "disk"
    least = 2 if kind == "mirror" else int(kind[-1]) + 2 if kind.startswith("raidz") else 1
    count = int(match["n"] or (2 if kind == "mirror" else 1))
    if count > MOST_DISKS:
        raise UsageError(f"{word!r}: at most {MOST_DISKS} disks")
    if count < least:
        raise UsageError(f"{word!r}: a {kind} has at least {counted(least, 'disk')}")
    return Shape(kind, count, each)


def disk_of(word: str) -> int:
    """Parse the size of one disk, such as ``8T``, to raw bytes. Raises UsageError otherwise."""
    shape = shape_of(word)
    if shape.kind != "disk" or shape.members != 1:
        raise UsageError(f"{word!r} is not the size of one disk")
    return shape.raw


def grown(root: Vdev, adds: Sequence[Shape], resizes: Mapping[str, Shape]) -> Vdev:
    """Return the tree with vdevs added and resized.

    Raises UsageError for a name that is not a normal-class top-level vdev, or a size too small
    for its data.
    """
    names = [vdev.name for vdev in data_vdevs(root) if vdev.vclass == "normal"]
    for name in resizes:
        if names.count(name) > 1:
            raise UsageError(
                f"{names.count(name)} vdevs are called {name!r}: the name is ambiguous"
            )
        if name not in names:
            raise UsageError(f"no vdev {name!r} in {root.name}: {', '.join(sorted(names))}")
    kept = []
    for vdev in root.children:
        if (shape := resizes.get(vdev.name)) is None:
            kept.append(vdev)
            continue
        raw = shape.member_bytes if vdev.kind == "mirror" else shape.raw
        if vdev.alloc_bytes is not None and raw < vdev.alloc_bytes:
            raise UsageError(f"{vdev.name} holds more data than that")
        kept.append(vdev._replace(size_bytes=raw, free_bytes=None))  # None: size minus allocated
    new = [_new(shape, len(root.children) + i) for i, shape in enumerate(adds)]
    return root._replace(children=(*kept, *new))


def _new(shape: Shape, index: int) -> Vdev:
    members = tuple(Vdev(f"new-{index}.{i}", "disk") for i in range(shape.members))
    name = f"new-{index}" if shape.kind == "disk" else f"{shape.kind}-{index}"
    leaves = () if shape.kind == "disk" else members
    return Vdev(name, shape.kind, size_bytes=shape.raw, alloc_bytes=0, children=leaves)


def outlook(
    root: Vdev, after: Vdev, version: str | None = None, volumes: Volumes | None = None
) -> Outlook:
    """Return both balances, and the bytes that a rebalance would have to rewrite afterwards.

    It rewrites files only, so not the ``volumes`` of the pool, where they are known.
    """
    tops = [v for v in data_vdevs(after) if v.vclass == "normal" and v.size_bytes]
    spaces = spaces_of(tops, parse_version(version))
    total = file_bytes(volumes, spaces)
    need = raw_to_target(spaces, LEVEL, total) if total else 0.0
    left = spread(rewritten(spaces, total if need is None else need))
    now, then = (balance(tree, version, volumes) for tree in (root, after))
    return Outlook(now, then, need, left)
