"""How evenly data lies on the normal-class top-level vdevs, and where new writes go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from zconsole.pool.allocator import Space
from zconsole.pool.model import Vdev, Version, parse_version
from zconsole.pool.redundancy import parity
from zconsole.pool.topology import data_vdevs, disks_of


class VdevBalance(NamedTuple):
    """Fill of one normal-class top-level vdev; the names of contract's BALANCE."""

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
    """Share of its bytes that is not parity; None where the layout is not known."""
    busy_write_share: float | None = None
    """Share of new writes while they keep all disks busy: then each vdev takes what it can."""

    @property
    def usable_bytes(self) -> int | None:
        """Its size without parity."""
        return self._without_parity(self.size_bytes)

    @property
    def usable_free_bytes(self) -> int | None:
        """What is free, without parity."""
        return self._without_parity(self.free_bytes)

    def _without_parity(self, raw: int | None) -> int | None:
        return None if raw is None or self.data_share is None else round(raw * self.data_share)


class Balance(NamedTuple):
    """How evenly data is spread over the normal-class top-level vdevs."""

    target_fill: float | None = None
    spread: float | None = None
    imbalance_bytes: float | None = None
    vdevs: tuple[VdevBalance, ...] = ()

    @property
    def data_share(self) -> float | None:
        """The share of all allocated bytes that is not parity; None where that is not known."""
        parts = [(vdev.alloc_bytes or 0, vdev.data_share) for vdev in self.vdevs]
        raw = sum(alloc for alloc, _ in parts)
        known = [alloc * share for alloc, share in parts if share is not None]
        return sum(known) / raw if raw and len(known) == len(parts) else None


FREE_BYTES_ONLY = (2, 4)
"""From this release the allocator's shares follow free bytes alone (metaslab.c, 2.4.0)."""


def balance(root: Vdev, version: str | None = None) -> Balance:
    """Fill, surplus and share of new writes of every normal-class top-level vdev.

    ``version`` (``2.3.9``) chooses the allocator's rule: up to 2.3 a vdev's share of new writes
    is proportional to free bytes times data disks, from 2.4 to free bytes; free bytes also where
    the version or a vdev's data disks are unknown (metaslab_group_alloc_update, metaslab.c).

    That is the allocator's aim. A vdev whose queue is full is passed over
    (metaslab_group_allocatable), so that writes which keep the disks busy are shared by speed: here
    by disks, of which a mirror writes the same to all. The share of the added vdev, in raw bytes,
    aim/few writes/many writes/by speed, on 2.3.9 with 128 KiB blocks: a mirror beside a raidz2 of
    10, both empty, 1/0 to 2/7/9 %; a mirror beside a raidz1 of 5 at 70 %, 14/15/21/17 %; a raidz1
    of 5 beside that, 77/76/52/50 %.
    """
    vdevs = tuple(v for v in data_vdevs(root) if v.vclass == "normal")
    known = [v for v in vdevs if v.alloc_bytes is not None and v.size_bytes]
    size = sum(v.size_bytes or 0 for v in known)
    target = sum(v.alloc_bytes or 0 for v in known) / size if size else None
    counts = _weights(vdevs, [len(v.children) for v in vdevs], parse_version(version))
    weights = [(_free(v) or 0) * count for v, count in zip(vdevs, counts, strict=True)]
    aims, busy = _in_proportion(weights), _in_proportion([_speed(vdev) for vdev in vdevs])
    entries = tuple(map(partial(_entry, target), vdevs, aims, busy))
    fills = [e.fill for e in entries if e.fill is not None]
    surpluses = [e.surplus_bytes for e in entries if e.surplus_bytes is not None]
    return Balance(
        target_fill=target,
        spread=max(fills) - min(fills) if fills else None,
        imbalance_bytes=sum(max(0.0, s) for s in surpluses) if surpluses else None,
        vdevs=entries,
    )


def move_share(found: Balance, passes: int) -> float:
    """Bytes that a rebalance moves at most while a scan reads one.

    ``passes`` go over what is written: the write, and reads of the copy. A scan reads of all vdevs
    at once, as long as the one with most data takes; so much a vdev can do while the bytes are
    moved that the allocator gives to one of them, perhaps nearly all.
    """
    usual = 1 / (1 + passes)  # one pass waits for the other
    every = sum(vdev.alloc_bytes or 0 for vdev in found.vdevs)
    if not every:
        return usual
    held = [(vdev.alloc_bytes or 0) / every for vdev in found.vdevs]
    given = [vdev.new_write_share or 0.0 for vdev in found.vdevs]
    works = max(old + passes * new for old, new in zip(held, given, strict=True))
    return min(usual, max(held) / works)


def spaces_of(vdevs: Sequence[Vdev], release: Version) -> tuple[Space, ...]:
    """Top-level vdevs as predictions take them: what their free bytes count for in a release."""
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
        )
        for vdev, count, weight in zip(vdevs, devices, weights, strict=True)
    )


def _weights(vdevs: Sequence[Vdev], devices: Sequence[int], release: Version) -> list[float]:
    """What a free byte of each vdev counts for when the allocator of a release shares writes."""
    pairs = list(zip(vdevs, devices, strict=True))
    disks = [disks_of(vdev.kind, count, vdev.spares_left or 0) for vdev, count in pairs]
    if len(release) < 2 or release[:2] >= FREE_BYTES_ONLY or None in disks:
        disks = [1] * len(vdevs)
    counts = zip(vdevs, disks, strict=True)
    return [0.0 if vdev.allocating is False else float(count or 1) for vdev, count in counts]


def _devices(vdev: Vdev) -> int:
    """Devices in a vdev; of one in a listing its places; 0 where neither is known."""
    return len(vdev.children) or vdev.width or 0


def _data_share(vdev: Vdev, devices: int) -> float | None:
    """The share of a vdev's bytes that is not parity; padding is left out of account."""
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


def _speed(vdev: Vdev) -> int | None:
    """How many disks take a vdev's raw bytes at once; None where its disks are not listed."""
    if vdev.allocating is False:
        return 0
    if not vdev.kind.startswith(("raidz", "draid")):
        return 1  # the sides of a mirror take the same bytes
    return _devices(vdev) - (vdev.spares_left or 0) or None


def _in_proportion(parts: Sequence[float | None]) -> Sequence[float | None]:
    """Return each part's share of all; None for all of them where one is not known."""
    known = [part for part in parts if part is not None]
    every = sum(known)
    return (
        [part / every for part in known]
        if every and len(known) == len(parts)
        else [None] * len(parts)
    )


def _entry(target: float | None, vdev: Vdev, aim: float | None, busy: float | None) -> VdevBalance:
    size, alloc, free = vdev.size_bytes, vdev.alloc_bytes, _free(vdev)
    fill, surplus = None, None
    if alloc is not None and size:
        fill = alloc / size
        surplus = None if target is None else alloc - target * size
    return VdevBalance(
        name=vdev.name,
        kind=vdev.kind,
        size_bytes=size,
        alloc_bytes=alloc,
        free_bytes=free,
        fill=fill,
        frag=vdev.fragmentation,
        surplus_bytes=surplus,
        new_write_share=aim if free is not None else None,
        data_share=_data_share(vdev, len(vdev.children)),
        busy_write_share=busy,
    )
