"""The figures a verdict is based on, gathered from one sample and the pool's recent past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.device_stats import LeafStats, PoolLoad
from zconsole.diagnosis.bottleneck.finding import TunableStep
from zconsole.diagnosis.bottleneck.stage_cycles import StageCycles, queued
from zconsole.pool.model import IoRates, Scan, Vdev
from zconsole.pool.topology import Placed

DATA = ("normal", "special", "dedup")
FOREGROUND = ("sync_r", "sync_w", "async_r")
"""Queue classes that only applications use, the last by reading ahead of them (ZIO_PRIORITY,
include/sys/zio_priority.h; what a scan reads ahead is of its own class, dsl_scan.c)."""
SCANNING = ("scrub", "rebuild")


class WatchedScan(NamedTuple):
    """A scan with what watching it has told."""

    scan: Scan
    stage: str | None
    rate: float | None
    """Bytes/s of what its end waits for: of issuing where it has two stages."""


class Disk(NamedTuple):
    """One leaf that the scan uses. Rates in bytes/s and requests/s, times in seconds."""

    name: str
    top: str
    """Key of its top-level vdev."""
    target: bool
    """Whether it is being filled; else the scan reads from it."""
    rates: IoRates
    past: LeafStats

    @property
    def rate(self) -> float:
        """Bytes/s in the direction the scan uses it."""
        return (self.rates.write if self.target else self.rates.read) or 0.0

    @property
    def ops(self) -> float:
        """Requests/s in that direction."""
        return (self.rates.write_ops if self.target else self.rates.read_ops) or 0.0

    @property
    def request(self) -> float | None:
        """Mean bytes a request in that direction; None without requests."""
        return self.rate / self.ops if self.ops > 0 else None

    @property
    def requests(self) -> float:
        """Requests/s in both directions."""
        return (self.rates.read_ops or 0.0) + (self.rates.write_ops or 0.0)

    @property
    def busy(self) -> float | None:
        """Share of time with I/O in flight; without diskstats, from requests and their waits."""
        if self.rates.busy is not None or self.rates.latency is None:
            return self.rates.busy
        return min(1.0, self.requests * self.rates.latency)

    @property
    def measured(self) -> bool:
        """Whether its load is known: a busy share, or that it had no requests."""
        idle = self.rates.read_ops == 0 and self.rates.write_ops == 0
        return self.busy is not None or idle

    @property
    def service(self) -> float | None:
        """Device seconds a request: busy time by requests; None when idle or unknown."""
        return self.busy / self.requests if self.busy is not None and self.requests > 0 else None

    @property
    def pending(self) -> float:
        """Scan requests waiting to be sent to it, averaged over the last samples."""
        names = (*SCANNING, "async_w") if self.target else SCANNING
        return sum(self.past.pending.get(name, 0.0) for name in names)

    @property
    def others(self) -> float | None:
        """Share of the requests in flight from applications; None without queue figures."""
        return _of_applications(self.past.active)

    @property
    def usual_others(self) -> float | None:
        """Their share averaged over AVERAGED seconds: in flight at one moment it varies."""
        return _of_applications(self.past.flying)


NO_DISK = Disk("", "", False, IoRates(), LeafStats())
"""Stands for the disk where there is none."""


def _of_applications(active: Mapping[str, float]) -> float | None:
    total = sum(active.values())
    if total <= 0:
        return None
    return sum(active.get(name, 0.0) for name in FOREGROUND) / total


class Evidence(NamedTuple):
    """The evidence about one running scan."""

    scan: Scan
    stage: str | None
    rate: float
    """Bytes/s of progress."""
    disks: tuple[Disk, ...] = ()
    tops: Mapping[str, Vdev] = MappingProxyType({})
    """Top-level vdevs at work, by key."""
    cpu: float | None = None
    memory: int | None = None
    seconds: float = 0.0
    """How long it was watched."""
    turns: StageCycles = StageCycles()
    """How scanning and issuing alternated."""
    walked: float | None = None
    """Share of the metadata that is scanned, 0…1."""
    sorted_share: float | None = None
    """The largest share of the blocks left to issue that was sorted in memory in this turn."""
    foreground_writes: float = 0.0
    """Bytes/s written to the disks the scan only reads."""
    load: PoolLoad = PoolLoad()
    """The rate of all devices together."""
    version: tuple[int, ...] = ()
    tunables: Mapping[str, int] = MappingProxyType({})
    """Live module parameters, where known."""
    steps: Mapping[str, TunableStep] = MappingProxyType({})
    """The newest raises of tunables while it ran, and what they brought."""

    @property
    def sources(self) -> tuple[Disk, ...]:
        """The disks the scan reads."""
        return tuple(disk for disk in self.disks if not disk.target)

    @property
    def targets(self) -> tuple[Disk, ...]:
        """The disks being filled."""
        return tuple(disk for disk in self.disks if disk.target)

    @property
    def moving(self) -> tuple[Disk, ...]:
        """The disks with more than a trickle of 1 MB/s."""
        return tuple(disk for disk in self.disks if disk.rate > 1e6)

    @property
    def busy(self) -> float:
        """The median busy share of the sources."""
        return middle(disk.busy for disk in self.sources)

    @property
    def request(self) -> float:
        """The median bytes a request of the sources."""
        return middle(disk.request for disk in self.sources)

    @property
    def busiest(self) -> float:
        """The busy share of the busiest disk."""
        return max((disk.busy or 0.0 for disk in self.disks), default=0.0)


def middle(values: Iterable[float | None], default: float = 0.0) -> float:
    """The median of what is known."""
    known = [value for value in values if value is not None]
    if not known:
        return default
    from statistics import median  # only here: one sample has no rates, and starts faster

    return median(known)


def disks_of(
    scan: Scan,
    tree: Mapping[str, Placed],
    rates: Mapping[str, IoRates],
    past: Mapping[str, LeafStats],
) -> tuple[Disk, ...]:
    """The leaves that work for a scan: sources and, unless it is a scrub, those being filled.

    A resilver reads only the top-level vdevs of the devices it fills; the others are left out.
    A distributed spare lies on every disk of its dRAID: each is a source, none is new.
    """
    filling = scan.function in ("resilver", "rebuild")
    leaves = [p for p in tree.values() if _at_work(p)]
    at_work = {p.top for p in leaves if p.vdev.resilvering} if filling else set()
    chosen = [p for p in leaves if not at_work or p.top in at_work]
    return tuple(
        Disk(p.vdev.name, p.top or "", filling and _is_filled(p, tree), rates[p.key], past[p.key])
        for p in chosen
        if p.key in rates and p.key in past
    )


def _at_work(place: Placed) -> bool:
    vdev = place.vdev
    online = vdev.state in ("ONLINE", "DEGRADED") and not vdev.awaiting_resilver
    device = not vdev.children and vdev.kind != "dspare" and place.depth > 0
    return device and vdev.vclass in DATA and online


def _is_filled(place: Placed, tree: Mapping[str, Placed]) -> bool:
    """Whether it is new: zpool marks all disks of a dRAID, of which only a replacing one's are."""
    member = place.parent == place.top and place.top in tree
    distributed = member and tree[place.top or ""].vdev.kind.startswith("draid")
    return place.vdev.resilvering and not distributed


def sorted_share(scan: Scan) -> float | None:
    """Bytes walked and not issued, as a share of all that is left; None when unknown."""
    counts = (scan.total_bytes, scan.scanned_bytes, scan.issued_bytes)
    if None in counts or not scan.two_stage:
        return None
    total, scanned = float(scan.total_bytes or 0), float(scan.scanned_bytes or 0)
    waiting = queued(scan)
    needed = max(0.0, 1.0 - (scan.skipped_bytes or 0) / scanned) if scanned else 1.0
    left = waiting + max(0.0, total - scanned) * needed
    return waiting / left if left > 0 else None
