"""The figures a verdict is based on, gathered from one sample and the pool's recent past.

Of each disk its mean queues, best rates and recent writes; how the scan walked metadata and issued
by turns, as one does whose queues fill its memory limit; and all that one sample tells beside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from types import MappingProxyType
from typing import NamedTuple

from zconsole.diagnosis.bottleneck.finding import TunableStep
from zconsole.pool.model import IoRates, Scan, Vdev
from zconsole.pool.topology import DATA, Placed

FRESH = 0.25
"""Weight of the newest queue depths in their running mean."""
AVERAGED = 30.0
"""Seconds over which the requests in flight are averaged, to tell whose they are."""
WRITES_KEPT = 24
KEEP_EVERY = 5.0
"""Seconds between two remembered write rates: about a transaction group."""
SURE_BUSY = 0.1
TOTALS_KEPT = 8
STREAMED = 128 * 1024.0
"""Bytes a request from which busy time tells how fast a disk could stream."""


class PoolLoad(NamedTuple):
    """The rate of all devices of a pool together, read and written, in bytes/s."""

    now: float = 0.0
    most: float = 0.0
    """The highest rate over two consecutive samples."""
    unsteady: float = 1.0
    """Recent variation: standard deviation by mean; 1 with too few samples."""
    recent: tuple[float, ...] = ()
    """The last samples, oldest first."""

    def after(self, now: float) -> PoolLoad:
        """With one more sample."""
        most = max(self.most, min(self.now, now)) if self.recent else self.most
        recent = (*self.recent, now)[-TOTALS_KEPT:]
        return PoolLoad(now, most, _variation(recent, TOTALS_KEPT, 1.0), recent)


@dataclass(slots=True)
class LeafStats:
    """One leaf's recent past; bytes/s, and requests for the queues."""

    pending: dict[str, float] = field(default_factory=dict)
    active: dict[str, float] = field(default_factory=dict)
    flying: dict[str, float] = field(default_factory=dict)
    """Those in flight as ``active`` has them, averaged over AVERAGED seconds. What never was in a
    queue is in none of the three."""
    best_read: float = 0.0
    """Its best read rate, extrapolated by its busy share; 0 while it was idle."""
    best_write: float = 0.0
    seen_read: float = 0.0
    """Its best read rate over two consecutive samples, in this scan or before."""
    seen_write: float = 0.0
    """Its best write rate in this scan."""
    writes: list[float] = field(default_factory=list)
    stuck: float = 0.0
    """Seconds for which it has had requests in flight and answered none."""
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
                old, mean = self.active.get(name, 0.0), self.flying.get(name, 0.0)
                self.active[name] = old + weight * (active - old)
                self.flying[name] = mean + average * (active - mean)
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
        """Forget write rates and waits when another scan begins: they don't carry over."""
        self.seen_write, self._waits = 0.0, False
        self.writes.clear()

    @property
    def unsteady(self) -> float:
        """How much the recent write rates vary: standard deviation by mean; 0 when unknown."""
        return _variation(self.writes[-16:], 4, 0.0)


def _possible(rate: float | None, ops: float | None, rates: IoRates) -> float:
    """What a disk could stream: its rate by its busy share, for large requests of one direction.

    A mostly idle disk doesn't show what it could do.
    """
    if not rate or not ops or (rates.busy is not None and rates.busy < SURE_BUSY):
        return 0.0
    both = (rates.read_ops or 0.0) + (rates.write_ops or 0.0)
    usable = rates.busy is not None and ops > 0.9 * both
    return rate / rates.busy if usable and rate / ops >= STREAMED and rates.busy else rate


def _variation(rates: Sequence[float], enough: int, unknown: float) -> float:
    """Standard deviation by mean; ``unknown`` for fewer than ``enough`` rates, or none above 0."""
    if len(rates) < enough or not any(rates):
        return unknown
    mean = sum(rates) / len(rates)
    # Not pstdev(): its exact fractions took a tenth of the time of all that is worked out a sample.
    return sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


WINDOW = 3600.0
"""Seconds of the window."""
CHECKPOINT = 7200.0
"""Seconds between checkpoints (zfs_scan_checkpoint_intval), which empty the queues
regardless of memory; the first is due this long after the scan began or the pool was imported."""
WALKED = 0.99
"""Share of the total from which scanning is over, or nearly: it often ends a little short of it."""
MINUTE = 60.0
TURNS = 3
"""Changes from one to the other within the window that only a limit explains."""
LEFT = 0.25
"""Share of what was sorted that is left when a limit ends a turn of issuing; a checkpoint leaves
nothing."""
MIXED = 0.1
"""Bytes issued for each walked from which a sample counts as having seen both: gang blocks are
issued as soon as they are found (dsl_scan_enqueue, module/zfs/dsl_scan.c)."""


class StageCycles(NamedTuple):
    """How scanning and issuing alternated recently."""

    changes: int = 0
    """Changes within the window."""
    early: bool = False
    """Whether it issued before any checkpoint was due."""
    returned: bool = False
    """Whether scanning resumed while many sorted blocks were still to be issued."""
    issuing: float = 0.0
    """Share of the window's time spent issuing."""

    @property
    def limited(self) -> bool:
        """Whether that indicates a memory limit on sorting."""
        return self.changes >= TURNS or self.early or self.returned


class _Step(NamedTuple):
    clock: float
    seconds: float
    changes: int
    issuing: bool


class StageCycleTracker:
    """Takes the counters of one scan; forgets those older than the window."""

    def __init__(self) -> None:
        self.stage: str | None = None
        """scanning or issuing, whichever moved last; None before anything did, and once all
        metadata has been walked."""
        self._last: tuple[float, Scan] | None = None
        self._steps: deque[_Step] = deque()
        self._peak = 0.0
        self._early = self._returned = False

    def add(self, t: float, clock: float, scan: Scan) -> None:
        """Take in one sample with exact counters, at epoch ``t``."""
        last, self._last = self._last, (clock, scan)
        walked = (scan.scanned_bytes or 0) >= WALKED * (scan.total_bytes or 0)
        if scan.stage != "scanning" or not scan.two_stage or walked:
            self.stage = None
            self._steps.clear()
            return
        # On import, scanned bytes count as issued: counters do not go on.
        goes_on = last is not None and last[1].pass_start == scan.pass_start
        if last is not None and goes_on and last[1].stage == "scanning":
            self._step(clock, clock - last[0], last[1], scan)
            due = scan.pass_start is None or t - scan.pass_start >= CHECKPOINT
            self._early = self._early or (self.stage == "issuing" and not due)
        self._peak = max(self._peak, queued(scan))

    def turns(self) -> StageCycles:
        """As evidence."""
        total = sum(step.seconds for step in self._steps)
        issuing = sum(step.seconds for step in self._steps if step.issuing)
        changes = sum(step.changes for step in self._steps)
        return StageCycles(changes, self._early, self._returned, issuing / total if total else 0.0)

    def _step(self, clock: float, seconds: float, old: Scan, new: Scan) -> None:
        """The stage that moved, or moved last: bytes count as issued when sent."""
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
            # Steps of one minute in which nothing changed are kept as one.
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
    """Scanned bytes that are still to be issued."""
    done = (scan.skipped_bytes or 0) + (scan.issued_bytes or 0)
    return float(max(0, (scan.scanned_bytes or 0) - done))


def _both(scan: Scan, walked: int, issued: int) -> bool:
    """Whether one sample saw walking and then issuing, or the other way round.

    Before 2.2 a resilver counts what it skips as issued while it walks; with zfs_scan_legacy
    nothing is kept to be sorted.
    """
    apart = scan.skipped_bytes is not None or scan.function == "scrub"
    return apart and walked > 0 and issued > MIXED * walked and queued(scan) > issued


FOREGROUND = ("sync_r", "sync_w", "async_r")
"""Queue classes that only applications use, the last by reading ahead of them (ZIO_PRIORITY,
include/sys/zio_priority.h). What a scan reads ahead is of its own class since OpenZFS 0.8; before,
its metadata was read as async_r (dsl_scan.c)."""
SCANNING = ("scrub", "rebuild")
TRICKLE = 1e6
"""Bytes/s up to which a disk hardly moves anything."""


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
    def in_flight(self) -> float:
        """Requests that ZFS has sent and not got back, averaged over the last samples."""
        return sum(self.past.active.values())

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
