"""The immutable picture of a pool that every source ends in and every view starts from.

Bytes are integers, times are epoch seconds, durations are seconds, shares are 0…1.
``None`` means that the source could not know it; it never stands for 0 or for nothing.
Words (states, kinds, classes) are kept as strings, so that an unknown one survives verbatim.

Vdevs and counters are named tuples: every sample makes one of each for every device, and as frozen
dataclasses they make decoding a fifth slower (tests/bench/tick.py).
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
"""The note of a leaf whose property ``sit_out`` is on; zpool prints none."""
MULTIHOST, ERRORS, UNEXPLAINED = "multihost", "errors", "unexplained"
"""Why a pool is suspended: the writes that keep other hosts from importing it failed; devices
failed; or the source does not say."""
UNKNOWN_KIND = "unknown"
"""Kind of a vdev with devices below it whose layout the source does not tell."""
GROUP_KINDS = frozenset({"replacing", "spare"})
"""Interior vdevs that exist only while a device is being replaced or spared."""


class ErrorCounters(NamedTuple):
    """Errors of one vdev since they were last cleared; ``slow`` counts slow I/Os of a leaf."""

    read: int | None = None
    write: int | None = None
    cksum: int | None = None
    slow: int | None = None

    @property
    def total(self) -> int:
        """Read, write and checksum errors together; unknown ones count as none."""
        return (self.read or 0) + (self.write or 0) + (self.cksum or 0)


class IoCounters(NamedTuple):
    """Cumulative I/O of one vdev since it was opened (``vdev_stat_t``, include/sys/fs/zfs.h)."""

    timestamp: float
    """Seconds on the kernel's own monotonic clock; differences only."""
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
    """Of several devices their sum."""


class IoRates(NamedTuple):
    """I/O of one vdev per second; seconds a request for latency; share of time for busy."""

    read: float | None = None
    write: float | None = None
    read_ops: float | None = None
    write_ops: float | None = None
    latency: float | None = None
    busy: float | None = None


class Progress(NamedTuple):
    """Trim or initialize of one leaf: ``state`` active, suspended, canceled or complete."""

    state: str
    done: int | None = None
    total: int | None = None
    share: float | None = None
    time: float | None = None
    errors: int | None = None


_PARTITION = re.compile(r"-part\d+$|(?:^|/)(?:(?:s|h|v|xv)d[a-z]+|\w*\dp)\d+$")
"""The end of the name of a partition."""


class Vdev(NamedTuple):
    """One node of the topology, nested and named as ``zpool status`` prints it."""

    name: str
    kind: str
    vclass: str = "normal"
    state: str = "ONLINE"
    guid: str | None = None
    path: str | None = None
    note: str = ""
    """The text after the counters, as printed: ``was /dev/…``, an aux text, ``(resilvering)``."""
    errors: ErrorCounters = ErrorCounters()
    resilvering: bool = False
    awaiting_resilver: bool = False
    unfilled: bool | None = None
    """Whether it was attached and is not filled yet; None where the source doesn't say."""
    shared: bool = False
    """Whether it is a hot spare that stands in at several places. None of them has all of its data
    for sure: what fills one overwrites the other."""
    removing: bool = False
    partial: bool = False
    """Whether it may have devices that the source does not show, or some of those shown be none of
    its own."""
    alloc_bytes: int | None = None
    size_bytes: int | None = None
    """Allocatable bytes of a top-level vdev or the pool; the device's size for a leaf."""
    free_bytes: int | None = None
    """As printed, where a source printed it; else size less allocated."""
    fragmentation: float | None = None
    """Share of free-space fragmentation, 0…1; top-level vdevs only."""
    scan_processed: int | None = None
    """Bytes the running scan repaired onto this leaf (healing) or rebuilt (sequential)."""
    ashift: int | None = None
    physical_ashift: int | None = None
    data_disks: int | None = None
    """dRAID: data devices in a redundancy group."""
    width: int | None = None
    """Devices in all, shown or not, of a dRAID and in a listing."""
    failure_group: int | None = None
    """dRAID with several failure groups: devices of each. They are listed group by group, so that
    the first of every group are of one failure domain, as are the second."""
    spares_left: int | None = None
    initialize: Progress | None = None
    trim: Progress | None = None
    trimmable: bool | None = None
    """Whether the device takes trims; None where the source doesn't say."""
    disk: LeafDisk | None = None
    """The disk below a leaf, where the source knows the machine's disks."""
    phys_path: str | None = None
    devid: str | None = None
    allocating: bool | None = None
    autosit: bool | None = None
    """Whether slow disks of a raidz or dRAID are told to sit out (2.4); None if unknown."""
    io: IoCounters | None = None
    rates: IoRates | None = None
    """Rates a source gave ready-made (``zpool iostat``); else history derives them."""
    block: BlockCounters | None = None
    queues: Mapping[str, tuple[int, int]] = NOTHING
    """Class (``sync_r`` … ``scrub``, ``rebuild``) to (pending, active) I/Os now."""
    histograms: Mapping[str, tuple[int, ...]] = NOTHING
    """Cumulative histograms: ``disk_r``, ``disk_w`` (bucket i = up to 2^(i+1) ns) and others."""
    children: tuple[Vdev, ...] = ()

    @property
    def sitting_out(self) -> bool:
        """Whether reads go around this leaf (the property ``sit_out``, 2.4)."""
        return SITTING_OUT in self.note

    @property
    def located(self) -> str:
        """As people find it: ``Slot 05 (serial ZC1A)``, see ``LeafDisk.called``."""
        return self.disk.called(self.name) if self.disk is not None else self.name

    @property
    def called(self) -> str:
        """The same where its name doesn't tell the bay that is known, else its name.

        A partition keeps its name: others may be on the same disk.
        """
        bay = self.disk.bay if self.disk is not None else ""
        has_own = bay in ("", self.name) or _PARTITION.search(self.name)
        return self.name if has_own else self.located

    def walk(self) -> Iterator[Vdev]:
        """The vdev and everything below it, in the order ``zpool status`` prints."""
        rest = [self]
        while rest:
            vdev = rest.pop()
            yield vdev
            if vdev.children:
                rest.extend(reversed(vdev.children))

    def leaves(self) -> Iterator[Vdev]:
        """The devices below this vdev, itself if it is one."""
        rest = [self]
        while rest:
            vdev = rest.pop()
            if vdev.children:
                rest.extend(reversed(vdev.children))
            else:
                yield vdev


class Scan(NamedTuple):
    """A resilver, scrub, sequential rebuild or error scrub, with counters as the kernel keeps them.

    Counters of a text source are what was printed, ×1024^k; ``resolution`` says how coarse
    that makes ``issued_bytes`` (0 when exact).
    """

    function: str = "none"
    """resilver, scrub, rebuild, errorscrub or none."""
    state: str = "none"
    """running, paused, finished, canceled or none."""
    stage: str | None = None
    """scanning or issuing; None when nothing runs and in one-stage dialects."""
    vdev: str | None = None
    """The top-level vdev a rebuild works on."""
    start: float | None = None
    end: float | None = None
    total_bytes: int | None = None
    """Bytes to examine (rebuild: the current estimate); skipped bytes not taken off."""
    scanned_bytes: int | None = None
    issued_bytes: int | None = None
    skipped_bytes: int | None = None
    processed_bytes: int | None = None
    """Repaired or resilvered bytes."""
    errors: int | None = None
    percent: float | None = None
    """What this ZFS version prints, unclamped (print_scan_scrub_resilver_status, zpool_main.c)."""
    zpool_eta: float | None = None
    """Seconds to go as ``zpool status`` prints them; None where it prints none."""
    zpool_scan_rate: float | None = None
    """Bytes/s as zpool prints: the average over the current pass."""
    zpool_issue_rate: float | None = None
    duration: float | None = None
    paused_since: float | None = None
    pass_start: float | None = None
    pass_scanned: int | None = None
    pass_issued: int | None = None
    pass_paused: float | None = None
    """Seconds this pass has spent paused."""
    resolution: float = 0.0
    """Bytes of rounding in ``issued_bytes`` (half the last printed digit); 0 when exact."""
    printed: bool = False
    """Whether its bytes are those printed for people, perhaps but for ``issued_bytes``."""
    issues_skipped: bool = False
    """Whether bytes that it skips are counted as issued while it runs (before 2.2)."""
    two_stage: bool = True
    """False where scanned bytes are the only counter, and so the work (before 0.8)."""
    thorough: bool | None = None
    """Whether a scrub also decrypts and decompresses what it reads (``-t``); JSON doesn't say."""
    full: bool | None = None
    """Whether a scrub is of everything, and not of a range of transaction groups (``-C``, ``-S``,
    ``-E``); None where the pool's history doesn't say."""

    @property
    def name(self) -> str:
        """Its function as ``zpool status`` words it, and whether a part: ``partial scrub``."""
        if self.function == "errorscrub":
            return "error scrub"
        word = f"partial {self.function}" if self.full is False else self.function
        return f"thorough {word}" if self.thorough else word

    @property
    def to_issue_bytes(self) -> int | None:
        """Bytes this scan has to issue in all: total less skipped; None when unknown."""
        if self.total_bytes is None:
            return None
        return max(0, self.total_bytes - (self.skipped_bytes or 0))

    @property
    def progress_bytes(self) -> tuple[int | None, int | None]:
        """Bytes done and bytes in all, as ``percent`` has them: a rebuild's is of those scanned."""
        if self.function == "rebuild":
            return self.scanned_bytes, self.total_bytes
        done = self.issued_bytes if self.two_stage else self.scanned_bytes
        return done, self.to_issue_bytes

    @property
    def active(self) -> bool:
        """Whether it runs or is paused."""
        return self.state in ("running", "paused")

    @property
    def key(self) -> tuple[str, str | None, float | None]:
        """What makes two samples the same scan: function, vdev and start time."""
        return (self.function, self.vdev, self.start)


class Activity(NamedTuple):
    """Work other than scans: ``removal``, ``expansion``, ``checkpoint`` or ``condense``."""

    kind: str
    state: str
    """running, paused, finished, canceled or exists (a checkpoint)."""
    vdev: str | None = None
    """What is worked on; of ``condense`` the type of metadata."""
    start: float | None = None
    end: float | None = None
    done_bytes: int | None = None
    total_bytes: int | None = None
    percent: float | None = None
    zpool_eta: float | None = None
    zpool_rate: float | None = None
    """Bytes/s as zpool prints: the average since the start."""
    note: str = ""
    resolution: float = 0.0
    """Bytes of rounding in ``done_bytes``; 0 when exact."""

    @property
    def discarding(self) -> bool:
        """Whether it is a checkpoint that goes; ``total_bytes`` is then what remains of it."""
        return self.kind == "checkpoint" and self.state == "running"


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as one sample saw it."""

    name: str
    state: str | None
    root: Vdev
    """The root vdev; log, cache, spare, special and dedup vdevs are among its children."""
    guid: str | None = None
    message: str | None = None
    """The ``status:`` text, unwrapped to one line."""
    action: str | None = None
    see: str | None = None
    suspension: str | None = None
    """Why all I/O is suspended: MULTIHOST, ERRORS or UNEXPLAINED; None while it is not. zpool may
    print another ``state`` meanwhile (before 0.8 that of the devices)."""
    lacks: str | None = None
    """What the source leaves out without which no pool can be called OK: ``the text ends before its
    table``. None where it is complete."""
    scans_told: bool = True
    """Whether the source tells of scans, so that where ``scans`` has none there was none."""
    scans: tuple[Scan, ...] = ()
    """Every scan known: running ones first, then newest first."""
    activities: tuple[Activity, ...] = ()
    error_count: int | None = None
    """Data errors; None when the source printed none of it."""
    damaged: bool = False
    """There are data errors, of unknown number."""
    errors: tuple[str, ...] | None = None
    """Names of damaged files; None when not permitted or not requested, () when there are none."""
    destroyed: Mapping[str, str] = field(default_factory=dict)
    """Hexadecimal ids in ``errors`` to the last names of those datasets, where they are known."""
    comment: str | None = None
    created: float | None = None
    """Epoch seconds, as its history says."""
    full_scrub: float | None = None
    """Epoch seconds of the end of the last full scrub, as its history says."""

    @property
    def scan(self) -> Scan:
        """The running scan, else the newest, else one whose function is ``none``."""
        return self.scans[0] if self.scans else Scan()

    @property
    def suspended(self) -> bool:
        """Whether all I/O is suspended, so that nothing moves."""
        return self.suspension is not None or self.state == "SUSPENDED"

    @property
    def checkpoint(self) -> Activity | None:
        """The checkpoint that exists or is being discarded."""
        kinds = ("exists", "running")
        found = (a for a in self.activities if a.kind == "checkpoint" and a.state in kinds)
        return next(found, None)


class HostLoad(NamedTuple):
    """The machine while the sample was taken: CPU share 0…1, bytes of memory."""

    cpu: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    arc_bytes: int | None = None


class Event(NamedTuple):
    """Something that happened: from ``zpool events``, or seen between two samples."""

    t: float
    name: str
    """The class, as in ``resilver_start``, ``statechange``, ``checksum``."""
    text: str
    """One line in words."""
    severity: str = "info"
    """info, notice, warning or error."""
    vdev: str | None = None
    origin: str = "zpool"
    """zpool, console (a change the console saw itself) or kernel."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pool at one moment, from one source."""

    t: float
    """Epoch seconds."""
    clock: float
    """Seconds that never jump, for differences; equal to ``t`` where the source has no better."""
    source: str
    """libzfs, json, text, replay or demo."""
    exact: bool
    pool: Pool
    kstat: str | None = None
    """The pool's word in /proc/spl/kstat/zfs/POOL/state."""
    host: HostLoad | None = None
    version: str | None = None
    """OpenZFS version of the machine sampled, where known: ``2.3.9``."""
    events: tuple[Event, ...] = ()
    tunables: Mapping[str, int] = field(default_factory=dict)
    """Module parameters of scans, where the source could read them."""
    enclosures: Collection[Enclosure] = ()
    """Those of the machine, with their slots; () where none is known."""
    dated: bool = True
    """Whether it was taken at ``t``; the time of saved output may be unknown."""
    began: float | None = None
    """Seconds of the steady clock when its reading began; None where the source doesn't say."""
    age: float = 0.0
    """Seconds since it was read, where a newer one has not come in time."""


class SampleFailure(NamedTuple):
    """Why there is no fresh sample of a pool, in words that help an operator."""

    pool: str
    t: float
    clock: float
    text: str
    kstat: str | None = None
    block: Mapping[str, BlockCounters] = MappingProxyType({})
    """Counters that diskstats still has, by leaf path."""
    gone: tuple[str, ...] = ()
    """Paths of leaves whose devices are no longer in diskstats."""
    host: HostLoad | None = None
    absent: bool = False
    """Whether it was exported or destroyed: it is no longer in the kernel's list of pools."""
    gap: bool = False
    """Whether a recording has a sample here that could not be read."""
    began: float | None = None
    """Seconds of the steady clock when the failed reading began; None if unknown."""


Version = tuple[int, ...]
_NUMBERS = re.compile(r"(?:zfs-|zfs-kmod-)?v?(\d{1,9}(?:\.\d{1,9})*)")


def parse_version(text: str | None) -> Version:
    """``2.3.9``, ``2.4.0-rc2`` or ``zfs-kmod-2.3.9-1`` as its leading numbers; () when unknown."""
    match = _NUMBERS.match(text or "")
    return tuple(int(part) for part in match[1].split(".")) if match else ()
