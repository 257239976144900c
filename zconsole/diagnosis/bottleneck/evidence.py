"""Evidence for a verdict, gathered from one sample and the pool's recent history.

It holds mean queue depths, best rates and recent write rates of each disk; how scanning metadata
and issuing alternated, as they do if sorted blocks reach the memory limit; and data of the sample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from types import MappingProxyType
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.finding import TunableStep
from zconsole.pool.model import DATA, DatasetLoad, IoRates, Placed, Scan, Vdev

FRESH = 0.25
"""Weight of the newest sample in the running mean of queue depths."""
AVERAGED = 30.0
"""Seconds over which requests in flight are averaged, to compare applications with the scan."""
WRITES_KEPT = 24
KEEP_EVERY = 5.0
"""Seconds between two stored write rates: about one txg."""
SURE_BUSY = 0.1
TOTALS_KEPT = 8
STREAMED = 128 * 1024.0
"""Bytes per request from which busy time shows how fast a disk could stream."""


class PoolLoad(NamedTuple):
    """Sum of the read and write rates of all devices of a pool, in bytes/s."""

    now: float = 0.0
    most: float = 0.0
    """Highest rate sustained over two consecutive samples."""
    unsteady: float = 1.0
    """Recent variation (standard deviation / mean); 1 with too few samples."""
    recent: tuple[float, ...] = ()
    """Recent samples, oldest first."""

    def after(self, now: float) -> PoolLoad:
        """Return the load with one more sample."""
        most = max(self.most, min(self.now, now)) if self.recent else self.most
        recent = (*self.recent, now)[-TOTALS_KEPT:]
        return PoolLoad(now, most, _variation(recent, TOTALS_KEPT, 1.0), recent)


@dataclass(slots=True)
class LeafStats:
    """Recent history of one leaf; rates in bytes/s, queues in requests."""

    pending: dict[str, float] = field(default_factory=dict)
    active: dict[str, float] = field(default_factory=dict)
    active_mean: dict[str, float] = field(default_factory=dict)
    """``active`` averaged over AVERAGED seconds.

    All three mappings omit queues that were always empty.
    """
    best_read: float = 0.0
    """Best read rate, extrapolated by the busy share; 0 if it was always idle."""
    best_write: float = 0.0
    seen_read: float = 0.0
    """Best read rate sustained over two consecutive samples, in this scan or before."""
    seen_write: float = 0.0
    """Best write rate in this scan."""
    writes: list[float] = field(default_factory=list)
    stuck: float = 0.0
    """Seconds for which it has had requests in flight, but completed none."""
    _waits: bool = False
    _has_queues: bool = False
    _kept: float = float("-inf")
    _read: float = 0.0
    _first: float | None = None
    _last: float = 0.0

    def add(self, clock: float, vdev: Vdev, rates: IoRates) -> None:
        """Take in one sample.

        Most queues of most devices are always empty: those take no room.
        """
        # That of this sample in a plain mean until AVERAGED seconds have passed, then in a running
        # one.
        if self._first is None:
            self._first = self._last = clock
        passed, self._last = clock - self._last, clock
        whole = clock - self._first + passed
        average = min(1.0, passed / min(AVERAGED, whole)) if whole > 0 and passed > 0 else 1.0
        sent, weight = False, FRESH if self._has_queues else 1.0
        for name, (pending, active) in vdev.queues.items():
            self._has_queues = True
            sent = sent or bool(active and name != "trim")
            if pending or name in self.pending:
                old = self.pending.get(name, 0.0)
                self.pending[name] = old + weight * (pending - old)
            if active or name in self.active:
                old, mean = self.active.get(name, 0.0), self.active_mean.get(name, 0.0)
                self.active[name] = old + weight * (active - old)
                self.active_mean[name] = mean + average * (active - mean)
        waits = sent and not rates.read_ops and not rates.write_ops
        self.stuck = passed + self.stuck if waits and self._waits else 0.0
        self._waits = waits
        self.best_read = max(self.best_read, _possible(rates.read, rates.read_ops, rates))
        self.best_write = max(self.best_write, _possible(rates.write, rates.write_ops, rates))
        self.seen_read = max(self.seen_read, min(self._read, rates.read or 0.0))
        self._read = rates.read or 0.0
        self.seen_write = max(self.seen_write, rates.write or 0.0)
        if rates.write is not None and clock - self._kept >= KEEP_EVERY:
            self.writes = [*self.writes, rates.write][-WRITES_KEPT:]
            self._kept = clock

    def begin(self) -> None:
        """Forget write rates and stuck requests when another scan begins."""
        self.seen_write, self._waits = 0.0, False
        self.writes.clear()

    @property
    def unsteady(self) -> float:
        """Variation of the recent write rates (standard deviation / mean); 0 if unknown."""
        return _variation(self.writes[-16:], 4, 0.0)


def _possible(rate: float | None, ops: float | None, rates: IoRates) -> float:
    """Return the rate that a disk could stream: rate / busy share, for large one-way requests.

    For other requests it is the rate itself; 0 for a mostly idle disk, which shows nothing.
    """
    if not rate or not ops or (rates.busy is not None and rates.busy < SURE_BUSY):
        return 0.0
    both = (rates.read_ops or 0.0) + (rates.write_ops or 0.0)
    usable = rates.busy is not None and ops > 0.9 * both
    return rate / rates.busy if usable and rate / ops >= STREAMED and rates.busy else rate


def _variation(rates: Sequence[float], enough: int, unknown: float) -> float:
    """Standard deviation / mean; ``unknown`` for fewer than ``enough`` rates, or none above 0."""
    if len(rates) < enough or not any(rates):
        return unknown
    mean = sum(rates) / len(rates)
    # Not pstdev(): its exact fractions took a tenth of the computing time of a sample.
    return sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


WINDOW = 3600.0
"""Seconds over which the changes between stages are counted."""
CHECKPOINT = 7200.0
"""Seconds between scan checkpoints (zfs_scan_checkpoint_intval).

They empty the queues regardless of memory. The first is due this long after the scan began or the
pool was imported.
"""
WALKED = 0.99
"""Share of the total at which scanning is almost done; it often ends a little below 1."""
MINUTE = 60.0
TURNS = 3
"""Changes of stage within the window that only a memory limit explains."""
LEFT = 0.25
"""Share of the sorted blocks that is left if a memory limit ended the issuing.

A checkpoint would leave nothing.
"""
MIXED = 0.1
"""Issued bytes per scanned byte from which a sample counts as having seen both stages.

Gang blocks are issued as soon as they are found (dsl_scan_enqueue, module/zfs/dsl_scan.c).
"""


class StageCycles(NamedTuple):
    """Recent alternation of scanning and issuing."""

    changes: int = 0
    """Changes of stage within the window."""
    early: bool = False
    """Whether blocks were issued before any checkpoint was due."""
    returned: bool = False
    """Whether scanning resumed while many sorted blocks were left to issue."""
    issuing: float = 0.0
    """Share of the window spent issuing."""

    @property
    def limited(self) -> bool:
        """Whether this indicates a memory limit on sorting."""
        return self.changes >= TURNS or self.early or self.returned


class _Step(NamedTuple):
    clock: float
    seconds: float
    changes: int
    issuing: bool


class StageCycleTracker:
    """Tracks the stages of one scan over the window, from its counters."""

    def __init__(self) -> None:
        self.stage: str | None = None
        """``scanning`` or ``issuing``, whichever progressed last.

        None before either did, and once all metadata is scanned.
        """
        self._last: tuple[float, Scan] | None = None
        self._steps: deque[_Step] = deque()
        self._peak = 0.0
        self._early = self._returned = False

    def add(self, at: float, clock: float, scan: Scan) -> None:
        """Add one sample with exact counters, at epoch second ``at`` and monotonic ``clock``."""
        last, self._last = self._last, (clock, scan)
        walked = (scan.scanned_bytes or 0) >= WALKED * (scan.total_bytes or 0)
        if scan.stage != "scanning" or not scan.two_stage or walked:
            self.stage = None
            self._steps.clear()
            return
        # After an import, scanned bytes count as issued: counters are not comparable.
        goes_on = last is not None and last[1].pass_start == scan.pass_start
        if last is not None and goes_on and last[1].stage == "scanning":
            self._step(clock, clock - last[0], last[1], scan)
            due = scan.pass_start is None or at - scan.pass_start >= CHECKPOINT
            self._early = self._early or (self.stage == "issuing" and not due)
        self._peak = max(self._peak, queued(scan))

    def cycles(self) -> StageCycles:
        """Return the recent alternation of stages, as evidence."""
        total = sum(step.seconds for step in self._steps)
        issuing = sum(step.seconds for step in self._steps if step.issuing)
        changes = sum(step.changes for step in self._steps)
        return StageCycles(changes, self._early, self._returned, issuing / total if total else 0.0)

    def _step(self, clock: float, seconds: float, old: Scan, new: Scan) -> None:
        """Determine the stage from the progress between two samples, and record it.

        Bytes count as issued when they are sent to the disks. Without progress the stage stays.
        """
        walked = (new.scanned_bytes or 0) - (old.scanned_bytes or 0)
        issued = (new.issued_bytes or 0) - (old.issued_bytes or 0)
        stage = "scanning" if walked > 0 else "issuing" if issued > 0 else self.stage
        if stage is None:
            return
        changed = self.stage is not None and stage != self.stage
        both = not changed and _both(new, walked, issued)
        changes, issuing = 2 if both else int(changed), stage == "issuing"
        last = self._steps[-1] if self._steps else None
        alike = last is not None and not changes and last.issuing == issuing
        if last is not None and alike and last.clock // MINUTE == clock // MINUTE:
            # Merge the steps of a minute in which nothing changed.
            self._steps[-1] = last._replace(clock=clock, seconds=last.seconds + seconds)
        else:
            self._steps.append(_Step(clock, seconds, changes, issuing))
        while self._steps[0].clock < clock - WINDOW:
            self._steps.popleft()
        if changed and stage == "scanning":
            self._returned = self._returned or queued(old) > LEFT * self._peak
            self._peak = 0.0
        self.stage = stage


def queued(scan: Scan) -> float:
    """Return the scanned bytes that are still to be issued."""
    done = (scan.skipped_bytes or 0) + (scan.issued_bytes or 0)
    return float(max(0, (scan.scanned_bytes or 0) - done))


def _both(scan: Scan, walked: int, issued: int) -> bool:
    """Whether both scanning and issuing took place between two samples.

    Two cases only look like it: before 2.2 a resilver counts skipped bytes as issued while it
    scans, and with zfs_scan_legacy nothing is queued for sorting.
    """
    apart = scan.skipped_bytes is not None or scan.function == "scrub"
    return apart and walked > 0 and issued > MIXED * walked and queued(scan) > issued


FOREGROUND = ("sync_r", "sync_w", "async_r")
"""Queue classes that only applications use, async_r by prefetch.

From ZIO_PRIORITY (include/sys/zio_priority.h). A scan's prefetch has a class of its own since
OpenZFS 0.8; before, its metadata was read as async_r (dsl_scan.c).
"""
SCANNING = ("scrub", "rebuild")
TRICKLE = 1e6
"""Bytes/s up to which a disk counts as transferring next to nothing."""


class WatchedScan(NamedTuple):
    """A scan with its observed stage and rate."""

    scan: Scan
    stage: str | None
    rate: float | None
    """Bytes/s that it issues at present; those of its only stage before OpenZFS 0.8."""
    averaged: bool = False
    """Whether this is zpool's average of the pass, as no rate was measured yet."""


class Disk:
    """A leaf that the scan uses. Rates in bytes/s and requests/s, times in seconds.

    Figures are computed once, as the rules ask for them again and again.
    """

    def __init__(self, name: str, top: str, target: bool, rates: IoRates, past: LeafStats) -> None:
        """``target`` is True if it is being filled; otherwise the scan reads from it.

        ``top`` is the key of its top-level vdev.
        """
        self.name, self.top, self.target, self.rates, self.past = name, top, target, rates, past
        self.rate = (rates.write if target else rates.read) or 0.0
        """Bytes/s in the direction that the scan uses."""
        self.ops = (rates.write_ops if target else rates.read_ops) or 0.0
        """Requests/s in that direction."""
        self.request = self.rate / self.ops if self.ops > 0 else None
        """Mean bytes per request in that direction; None without requests."""
        self.requests = (rates.read_ops or 0.0) + (rates.write_ops or 0.0)
        """Requests/s in both directions."""
        self.busy = rates.busy
        """Share of time with I/O in flight; without diskstats, from requests and their latency."""
        if rates.busy is None and rates.latency is not None:
            self.busy = min(1.0, self.requests * rates.latency)
        known = self.busy is not None and self.requests > 0
        self.service = self.busy / self.requests if self.busy is not None and known else None
        """Device seconds per request (busy time / requests); None if idle or unknown."""

    @property
    def pending(self) -> float:
        """Scan requests waiting in ZFS to be sent to it, averaged over the last samples."""
        names = (*SCANNING, "async_w") if self.target else SCANNING
        return sum(self.past.pending.get(name, 0.0) for name in names)

    @property
    def in_flight(self) -> float:
        """Requests that ZFS has sent and that are not completed, averaged over the last samples."""
        return sum(self.past.active.values())

    @property
    def app_share(self) -> float | None:
        """Share of applications in the requests in flight; None without queue statistics."""
        return _of_applications(self.past.active)

    @property
    def mean_app_share(self) -> float | None:
        """Share of applications over AVERAGED seconds, as single samples vary."""
        return _of_applications(self.past.active_mean)


NO_DISK = Disk("", "", False, IoRates(), LeafStats())
"""Placeholder if there is no disk."""


def _of_applications(active: Mapping[str, float]) -> float | None:
    total = sum(active.values())
    if total <= 0:
        return None
    return sum(active.get(name, 0.0) for name in FOREGROUND) / total


class Evidence(NamedTuple):
    """Evidence on one running scan."""

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
    """Seconds for which it was watched."""
    cycles: StageCycles = StageCycles()
    """Alternation of scanning and issuing."""
    walked: float | None = None
    """Share of the metadata that has been scanned, 0…1."""
    sorted_share: float | None = None
    """Largest share of the blocks left to issue that was sorted in memory, in the current stage."""
    foreground_writes: float = 0.0
    """Bytes/s written to the disks that the scan only reads."""
    datasets: Sequence[DatasetLoad] = ()
    """Datasets and volumes with the most logical I/O, that first; empty if unknown."""
    load: PoolLoad = PoolLoad()
    """Load of all devices together."""
    version: tuple[int, ...] = ()
    tunables: Mapping[str, int] = MappingProxyType({})
    """Current module parameters, if known."""
    steps: Mapping[str, TunableStep] = MappingProxyType({})
    """Newest large raise of each tunable during the scan, with its effect."""

    @property
    def sources(self) -> tuple[Disk, ...]:
        """Disks that the scan reads."""
        return tuple(disk for disk in self.disks if not disk.target)

    @property
    def targets(self) -> tuple[Disk, ...]:
        """Disks being filled."""
        return tuple(disk for disk in self.disks if disk.target)

    @property
    def busy(self) -> float:
        """Median busy share of the sources."""
        return known_median(disk.busy for disk in self.sources)

    @property
    def request(self) -> float:
        """Median bytes per request of the sources."""
        return known_median(disk.request for disk in self.sources)

    @property
    def busiest(self) -> float:
        """Busy share of the busiest disk."""
        return max((disk.busy or 0.0 for disk in self.disks), default=0.0)


def known_median(values: Iterable[float | None]) -> float:
    """Return the median of the known values; 0 if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return 0.0
    from statistics import median  # lazy import: a first sample has no rates, and starts faster

    return median(known)


def disks_of(
    scan: Scan,
    tree: Mapping[str, Placed],
    rates: Mapping[str, IoRates],
    past: Mapping[str, LeafStats],
) -> tuple[Disk, ...]:
    """Return the leaves that a scan uses: sources and, unless it is a scrub, those being filled.

    A resilver reads only the top-level vdevs with devices to fill; others are left out. A
    distributed spare is spread over every disk of its dRAID: each is a source, none is new.
    """
    filling = scan.function in ("resilver", "rebuild")
    leaves = []
    for key, depth, vdev, _, _ in tree.values():
        online = vdev.state in ("ONLINE", "DEGRADED") and not vdev.awaiting_resilver
        device = not vdev.children and vdev.kind != "dspare" and depth > 0
        if device and online and vdev.vclass in DATA:
            leaves.append(tree[key])
    at_work = {p.top for p in leaves if p.vdev.resilvering} if filling else set()
    found = []
    for key, _, vdev, parent, top in leaves:
        if (not at_work or top in at_work) and key in rates and key in past:
            # zpool marks all disks of a dRAID, but only those that replace one are new.
            above = tree.get(top or "") if parent == top else None
            spread = above is not None and above.vdev.kind.startswith("draid")
            new = filling and vdev.resilvering and not spread
            found.append(Disk(vdev.name, top or "", new, rates[key], past[key]))
    return tuple(found)


def sorted_share(scan: Scan) -> float | None:
    """Return bytes scanned but not issued, as a share of all bytes left; None if unknown."""
    counts = (scan.total_bytes, scan.scanned_bytes, scan.issued_bytes)
    if None in counts or not scan.two_stage:
        return None
    total, scanned = float(scan.total_bytes or 0), float(scan.scanned_bytes or 0)
    waiting = queued(scan)
    needed = max(0.0, 1.0 - (scan.skipped_bytes or 0) / scanned) if scanned else 1.0
    left = waiting + max(0.0, total - scanned) * needed
    return waiting / left if left > 0 else None
