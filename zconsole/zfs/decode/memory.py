"""What decoding remembers from sample to sample: most of a device stays as it was.

In a pool of ten thousand devices, counters move and little else. What was made of the rest is taken
over, which costs a tenth of making it again (tests/bench/tick.py), and takes no memory twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

from zconsole.pool.chassis import Enclosure, LeafDisk
from zconsole.pool.model import MOVING, BlockCounters, IoCounters, Vdev
from zconsole.zfs.raw import HISTOGRAMS, QUEUES, Node, numbers

_WHOLE = 48
"""Elements of ``vdev_stats`` that has all that 2.3's has, in its order."""
_MOVING = slice(8, 20)
"""Where it has operations and bytes of each kind of I/O; a timestamp is the first."""
_TO, _FROM = 8 * _MOVING.start, 8 * _MOVING.stop
_COUNTERS = Struct("=Q64x2Q32x2Q")
"""The elements 0, 9, 10, 15 and 16 of it: see ``libzfs.canonical``."""
_FIXED = (
    *("type", "id", "guid", "path", "whole_disk", "not_present", "ashift", "nparity"),
    *("draid_ndata", "draid_nchildren", "draid_nspares"),
    *("phys_path", "devid", "resilver_txg", "rebuild_txg"),
)
"""What the decoder reads of a vdev besides its counters."""


_IO = partial(tuple.__new__, IoCounters)
_VDEV = partial(tuple.__new__, Vdev)
"""They make one of its fields: what Python has of its own for that takes twice as long."""


class _Known(NamedTuple):
    """A vdev as it was decoded."""

    fixed: tuple[object, ...]
    """What it was made of, but for what moves."""
    still: tuple[Any, ...]
    """Its fields but for what moves."""


class PoolMemory:
    """The vdevs of one pool, each by GUID, as the last sample had them."""

    def __init__(self, before: PoolMemory | None = None) -> None:
        self._before = before._vdevs if before is not None else {}
        self._vdevs: dict[object, _Known] = {}

    def forget(self) -> None:
        """Let go of what only the sample before had."""
        self._before = {}

    def fixed(self, node: Mapping[str, Any], about: tuple[object, ...]) -> tuple[object, ...]:
        """All that a vdev is made of besides what moves; ``about``: what is not in its node.

        Empty where it cannot be compared.
        """
        stats = node.get("vdev_stats")
        if isinstance(stats, bytes):
            if len(stats) < 8 * _WHOLE:
                return ()
            kept = node.kept if isinstance(node, Node) else tuple(map(node.get, _FIXED))
            return kept, stats[8:_TO], stats[_FROM:], about
        if not isinstance(stats, list) or len(stats) < _WHOLE:
            return ()
        rest = stats[1 : _MOVING.start], stats[_MOVING.stop :]
        return (*map(node.get, _FIXED), *rest, about)

    def again(self, key: object, fixed: tuple[object, ...]) -> tuple[Any, ...] | None:
        """The vdev's fields as they were, for ``moved``; None where it is another, or changed."""
        known = self._before.get(key)
        if known is None or not fixed or known.fixed != fixed:
            return None
        self._vdevs[key] = known
        return known.still

    def keep(self, key: object, fixed: tuple[object, ...], vdev: Vdev) -> None:
        """Remember a vdev until the next sample."""
        if fixed:
            self._vdevs[key] = _Known(fixed, vdev[:MOVING])


Disks = tuple[Mapping[str, Any], Mapping[str, LeafDisk]]


class SourceMemory:
    """What decoding one source's samples remembers."""

    def __init__(self) -> None:
        self._pools: dict[str, PoolMemory] = {}
        self._disks: dict[object, Disks] = {}
        self._enclosures: tuple[object, tuple[Enclosure, ...]] = None, ()

    def pool(self, name: str) -> PoolMemory:
        """The memory of a pool for the sample that is decoded now."""
        before = self._pools.get(name)
        if before is not None:
            before.forget()
        self._pools[name] = PoolMemory(before)
        return self._pools[name]

    def disks(self, pool: object) -> Disks:
        """The forms of a pool's disks by path, as they last were, and what was made of them."""
        return self._disks.get(pool, ({}, {}))

    def keep_disks(
        self, pool: object, forms: Mapping[str, Any], made: Mapping[str, LeafDisk]
    ) -> None:
        """Remember what was made of the forms of a pool's disks."""
        self._disks[pool] = forms, made

    def enclosures(self, forms: object) -> tuple[Enclosure, ...] | None:
        """What was made of the same enclosures; None where they are others."""
        form, made = self._enclosures
        return made if form is not None and form == forms else None

    def keep_enclosures(self, forms: object, made: tuple[Enclosure, ...]) -> tuple[Enclosure, ...]:
        """Remember what was made of the enclosures."""
        self._enclosures = forms, made
        return made


class Histograms(Mapping[str, tuple[int, ...]]):
    """Histograms of one device as they came packed; few are ever looked at."""

    __slots__ = ("_more",)

    def __init__(self, more: Mapping[str, Any]) -> None:
        """``more``: its ``vdev_stats_ex``."""
        self._more = more

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return tuple(numbers(self._more[HISTOGRAMS[name]]))

    def __iter__(self) -> Iterator[str]:
        return (name for name, key in HISTOGRAMS.items() if key in self._more)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Queues(Mapping[str, tuple[int, int]]):
    """Depths of the queues of one device, as they came."""

    __slots__ = ("_more",)

    def __init__(self, more: Mapping[str, Any]) -> None:
        """``more``: its ``vdev_stats_ex``."""
        self._more = more

    def __getitem__(self, name: str) -> tuple[int, int]:
        pending, active = QUEUES[name]
        return self._more[pending], self._more[active]

    def __iter__(self) -> Iterator[str]:
        more = self._more
        return (name for name, (p, a) in QUEUES.items() if p in more and a in more)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def counters(stats: Sequence[int] | bytes) -> IoCounters:
    """The I/O of ``vdev_stats``: in the order of 2.3, or packed with 48 elements or more."""
    if isinstance(stats, bytes):
        nanoseconds, reads, writes, read, written = _COUNTERS.unpack_from(stats)
    else:
        nanoseconds, reads, writes, read, written = itemgetter(0, 9, 10, 15, 16)(stats)
    return _IO((nanoseconds / 1e9, reads, writes, read, written))


def moved(
    still: tuple[Any, ...],
    io: IoCounters | None,
    block: BlockCounters | None,
    queues: Mapping[str, tuple[int, int]],
    histograms: Mapping[str, tuple[int, ...]],
    children: tuple[Vdev, ...],
) -> Vdev:
    """The vdev with new figures. ``_replace`` would take five times as long."""
    return _VDEV((*still, io, None, block, queues, histograms, children))
