"""Leaf physics: the capacity of a device, and the mutable state and counters of one leaf."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

MIB = 1 << 20
OFFLINE, REMOVED, CANT_OPEN, FAULTED, DEGRADED, ONLINE = 2, 3, 4, 5, 6, 7
"""vdev_state_t (include/sys/fs/zfs.h)."""
RUNNING, WORK_CANCELED, SUSPENDED, COMPLETE = 1, 2, 3, 4
"""vdev_trim_state_t and vdev_initializing_state_t (include/sys/fs/zfs.h)."""
NO_ERRORS = (0.0, 0.0, 0.0, 0.0)
WRITE_SEEK = 0.7
"""Seek time of a write as a share of a read's: the device's cache sorts writes before it seeks."""
QUEUED = 0.1
"""Share of a synchronous request's latency spent in the ZFS queue; the rest is in the device."""
HISTOGRAM = 37
"""Buckets of a latency histogram; bucket i counts up to 2^(i+1) ns (VDEV_L_HISTO_BUCKETS)."""


def bay_alias(alias: str, number: int, nvme: bool) -> str:
    """Return the name that vdev_id.conf gives to bay ``number``."""
    return f"{'nvme' if nvme else alias}{number:02d}"


class DiskModel(NamedTuple):
    """A kind of device. Rates in bytes/s, times in seconds."""

    name: str
    """Start of its by-id name: ``ata-WDC_WD80EFAX-68KNBN0``."""
    size: int
    outer: float
    """Sequential read rate at the start of the device."""
    inner: float
    """Sequential read rate at the end of the device (equal to ``outer`` for flash)."""
    seek: float = 0.0
    """Positioning time for a random request: seek and half a rotation; nearly 0 for flash."""
    latency: float = 0.0003
    """Link and controller time of a request; requests in flight overlap it."""
    write: float = 1.0
    """Sequential write rate as a share of the read rate."""
    cache_bytes: float = 0.0
    """Shingled disks: persistent cache that absorbs writes at full speed until it is full."""
    collapsed: float = 0.0
    """Shingled disks: write rate once the cache is full."""

    @property
    def flash(self) -> bool:
        """Whether the device has no moving parts."""
        return self.seek < 0.001

    def bandwidth(self, position: float) -> float:
        """Return sequential bytes/s at ``position`` (0 outermost … 1 innermost)."""
        return self.outer + (self.inner - self.outer) * position


# Devices for scenarios, with rates as vendors state and reviewers measured them.

GB, TB = 10**9, 10**12

RED_4T = DiskModel("ata-WDC_WD40EFRX-68N32N0", 4 * TB, 175e6, 82e6, 0.0125)
RED_8T = DiskModel("ata-WDC_WD80EFZZ-68BTXN0", 8 * TB, 196e6, 95e6, 0.0115)
EXOS_16T = DiskModel("ata-ST16000NM001G-2KK103", 16 * TB, 261e6, 124e6, 0.0085)
ULTRASTAR_18T = DiskModel("scsi-SWDC_WUH721818AL5204", 18 * TB, 269e6, 128e6, 0.0083)
GREEN_3T = DiskModel("ata-WDC_WD30EZRX-00MMMB0", 3 * TB, 142e6, 64e6, 0.0155)
DESKTOP_5T = DiskModel("ata-ST5000DM000-1FK178", 5 * TB, 170e6, 78e6, 0.0145)
SHINGLED_8T = DiskModel(
    "ata-ST8000DM004-2CX188", 8 * TB, 190e6, 92e6, 0.0125, cache_bytes=110e9, collapsed=21e6
)
NVME_1T5 = DiskModel("nvme-INTEL_SSDPED1K015TA", 1500 * GB, 3.58e9, 3.58e9, 0.0, 0.00006, 0.52)
NVME_2T = DiskModel("nvme-Samsung_SSD_980_PRO_2TB", 2 * TB, 5.2e9, 5.2e9, 0.0, 0.00007, 0.55)
OPTANE_100G = DiskModel("nvme-INTEL_SSDPEL1D100GA", 100 * GB, 2.2e9, 2.2e9, 0.0, 0.00002, 0.6)
SSD_400G = DiskModel("ata-INTEL_SSDSC2BA400G4", 400 * GB, 480e6, 480e6, 0.00005, 0.0001, 0.9)
SSD_1T = DiskModel("ata-Samsung_SSD_870_EVO_1TB", 10**12, 530e6, 530e6, 0.00006, 0.0001, 0.95)
REMOTE_4T = DiskModel("scsi-SLIO-ORG_iblock", 4 * TB, 230e6, 230e6, 0.002, 0.0045)
"""A disk behind a network: fast, but with latency on every request."""


class Waits:
    """A cumulative latency histogram of whole requests; fractions are carried to the next step."""

    __slots__ = ("counts", "rest")

    def __init__(self) -> None:
        self.counts = [0] * HISTOGRAM
        self.rest = 0.0

    def add(self, wait: float, requests: float) -> None:
        """Add ``requests`` that took around ``wait`` seconds: most near it, a few far above."""
        self.rest += requests
        whole = int(self.rest)
        self.rest -= whole
        # Clamped, so that the neighboring buckets exist.
        bucket = min(max(int(wait * 1e9).bit_length() - 1, 2), HISTOGRAM - 4)
        below, above, far = whole * 28 // 100, whole * 15 // 100, whole * 2 // 100
        counts = self.counts
        counts[bucket - 1] += below
        counts[bucket] += whole - below - above - far
        counts[bucket + 1] += above
        counts[bucket + 2] += far


@dataclass(slots=True)
class Flow:
    """One kind of I/O on one leaf during a step."""

    kind: str
    """Queue class: sync_r, sync_w, async_r, async_w, scrub, trim or rebuild."""
    write: bool
    ops: float
    """Requests/s."""
    size: float
    """Bytes per request."""
    time: float
    """Device seconds per request."""
    queue: float
    """Most requests it keeps in flight (``…_active``)."""
    pending: float = 0.0
    """Requests queued behind those in flight, if this leaf limits the work."""


@dataclass(slots=True)
class JobProgress:
    """Progress of a trim or initialize on one leaf, in bytes."""

    done: float
    total: float
    state: int
    time: float
    rate: float = 0.0


@dataclass(slots=True)
class Transfers:
    """Reads from a leaf so far, or writes to it; times in seconds."""

    ops: float = 0.0
    bytes: float = 0.0
    time: float = 0.0
    errors: float = 0.0
    waits: Waits = field(default_factory=Waits)


@dataclass(slots=True, eq=False)
class Leaf:
    """One device of the pool: identity, state and cumulative counters."""

    path: str
    name: str
    guid: int
    model: DiskModel
    device: str
    """Name in /proc/diskstats."""
    devid: str = ""
    """Name under /dev/disk/by-id, which udev builds from model and serial number."""
    slot: int = 0
    """Slot number, counted from 1 through all shelves of the machine, or NVMe slot number."""
    kind: str = "disk"
    state: int = ONLINE
    aux: int = 0
    slow: float = 1.0
    """Share of its model's rates that this unit reaches; below 1 for a slow disk."""
    swing: float = 0.5
    """Current value (0…1) of the small random variation of its speed."""
    bus: str | None = None
    """Controller or port multiplier that it shares with other disks."""
    sitting_out: bool = False
    """Whether reads avoid it (the property ``sit_out``, 2.4)."""
    dtl: float = 0.0
    """Share of its top-level vdev's data that it still lacks, 0…1."""
    deferred: bool = False
    rebuilding: bool = False
    position: float = 0.0
    scan_processed: float = 0.0
    rebuild_processed: float = 0.0
    reads: Transfers = field(default_factory=Transfers)
    writes: Transfers = field(default_factory=Transfers)
    sync_r: Waits = field(default_factory=Waits)
    sync_w: Waits = field(default_factory=Waits)
    """Queue latencies of synchronous reads and writes, as applications issue them."""
    busy_time: float = 0.0
    in_flight: float = 0.0
    cksum_errors: float = 0.0
    slow_ios: float = 0.0
    error_rate: tuple[float, float, float, float] = NO_ERRORS
    """Read, write and checksum errors and slow I/Os per hour of work."""
    cache_fill: float = 0.0
    collapsed: bool = False
    flows: list[Flow] = field(default_factory=list)
    """Its I/O in the current step."""
    used: float = 0.0
    """Share of device time that foreground I/O takes in the current step."""
    queues: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Queue class to (pending, active) requests as of the last step."""
    opened: float = 0.0
    """Simulated seconds at which its counters began."""
    jobs: dict[str, JobProgress] = field(default_factory=dict)
    """Job progress by kind, ``trim`` or ``initialize``."""
    present: bool = True
    """Whether the device is plugged in and readable, regardless of its state in the pool."""

    @property
    def is_nvme(self) -> bool:
        """Whether it is in an NVMe slot."""
        return self.device.startswith("nvme")

    @property
    def disk(self) -> str:
        """The kernel's name of the whole disk: ``sda``."""
        return self.device[:-2] if self.is_nvme else self.device.rstrip("0123456789")

    def named_by(self, alias: str) -> Leaf:
        """Name this leaf by its bay as vdev_id.conf does, or by model and serial for alias ""."""
        bay = bay_alias(alias, self.slot, self.is_nvme)
        self.name = bay if alias else self.devid
        self.path = f"/dev/disk/{'by-vdev' if alias else 'by-id'}/{self.name}-part1"
        return self

    @property
    def serial(self) -> str:
        """Serial number."""
        return self.devid.rpartition("_")[2]

    @property
    def online(self) -> bool:
        """Whether it answers (ONLINE or DEGRADED)."""
        return self.state >= DEGRADED

    @property
    def complete(self) -> bool:
        """Whether it answers and holds all of its data."""
        return self.online and self.dtl == 0.0

    def media_time(self, size: float, run: float, queue: float, write: bool) -> float:
        """Return the seconds that the device itself spends on a request of ``size`` bytes.

        ``run`` is the length in bytes that is contiguous with preceding requests: a run costs one
        seek however many requests it takes, and less if ``queue`` of them can be reordered.
        """
        model = self.model
        # With its cache full, a shingled disk rewrites whole bands: slow, and very uneven.
        if write and self.collapsed:
            return size / (model.collapsed * self.slow * (0.35 + 1.3 * self.swing))
        rate = model.outer + (model.inner - model.outer) * self.position
        if write:
            rate *= model.write
        # Reordering queued requests lengthens the runs; more than ten no longer help.
        reach = run * (1.0 + 0.12 * (queue if queue < 10.0 else 10.0))
        seeks = size / reach if reach > size else 1.0
        seek = model.seek * (WRITE_SEEK if write else 1.0)
        return (size / rate + seeks * seek) / (self.slow * (0.96 + 0.08 * self.swing))

    def capacity(self, size: float, media: float, queue: float) -> float:
        """Return the bytes/s of background I/O possible with ``queue`` requests in flight.

        ``media`` is the ``media_time`` of a request of ``size`` bytes. Foreground I/O (``used``,
        its share of device time) goes first; the rest is shared in proportion to the requests that
        each keeps outstanding.
        """
        left = (1.0 - self.used) * queue / (queue + 3.0 * self.used)
        return size * left * min(1.0 / media, queue / (media + self.model.latency))

    def write_cached(self, written: float, dt: float) -> None:
        """Update a shingled disk's cache: ``written`` bytes added, ``dt`` seconds of draining."""
        model = self.model
        if not model.cache_bytes:
            return
        # Until the cache is full, the disk only empties it in the background.
        drained = model.collapsed * dt * (1.0 if self.collapsed else 0.25)
        self.cache_fill = min(model.cache_bytes, max(0.0, self.cache_fill + written - drained))
        # Once full, the cache drains to 90 % before writes are fast again, so that the rate does
        # not flip at every step.
        full = self.cache_fill >= model.cache_bytes
        self.collapsed = full or (self.collapsed and self.cache_fill > 0.9 * model.cache_bytes)

    def account(self, dt: float) -> None:
        """Add ``dt`` seconds of its flows to every counter, then forget the flows."""
        flows, latency = self.flows, self.model.latency
        self.in_flight, self.queues, self.flows = 0.0, {}, []
        if not flows:
            self.write_cached(0.0, dt)
            return
        used = wanted = room = 0.0
        for flow in flows:
            used += flow.ops * flow.time
            wanted += flow.ops * (flow.time + latency)
            room += flow.queue
        # Latency grows as the device saturates, but no further than the allowed requests in flight
        # can fill.
        slowed = min(1.0 / max(1.0 - used, 0.02), max(1.0, room / max(wanted, 1e-9)))
        written = 0.0
        for flow in flows:
            written += self._account_one(flow, (flow.time + latency) * slowed, dt)
        # For random arrivals, 1 - exp(-n) is the share of the time with any request in flight, if n
        # are in flight on average (Poisson distribution).
        self.busy_time += dt * min(1.0, max(used, 1.0 - math.exp(-self.in_flight)))
        self.write_cached(written, dt)

    def _account_one(self, flow: Flow, wait: float, dt: float) -> float:
        """Count one flow whose requests take ``wait`` seconds; return the bytes it wrote."""
        active = wait * flow.ops
        self.in_flight += active
        pending, running = self.queues.get(flow.kind, (0.0, 0.0))
        self.queues[flow.kind] = (pending + flow.pending, running + active)
        ops = flow.ops * dt
        count = self.writes if flow.write else self.reads
        count.ops += ops
        count.bytes += ops * flow.size
        count.time += ops * wait
        count.waits.add(wait, ops)
        if flow.kind == "sync_r":
            self.sync_r.add(QUEUED * wait, ops)
        elif flow.kind == "sync_w":
            self.sync_w.add(QUEUED * wait, ops)
        return ops * flow.size if flow.write else 0.0
