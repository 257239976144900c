"""Balance of the normal-class top-level vdevs, and the distribution of new writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zconsole.pool.allocator import Space
from zconsole.pool.model import GROUP_KINDS, Vdev, Version, Volumes, data_vdevs, parse_version
from zconsole.pool.redundancy import parity
from zconsole.pool.volumes import VolumeLimit, volume_limit


class VdevBalance(NamedTuple):
    """Fill of one normal-class top-level vdev, with the field names of the JSON output."""

    name: str
    kind: str
    size_bytes: int | None
    alloc_bytes: int | None
    free_bytes: int | None
    fill: float | None
    frag: float | None
    surplus_bytes: float | None
    new_write_share: float | None
    data_share: float | None = None
    """Share of its bytes that is not parity; None if the layout is unknown."""
    busy_write_share: float | None = None
    """Share of new writes while they keep all disks busy, so that each vdev's speed decides."""

    @property
    def usable_bytes(self) -> int | None:
        """Size without parity."""
        return self._without_parity(self.size_bytes)

    @property
    def usable_free_bytes(self) -> int | None:
        """Free bytes without parity."""
        return self._without_parity(self.free_bytes)

    def _without_parity(self, raw: int | None) -> int | None:
        return None if raw is None or self.data_share is None else round(raw * self.data_share)


class Balance(NamedTuple):
    """Distribution of data over the normal-class top-level vdevs."""

    target_fill: float | None = None
    spread: float | None = None
    imbalance_bytes: float | None = None
    vdevs: tuple[VdevBalance, ...] = ()
    volumes: VolumeLimit | None = None
    """None if the source does not tell."""

    @property
    def most_gain(self) -> float:
        """The most of the spread that moving files can take away."""
        return (self.spread or 0.0) - (self.volumes.least_spread if self.volumes else 0.0)

    @property
    def data_share(self) -> float | None:
        """Share of all allocated bytes that is not parity; None if unknown."""
        parts = [(vdev.alloc_bytes or 0, vdev.data_share) for vdev in self.vdevs]
        raw = sum(alloc for alloc, _ in parts)
        known = [alloc * share for alloc, share in parts if share is not None]
        return sum(known) / raw if raw and len(known) == len(parts) else None


FREE_BYTES_ONLY = (2, 4)
"""Release from which the allocator considers free bytes alone (metaslab.c, 2.4.0)."""


def balance(root: Vdev, version: str | None = None, volumes: Volumes | None = None) -> Balance:
    """Return fill, surplus and share of new writes of every normal-class top-level vdev.

    ``version`` (``2.3.9``) selects the allocator's rule: up to 2.3 a vdev's share of new writes is
    proportional to free bytes times data disks, from 2.4 to free bytes, as also if the version or a
    vdev's data disks are unknown (metaslab_group_alloc_update, metaslab.c).

    That is the allocator's aim. It skips a vdev whose queue is full (metaslab_group_allocatable),
    so writes that keep the disks busy are shared by speed, estimated here from the number of disks;
    a mirror writes the same to all of them. Measured on 2.3.9 with 128 KiB blocks, the added vdev's
    share of raw bytes, as aim/few writes/many writes/by speed: a mirror added to a raidz2 of 10,
    both empty, 1/0 to 2/7/9 %; a mirror added to a raidz1 of 5 that is 70 % full, 14/15/21/17 %; a
    raidz1 of 5 added to the same, 77/76/52/50 %.
    """
    vdevs = tuple(v for v in data_vdevs(root) if v.vclass == "normal")
    known = [v for v in vdevs if v.alloc_bytes is not None and v.size_bytes]
    size = sum(v.size_bytes or 0 for v in known)
    target = sum(v.alloc_bytes or 0 for v in known) / size if size else None
    counts = _weights(vdevs, [len(v.children) for v in vdevs], parse_version(version))
    weights = [(_free(v) or 0) * count for v, count in zip(vdevs, counts, strict=True)]
    full = [v.allocating is False or _free(v) == 0 for v in vdevs]
    speeds = [0 if f else _speed(v, _devices(v)) for v, f in zip(vdevs, full, strict=True)]
    entries, fills, surpluses = list[VdevBalance](), list[float](), list[float]()
    aims, busy = _in_proportion(weights), _in_proportion(speeds)
    for vdev, aim, busy_share in zip(vdevs, aims, busy, strict=True):
        alloc, space, free = vdev.alloc_bytes, vdev.size_bytes, _free(vdev)
        fill = surplus = None
        if alloc is not None and space and target is not None:
            fill, surplus = alloc / space, alloc - target * space
            fills.append(fill)
            surpluses.append(surplus)
        entries.append(
            VdevBalance(
                name=vdev.name,
                kind=vdev.kind,
                size_bytes=space,
                alloc_bytes=alloc,
                free_bytes=free,
                fill=fill,
                frag=vdev.fragmentation,
                surplus_bytes=surplus,
                new_write_share=aim if free is not None else None,
                data_share=_data_share(vdev, len(vdev.children)),
                busy_write_share=busy_share,
            )
        )
    return Balance(
        target_fill=target,
        spread=max(fills) - min(fills) if fills else None,
        imbalance_bytes=sum(max(0.0, s) for s in surpluses) if surpluses else None,
        vdevs=tuple(entries),
        volumes=volume_limit(volumes, spaces_of(known, parse_version(version))),
    )


def move_share(found: Balance, passes: int) -> float:
    """Return the most bytes that a rebalance can move in the time in which a scan reads one.

    ``passes`` counts the passes over a written byte: the write, and reads of the copy. A scan reads
    all vdevs in parallel and takes as long as the one with most data. In a rebalance, too, the
    busiest vdev decides, as the allocator may give nearly all moved bytes to one.
    """
    usual = 1 / (1 + passes)  # if each pass waits for the one before
    every = sum(vdev.alloc_bytes or 0 for vdev in found.vdevs)
    if not every:
        return usual
    held = [(vdev.alloc_bytes or 0) / every for vdev in found.vdevs]
    given = [vdev.new_write_share or 0.0 for vdev in found.vdevs]
    works = max(old + passes * new for old, new in zip(held, given, strict=True))
    return min(usual, max(held) / works)


def spaces_of(vdevs: Sequence[Vdev], release: Version) -> tuple[Space, ...]:
    """Convert top-level vdevs for predictions, weighted as the allocator of a release does."""
    devices = [_devices(vdev) for vdev in vdevs]
    weights = _weights(vdevs, devices, release)
    return tuple(
        Space(
            vdev.name,
            vdev.size_bytes or 0,
            float(vdev.alloc_bytes or 0),
            weight,
            _data_share(vdev, count) or 1.0,
            count,
            _speed(vdev, count) or 0.0,
        )
        for vdev, count, weight in zip(vdevs, devices, weights, strict=True)
    )


def _weights(vdevs: Sequence[Vdev], devices: Sequence[int], release: Version) -> list[float]:
    """Return the weight of a free byte of each vdev in the allocator of a release."""
    disks = []
    for vdev, count in zip(vdevs, devices, strict=True):
        # A mirror or a single disk counts as one (vdev_get_ndisks, module/zfs/vdev.c 2.3.9).
        if vdev.kind in ("mirror", "disk", "file", *GROUP_KINDS) or not count:
            disks.append(1)
        elif vdev.kind.startswith(("raidz", "draid")) and vdev.kind[-1].isdigit():
            disks.append(max(1, count - (vdev.spares_left or 0) - int(vdev.kind[-1])))
    known = len(disks) == len(vdevs)  # else the layout of one is unknown
    if len(release) < 2 or release[:2] >= FREE_BYTES_ONLY or not known:
        disks = [1] * len(vdevs)
    counts = zip(vdevs, disks, strict=True)
    return [0.0 if vdev.allocating is False else float(count) for vdev, count in counts]


def _devices(vdev: Vdev) -> int:
    """Return the number of devices in a vdev, from its width if none are listed; 0 if unknown."""
    return len(vdev.children) or vdev.width or 0


def _data_share(vdev: Vdev, devices: int) -> float | None:
    """Return the share of a vdev's bytes that is not parity, ignoring padding; None if unknown."""
    if not vdev.kind.startswith(("raidz", "draid")):
        return 1.0  # a mirror's size is that of one side
    data = vdev.data_disks if vdev.kind.startswith("draid") else devices - parity(vdev)
    return data / (data + parity(vdev)) if data and data > 0 else None


def _free(vdev: Vdev) -> int | None:
    if vdev.free_bytes is not None:
        return vdev.free_bytes
    if vdev.alloc_bytes is None or vdev.size_bytes is None:
        return None
    return max(0, vdev.size_bytes - vdev.alloc_bytes)


def _speed(vdev: Vdev, devices: int) -> int | None:
    """How many disks take a vdev's raw bytes at once; None if its number of devices is unknown."""
    if not vdev.kind.startswith(("raidz", "draid")):
        return 1  # the sides of a mirror take the same bytes
    return devices - (vdev.spares_left or 0) if devices else None


def _in_proportion(parts: Sequence[float | None]) -> Sequence[float | None]:
    """Return each part's share of all; None for all of them where one is not known."""
    known = [part for part in parts if part is not None]
    every = sum(known)
    return (
        [part / every for part in known]
        if every and len(known) == len(parts)
        else [None] * len(parts)
    )
