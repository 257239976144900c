"""Immutable model of a pool, which every source produces and every view displays.

Bytes are integers, times are epoch seconds, durations are seconds, shares are 0…1.
``None`` means that the source does not tell; it never stands for 0 or for nothing.
Words (states, kinds, classes) are kept as strings, so that an unknown one survives verbatim.

Vdevs and counters are named tuples: every sample creates one of each per device, and frozen
dataclasses would make decoding a fifth slower (tests/bench/tick.py).

At the end, what is asked of the tree of vdevs everywhere: keys that are stable across samples, the
vdevs that hold data, groups, and whether the path of a failed leaf still leads to its own disk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from zconsole.pool.chassis import Enclosure, LeafDisk

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Shared empty default mapping; it cannot be written to."""

SITTING_OUT = "(sitting out)"
"""Note given to a leaf whose property ``sit_out`` is on; zpool itself prints none."""
REPAIRING = "(repairing)"
"""Note of a leaf with all data on which a scan writes blocks again that could not be read."""
MULTIHOST, ERRORS, UNEXPLAINED = "multihost", "errors", "unexplained"
"""Reasons why a pool is suspended.

The writes that keep other hosts from importing it failed; devices failed; or the source does not
tell.
"""
UNKNOWN_KIND = "unknown"
"""Kind of a vdev that has children, but whose layout the source does not tell."""
GROUP_KINDS = frozenset({"replacing", "spare"})
"""Interior vdevs that exist only while a device is being replaced or spared."""


class ErrorCounters(NamedTuple):
    """Errors of one vdev since the last clear; ``slow`` counts slow I/Os of a leaf."""

    read: int | None = None
    write: int | None = None
    cksum: int | None = None
    slow: int | None = None

    @property
    def total(self) -> int:
        """Sum of read, write and checksum errors; unknown counts are 0."""
        return (self.read or 0) + (self.write or 0) + (self.cksum or 0)


class IoCounters(NamedTuple):
    """Cumulative I/O of one vdev since it was opened (``vdev_stat_t``, include/sys/fs/zfs.h).

    Also that of a dataset since it was mounted (``dataset_kstat_values_t``, dataset_kstats.h).
    """

    timestamp: float
    """Seconds on the kernel's monotonic clock; only differences are meaningful."""
    read_ops: int
    write_ops: int
    read_bytes: int
    write_bytes: int


class BlockCounters(NamedTuple):
    """Cumulative /proc/diskstats figures of the block device(s) under a leaf (iostats.rst)."""

    names: tuple[str, ...]
    read_ops: int
    read_bytes: int
    read_seconds: float
    write_ops: int
    write_bytes: int
    write_seconds: float
    busy_seconds: float
    """Summed over the devices."""
    clock: float | None = None
    """Monotonic clock when they were read, seconds; None if that was with the sample."""


class IoRates(NamedTuple):
    """I/O rates of one vdev: bytes/s, requests/s, seconds per request, and busy share of time."""

    read: float | None = None
    write: float | None = None
    read_ops: float | None = None
    write_ops: float | None = None
    latency: float | None = None
    busy: float | None = None


class DatasetLoad(NamedTuple):
    """Logical I/O of a mounted dataset or a volume: before compression, ARC hits included.

    Rates are in bytes/s and requests/s.
    """

    name: str
    read_rate: float
    write_rate: float
    read_ops: float
    write_ops: float


class Progress(NamedTuple):
    """Trim or initialize of one leaf: ``state`` active, suspended, canceled or complete."""

    state: str
    done: int | None = None
    total: int | None = None
    share: float | None = None
    time: float | None = None


_PARTITION = re.compile(r"-part\d+$|(?:^|/)(?:(?:s|h|v|xv)d[a-z]+|\w*\dp)\d+$")
"""Suffix of a partition's name."""


class Vdev(NamedTuple):
    """One node of the topology, nested and named as ``zpool status`` prints it."""

    name: str
    kind: str
    vclass: str = "normal"
    state: str = "ONLINE"
    guid: str | None = None
    path: str | None = None
    note: str = ""
    """Text after the counters, as printed: ``was /dev/…``, an aux text, ``(resilvering)``."""
    errors: ErrorCounters = ErrorCounters()
    resilvering: bool = False
    awaiting_resilver: bool = False
    unfilled: bool | None = None
    """Whether it was attached and is not filled yet; None if the source does not tell."""
    shared: bool = False
    """Whether it is a hot spare attached in several places.

    None of these surely has all data: filling one overwrites the other.
    """
    removing: bool = False
    partial: bool = False
    """Whether the source may omit some of its devices, or list devices of another vdev below it."""
    alloc_bytes: int | None = None
    size_bytes: int | None = None
    """Allocatable bytes of a top-level vdev or the pool; the device's size for a leaf."""
    free_bytes: int | None = None
    """As the source printed it; otherwise size minus allocated."""
    fragmentation: float | None = None
    """Fragmentation of free space, 0…1; top-level vdevs only."""
    scan_processed: int | None = None
    """Bytes the running scan repaired onto this leaf (healing) or rebuilt (sequential)."""
    ashift: int | None = None
    logical_ashift: int | None = None
    """The least that its device allows."""
    physical_ashift: int | None = None
    data_disks: int | None = None
    """dRAID only: data devices per redundancy group."""
    width: int | None = None
    """Number of devices, shown or not, of a dRAID or of a vdev in ``zpool list``."""
    failure_group: int | None = None
    """dRAID with several failure groups: devices per group.

    Devices are listed group by group. The first ones of all groups form a failure domain, as do
    the second ones, and so on.
    """
    spares_left: int | None = None
    initialize: Progress | None = None
    trim: Progress | None = None
    trimmable: bool | None = None
    """Whether the device supports trim; None if the source does not tell."""
    disk: LeafDisk | None = None
    """The disk under a leaf, if the source knows the machine's disks."""
    phys_path: str | None = None
    devid: str | None = None
    allocating: bool | None = None
    autosit: bool | None = None
    """Whether slow disks of a raidz or dRAID may sit out (``autosit``, 2.4); None if unknown."""
    io: IoCounters | None = None
    rates: IoRates | None = None
    """Rates from the source (``zpool iostat``); otherwise they are derived from the history."""
    block: BlockCounters | None = None
    queues: Mapping[str, tuple[int, int]] = NOTHING
    """Pending and active I/Os now, by class (``sync_r`` … ``scrub``, ``rebuild``)."""
    histograms: Mapping[str, tuple[int, ...]] = NOTHING
    """Cumulative histograms: ``disk_r``, ``disk_w`` (bucket i = up to 2^(i+1) ns) and others."""
    children: tuple[Vdev, ...] = ()

    @property
    def sitting_out(self) -> bool:
        """Whether reads avoid this leaf (property ``sit_out``, 2.4)."""
        return SITTING_OUT in self.note

    @property
    def argument(self) -> str:
        """The name to give to zpool: GUID, else absolute path, else the printed name.

        A GUID can't look like an option, has no control characters, and stays the same when device
        names change (zpool-replace(8): "device or GUID").
        """
        return self.guid or (self.path if (self.path or "").startswith("/") else None) or self.name

    @property
    def located(self) -> str:
        """How to find it by hand, as ``Slot 05 (serial ZC1A)`` (``LeafDisk.called``)."""
        return self.disk.called(self.name) if self.disk is not None else self.name

    @property
    def called(self) -> str:
        """Its name, or how to find it by hand if its bay is known and differs from the name.

        A partition keeps its name: others may be on the same disk.
        """
        bay = self.disk.bay if self.disk is not None else ""
        has_own = bay in ("", self.name) or _PARTITION.search(self.name)
        return self.name if has_own else self.located

    def walk(self) -> Iterator[Vdev]:
        """Yield the vdev and all its descendants, in the order of ``zpool status``."""
        rest = [self]
        while rest:
            vdev = rest.pop()
            yield vdev
            if vdev.children:
                rest.extend(reversed(vdev.children))

    def leaves(self) -> Iterator[Vdev]:
        """Yield the devices below this vdev, or itself if it is one."""
        return (vdev for vdev in self.walk() if not vdev.children)


class Scan(NamedTuple):
    """A resilver, scrub, sequential rebuild or error scrub, with counters as the kernel keeps them.

    Counters of a text source are the printed ones, ×1024^k; ``resolution`` is the precision that
    is left of ``issued_bytes`` (0 if exact).
    """

    function: str = "none"
    """``resilver``, ``scrub``, ``rebuild``, ``errorscrub`` or ``none``."""
    state: str = "none"
    """``running``, ``paused``, ``finished``, ``canceled`` or ``none``."""
    stage: str | None = None
    """``scanning`` or ``issuing``; None if nothing runs, or the scan has one stage only."""
    vdev: str | None = None
    """Top-level vdev that a rebuild works on."""
    start: float | None = None
    end: float | None = None
    total_bytes: int | None = None
    """Bytes to examine (rebuild: the current estimate), including those to skip."""
    scanned_bytes: int | None = None
    issued_bytes: int | None = None
    skipped_bytes: int | None = None
    processed_bytes: int | None = None
    """Repaired or resilvered bytes."""
    errors: int | None = None
    percent: float | None = None
    """As this ZFS version prints it, unclamped (print_scan_scrub_resilver_status, zpool_main.c)."""
    zpool_eta: float | None = None
    """Seconds left as ``zpool status`` prints them; None if it prints none."""
    zpool_scan_rate: float | None = None
    """Bytes/s as zpool prints them: the average over the current pass."""
    zpool_issue_rate: float | None = None
    duration: float | None = None
    paused_since: float | None = None
    """Start of the pause; a scan that was stopped in it keeps it, so that it counts as pause."""
    pass_start: float | None = None
    pass_scanned: int | None = None
    pass_issued: int | None = None
    pass_paused: float | None = None
    """Seconds for which this pass was paused."""
    resolution: float = 0.0
    """Rounding error of ``issued_bytes`` in bytes (half the last printed digit); 0 if exact."""
    printed: bool = False
    """Whether its byte counts are rounded for display, perhaps except ``issued_bytes``."""
    issues_skipped: bool = False
    """Whether skipped bytes count as issued while it runs (before 2.2)."""
    two_stage: bool = True
    """False if scanned bytes are the only counter, and so measure the work (before 0.8)."""
    thorough: bool | None = None
    """Whether a scrub also decrypts and decompresses (``-t``); None if unknown, as in JSON."""
    full: bool | None = None
    """Whether a scrub covers everything rather than a range of txgs (``-C``, ``-S``, ``-E``).

    None if the pool's history does not tell.
    """

    @property
    def name(self) -> str:
        """Function for display, as in ``zpool status``, with its kind: ``partial scrub``."""
        if self.function == "errorscrub":
            return "error scrub"
        word = f"partial {self.function}" if self.full is False else self.function
        return f"thorough {word}" if self.thorough else word

    @property
    def to_issue_bytes(self) -> int | None:
        """Bytes to issue in total: ``total_bytes`` minus skipped ones; None if unknown."""
        if self.total_bytes is None:
            return None
        return max(0, self.total_bytes - (self.skipped_bytes or 0))

    @property
    def progress_bytes(self) -> tuple[int | None, int | None]:
        """Bytes done and in total, the basis of ``percent``: for a rebuild the scanned bytes."""
        if self.function == "rebuild":
            return self.scanned_bytes, self.total_bytes
        done = self.issued_bytes if self.two_stage else self.scanned_bytes
        return done, self.to_issue_bytes

    @property
    def active(self) -> bool:
        """Whether it is running or paused."""
        return self.state in ("running", "paused")

    @property
    def key(self) -> tuple[str, str | None, float | None]:
        """Identity of a scan across samples: function, vdev and start time."""
        return (self.function, self.vdev, self.start)


class Activity(NamedTuple):
    """Work other than scans: ``removal``, ``expansion``, ``checkpoint`` or ``condense``."""

    kind: str
    state: str
    """``running``, ``paused``, ``finished``, ``canceled`` or ``exists`` (a checkpoint)."""
    vdev: str | None = None
    """Vdev in progress; for ``condense`` the type of metadata."""
    start: float | None = None
    end: float | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None
    percent: float | None = None
    zpool_eta: float | None = None
    zpool_rate: float | None = None
    """Bytes/s as zpool prints them: the average since the start."""
    note: str = ""
    resolution: float = 0.0
    """Rounding error of ``done_bytes`` in bytes; 0 if exact."""

    @property
    def discarding(self) -> bool:
        """Whether a checkpoint is being discarded; ``total_bytes`` is then what is left of it."""
        return self.kind == "checkpoint" and self.state == "running"


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes (zvols) of a pool."""

    count: int
    bytes: int
    """Bytes of their blocks and of those that only their snapshots hold, without parity."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool at the time of one sample."""

    name: str
    state: str | None
    root: Vdev
    """Root vdev; log, cache, spare, special and dedup vdevs are among its children."""
    guid: str | None = None
    message: str | None = None
    """The ``status:`` text, joined to one line."""
    action: str | None = None
    see: str | None = None
    suspension: str | None = None
    """Why all I/O is suspended: MULTIHOST, ERRORS or UNEXPLAINED; None if it is not.

    zpool may print another ``state`` meanwhile (before 0.8 that of the devices).
    """
    lacks: str | None = None
    """Missing part of the source without which a pool can't be called OK; None if complete.

    Such as ``the text ends before its table``.
    """
    scans_known: bool = True
    """Whether the source reports scans, so that empty ``scans`` means that there were none."""
    scans: tuple[Scan, ...] = ()
    """All known scans: running ones first, then newest first."""
    activities: tuple[Activity, ...] = ()
    error_count: int | None = None
    """Number of data errors; None if the source does not tell."""
    damaged: bool = False
    """Whether there are data errors, but their number is unknown."""
    errors: tuple[str, ...] | None = None
    """Names of damaged files; None if not permitted or not requested, () if there are none."""
    destroyed: Mapping[str, str] = field(default_factory=dict)
    """Last names of destroyed datasets, if known, by their hexadecimal ids in ``errors``."""
    comment: str | None = None
    created: float | None = None
    """When it was created (epoch seconds), from its history."""
    full_scrub: float | None = None
    """End of the last full scrub (epoch seconds), from its history."""
    volumes: Volumes | None = None
    """None if the source does not tell."""

    @property
    def scan(self) -> Scan:
        """The running scan, otherwise the newest, otherwise one with function ``none``."""
        return self.scans[0] if self.scans else Scan()

    @property
    def suspended(self) -> bool:
        """Whether all I/O is suspended."""
        return self.suspension is not None or self.state == "SUSPENDED"

    @property
    def checkpoint(self) -> Activity | None:
        """The checkpoint that exists or is being discarded; None without one."""
        kinds = ("exists", "running")
        found = (a for a in self.activities if a.kind == "checkpoint" and a.state in kinds)
        return next(found, None)


class HostLoad(NamedTuple):
    """Load of the machine when the sample was taken: CPU share 0…1, bytes of memory."""

    cpu: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    arc_bytes: int | None = None
    zed: bool | None = None
    """Whether ZED runs, which lets hot spares stand in; None if unknown."""


class Event(NamedTuple):
    """An event: from ``zpool events``, or a change between two samples."""

    t: float
    name: str
    """Event class, such as ``resilver_start``, ``statechange``, ``checksum``."""
    text: str
    """Description in one line."""
    severity: str = "info"
    """``info``, ``notice``, ``warning`` or ``error``."""
    vdev: str | None = None
    origin: str = "zpool"
    """``zpool``, ``console`` (a change that the console observed) or ``kernel``."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pool at one time, from one source."""

    t: float
    """Epoch seconds."""
    clock: float
    """Seconds of a monotonic clock, for differences; equal to ``t`` if the source has none."""
    source: str
    """``libzfs``, ``json``, ``text``, ``replay`` or ``demo``."""
    exact: bool
    pool: Pool
    kstat: str | None = None
    """Content of /proc/spl/kstat/zfs/POOL/state."""
    host: HostLoad | None = None
    version: str | None = None
    """OpenZFS version of the sampled machine, such as ``2.3.9``, if known."""
    events: tuple[Event, ...] = ()
    tunables: Mapping[str, int] = field(default_factory=dict)
    """Module parameters for scans, if the source could read them."""
    datasets: Mapping[tuple[str, str], IoCounters] = field(default_factory=dict)
    """Logical I/O of mounted datasets and volumes, by name and time of mounting.

    Empty if it was not read with this sample.
    """
    enclosures: Collection[Enclosure] = ()
    """Enclosures of the machine, with their slots; () if unknown."""
    dated: bool = True
    """Whether ``t`` is the time it was taken, which may be unknown for saved output."""
    began: float | None = None
    """Monotonic clock when reading began, seconds; None if the source does not tell."""
    age: float = 0.0
    """Seconds since it was read, if no newer sample came in time."""


class SampleFailure(NamedTuple):
    """Reason, for the operator, why there is no fresh sample of a pool."""

    pool: str
    t: float
    clock: float
    text: str
    kstat: str | None = None
    block: Mapping[str, BlockCounters] = MappingProxyType({})
    """Counters that /proc/diskstats still has, by leaf path."""
    gone: tuple[str, ...] = ()
    """Paths of leaves whose devices have left /proc/diskstats."""
    host: HostLoad | None = None
    absent: bool = False
    """Whether it was exported or destroyed: the kernel does not list it any more."""
    gap: bool = False
    """Whether this stands for an unreadable sample in a recording."""
    began: float | None = None
    """Monotonic clock when the round without a reading began, seconds; None if unknown."""


Version = tuple[int, ...]
_NUMBERS = re.compile(r"(?:zfs-|zfs-kmod-)?v?(\d{1,9}(?:\.\d{1,9})*)")


def parse_version(text: str | None) -> Version:
    """Parse ``2.3.9``, ``2.4.0-rc2`` or ``zfs-kmod-2.3.9-1`` to its leading numbers; () if none."""
    match = _NUMBERS.match(text or "")
    return tuple(int(part) for part in match[1].split(".")) if match else ()


class Placed(NamedTuple):
    """A vdev with its position in the tree: key, depth, and keys of its parents."""

    key: str
    depth: int
    vdev: Vdev
    parent: str | None
    top: str | None
    """Key of its top-level vdev (its own for a top-level vdev, None for the root)."""


def placed(root: Vdev) -> tuple[Placed, ...]:
    """Return every vdev from ``root`` on, in the order of ``zpool status``.

    The key is the GUID if the source knows it, otherwise the path of names from the root, with a
    counter if siblings share a name (``tank/raidz1#1/sda``). The key of a row in the spares section
    has its class before the GUID, as a spare in use has a second row in the group it is in.
    """
    found: list[Placed] = []
    seen: set[str] = set()
    rest: list[tuple[Vdev, Placed | None, str]] = [(root, None, "")]
    while rest:
        vdev, above, trail = rest.pop()
        trail = f"{trail}/{vdev.name}" if trail else vdev.name
        base = vdev.guid or trail
        if vdev.guid and vdev.vclass == "spare":
            base = f"spare:{vdev.guid}"
        key, count = base, 0
        while key in seen:
            count += 1
            key = f"{base}#{count}"
        seen.add(key)
        if above is None:
            each = Placed(key, 0, vdev, None, None)
        else:
            each = Placed(key, above.depth + 1, vdev, above.key, above.top or key)
        found.append(each)
        rest.extend((child, each, trail) for child in reversed(vdev.children))
    return tuple(found)


DATA = ("normal", "special", "dedup")
"""Classes of vdevs that hold data of the pool."""
APART = ("cache", "spare")
"""Classes of devices whose states and I/O don't count for the pool."""


def data_vdevs(root: Vdev) -> tuple[Vdev, ...]:
    """Return the top-level vdevs that hold data, without holes and removed ones."""
    return tuple(
        v for v in root.children if v.vclass in DATA and v.kind not in ("hole", "indirect")
    )


def is_group(vdev: Vdev) -> bool:
    """Whether a vdev is a replacing or hot-spare group (an interior vdev, not a spare device)."""
    return vdev.kind in GROUP_KINDS and bool(vdev.children)


FAILED = ("FAULTED", "UNAVAIL", "REMOVED", "OFFLINE")
"""States in which a device can't be read."""
LEAST = 5
"""Least characters of a serial number or WWN to search for in the ids of other leaves."""


def path_is_reused(leaf: Vdev, root: Vdev, serial: str, wwn: str) -> bool:
    """Whether a failed leaf's path now leads to another disk, with this ``serial`` and ``wwn``.

    Paths move: after a boot without the disk, the next one gets its kernel name, and the leaf is
    printed as ``was /dev/sdb1`` next to the healthy one that is ``/dev/sdb1`` now. False if that is
    unknown.
    """
    ids = _marks(serial, wwn)
    if leaf.state not in FAILED or not leaf.path or any(mark in (leaf.devid or "") for mark in ids):
        return False
    others = [
        x
        for x in root.leaves()
        if x is not leaf and x.guid != (leaf.guid or "") and x.vclass != "spare"
    ]
    if any(x.path == leaf.path and x.state not in FAILED for x in others):
        return True
    marks = [mark for mark in ids if len(mark) >= LEAST]
    if any(mark in (x.devid or "") for x in others for mark in marks):
        return True
    # A name directly in /dev, such as sdb1, goes to the next disk after a boot.
    return bool(leaf.path.rpartition("/")[0] == "/dev" and leaf.devid and marks)


def has_disk_id(leaf: Vdev, serial: str, wwn: str) -> bool:
    """Whether the device id that ZFS stored for a leaf contains this serial number or WWN."""
    return any(mark in (leaf.devid or "") for mark in _marks(serial, wwn))


def _marks(serial: str, wwn: str) -> list[str]:
    """Return serial number and WWN as they appear in udev's ids, which have ``_`` for a blank."""
    words = (serial.replace(" ", "_"), wwn.rpartition(".")[2].removeprefix("0x"))
    return [word for word in words if word]
