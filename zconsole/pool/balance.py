"""How evenly data lies on the normal-class top-level vdevs, and where new writes go."""

from __future__ import annotations

from collections.abc import Sequence
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
    """
    vdevs = tuple(v for v in data_vdevs(root) if v.vclass == "normal")
    known = [v for v in vdevs if v.alloc_bytes is not None and v.size_bytes]
    size = sum(v.size_bytes or 0 for v in known)
    target = sum(v.alloc_bytes or 0 for v in known) / size if size else None
    counts = _weights(vdevs, [len(v.children) for v in vdevs], parse_version(version))
    weights = [(_free(v) or 0) * count for v, count in zip(vdevs, counts, strict=True)]
    every = sum(weights)
    entries = tuple(
        _entry(vdev, target, weight, every) for vdev, weight in zip(vdevs, weights, strict=True)
    )
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
    devices = [len(vdev.children) or vdev.width or 0 for vdev in vdevs]  # of a listing: the width
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


def _entry(vdev: Vdev, target: float | None, weight: float, weights: float) -> VdevBalance:
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
        new_write_share=weight / weights if free is not None and weights else None,
        data_share=_data_share(vdev, len(vdev.children)),
    )
