"""The simulated pool, its machine and its running work: data, and what follows from it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.pool.model import Event, parse_version
from zconsole.sim.disk import Leaf
from zconsole.sim.topology import Top
from zconsole.tunables.catalog import HISTORICAL, TUNABLES

DAY = 86400.0
_SIZE = 256
"""Values of a table of noise."""
SORTED = (0, 8)
"""From here on scans are sorted; before they were throttled by parameters that are gone now."""


class Tunables(dict[str, int]):
    """The parameters of one simulated kernel: name to live value."""

    def __missing__(self, name: str) -> int:
        """0, for a parameter that this version does not have."""
        return 0


def defaults(version: str) -> Tunables:
    """What a kernel with this OpenZFS begins with, as far as its source gives a value."""
    running = parse_version(version)
    known = {tunable.name: tunable.default(running) for tunable in TUNABLES}
    if running < SORTED:
        known |= {name: row["default"] for name, row in HISTORICAL.items()}
    return Tunables({name: value for name, value in known.items() if value is not None})


def rng(seed: int, *names: object) -> random.Random:
    """A generator of its own for one component, the same for the same seed and names."""
    return random.Random("/".join(str(part) for part in (seed, *names)))


class Wobble:
    """Smooth noise in 0…1: random values on a grid of ``period`` seconds, eased between."""

    __slots__ = ("_period", "_table")

    def __init__(self, source: random.Random, period: float) -> None:
        """Draws the table from ``source``; one value every ``period`` seconds."""
        self._table = tuple(source.random() for _ in range(_SIZE))
        self._period = period

    def at(self, t: float) -> float:
        """The value at ``t`` seconds of simulated time."""
        x = t / self._period
        i = math.floor(x)
        f = x - i
        a = self._table[i % _SIZE]
        return a + (self._table[(i + 1) % _SIZE] - a) * f * f * (3 - 2 * f)


@dataclass(slots=True)
class ForegroundLoad:
    """Rates in bytes/s of data (parity and copies come on top), sizes in bytes a request."""

    wobble: Wobble
    read: float = 0.0
    write: float = 0.0
    size: float = 65536.0
    sequential: float = 1.0
    """Requests that follow each other on disk before the heads move."""
    daily: float = 0.0
    """Swing over a day: 0 none … 1 from nothing to double; highest at ``peak``."""
    peak: float = 0.0
    """Simulated seconds of the daily maximum."""
    bursty: float = 0.3
    """Share of the rate that comes and goes."""
    sync: float = 0.0
    """Share of synchronous writes (they end txgs early and go to log vdevs)."""
    kept: float = 0.0
    """Share of written bytes that stays allocated; the rest overwrites or is freed."""
    begin: float = 0.0
    end: float = math.inf
    """Simulated seconds between which it runs."""

    def factor(self, t: float) -> float:
        """How much of the mean is wanted at ``t``."""
        if not self.begin <= t < self.end:
            return 0.0
        day = 1.0 + self.daily * math.cos((t - self.peak) * 2 * math.pi / DAY)
        return day * (1.0 + self.bursty * (2.0 * self.wobble.at(t) - 1.0))

    def at(self, t: float) -> tuple[float, float]:
        """(read, write) bytes/s wanted at ``t``."""
        factor = self.factor(t)
        return self.read * factor, self.write * factor


SCRUB, RESILVER = 1, 2
"""pool_scan_func_t (include/sys/fs/zfs.h)."""
SCANNING, FINISHED, CANCELED, ERRORSCRUBBING = 1, 2, 3, 4
EXISTS, DISCARDING = 1, 2
"""dsl_scan_state_t, which removal and expansion use too (DSS_SCANNING and so on)."""
TXG_SECONDS = 5.0
VERSION = "2.3.9"
"""The OpenZFS of a pool, unless its scenario says another."""


@dataclass(slots=True)
class Relocation:
    """A removal or a raidz expansion: pool_removal_stat_t and pool_raidz_expand_stat_t are alike.

    Bytes, and epoch seconds.
    """

    vdev: int
    start: float
    total: float
    state: int = SCANNING
    end: float = 0.0
    moved: float = 0.0
    held: bool = False
    """Whether something keeps it from going on, though it counts as running."""

    @property
    def running(self) -> bool:
        """Whether it is not over yet."""
        return self.state == SCANNING


@dataclass(slots=True)
class ErrorScrub:
    """A scrub of the blocks with known errors; times are epoch seconds."""

    start: float
    total: float
    """Blocks."""
    done: float = 0.0
    state: int = ERRORSCRUBBING
    end: float = 0.0
    paused_since: float = 0.0


@dataclass(slots=True)
class Checkpoint:
    """pool_checkpoint_stat_t; ``space`` in bytes."""

    start: float
    space: float
    state: int = EXISTS
    """EXISTS or DISCARDING."""


@dataclass(slots=True)
class Queue:
    """What the scan has to do on one top-level vdev, in allocated bytes."""

    top: Top
    total: float
    unscanned: float
    fraction: float
    """Share of the bytes that needs I/O; the rest is skipped."""
    queued: float = 0.0
    issued: float = 0.0
    density: float = 1.0
    """How much of what is left to issue is in memory: how well it can be sorted."""


@dataclass(slots=True)
class SimulatedScan:
    """dsl_scan_phys_t and what only memory holds of a scan; times in epoch seconds."""

    function: int
    start: float
    queues: list[Queue]
    state: int = SCANNING
    end: float = 0.0
    short: float = 0.0
    """Bytes by which ``examined`` stops short of the total."""
    targets: list[Leaf] = field(default_factory=list)
    clearing: bool = False
    checkpoint: float = 0.0
    """Simulated seconds at which everything queued was last issued."""
    skipped: float = 0.0
    processed: float = 0.0
    errors: float = 0.0
    pass_start: float = 0.0
    pass_examined: float = 0.0
    pass_issued: float = 0.0
    paused_since: float = 0.0
    spent_paused: float = 0.0
    txg: int = 0
    """The txg it began in."""
    txgs: tuple[int, int] = (0, 0)
    """The oldest and the newest txg whose blocks it reads."""

    @property
    def total(self) -> float:
        """to_examine."""
        return sum(queue.total for queue in self.queues)

    @property
    def examined(self) -> float:
        """Bytes whose metadata was walked."""
        return sum(queue.total - queue.unscanned for queue in self.queues)

    @property
    def issued(self) -> float:
        """Bytes issued."""
        return sum(queue.issued for queue in self.queues)

    @property
    def queued(self) -> float:
        """Bytes in memory, to be issued."""
        return sum(queue.queued for queue in self.queues)

    @property
    def full(self) -> bool:
        """Whether it is a scrub of every block."""
        return self.function == SCRUB and self.txgs == (0, self.txg)

    @property
    def active(self) -> bool:
        """Neither finished nor canceled; it may be paused."""
        return self.state == SCANNING

    @property
    def running(self) -> bool:
        """Active and not paused."""
        return self.active and not self.paused_since


class DataLayout(NamedTuple):
    """How the pool's data lies on its disks."""

    block: float = 131072.0
    """Mean allocated bytes of a block."""
    run: float = 48 * 1048576.0
    """Allocated bytes that lie one after the other once all blocks are sorted."""
    old_run: float = 262144.0
    """… when blocks are taken in the order they were written (scans before 0.8)."""
    span: float = 6 * 1048576.0
    """Data bytes that one metadata read leads to."""


@dataclass(slots=True)
class SimulatedDirectory:
    """Files that can be rewritten; bytes are allocated ones, parity included."""

    path: str
    files: int
    held: list[float]
    """Bytes on each normal-class top-level vdev, in the pool's order."""
    pinned: float = 0.0
    """Share that snapshots hold: rewritten, it is not freed."""
    moved: float = 0.0
    """Bytes rewritten so far."""
    old: list[float] = field(default_factory=list)
    """What a pass has not rewritten yet, by vdev: each byte is moved once."""

    def __post_init__(self) -> None:
        self.old = self.old or list(self.held)

    @property
    def size(self) -> float:
        """Bytes in all."""
        return sum(self.held)


@dataclass(slots=True)
class Rewrite:
    """A rebalance under way: directories one after the other."""

    directories: list[SimulatedDirectory]
    limit: float = math.inf
    """Bytes/s it may take."""
    running: bool = True
    done: float = 0.0
    paused: bool = False
    during_scan: bool = True
    target: float | None = None
    """Spread at which it ends, a share."""
    most: float = math.inf
    """Bytes after which it ends."""
    floor: float = 0.0
    """Share of the pool that stays free."""
    waiting: str = ""
    """What it waits for now."""
    why: str = ""
    """How it ended."""
    rate: float = 0.0
    """Bytes/s in the last step."""
    worked: float = 0.0
    """Seconds in which it moved something."""
    left: list[float] = field(init=False)
    """Bytes left of each directory."""

    def __post_init__(self) -> None:
        self.left = [directory.size for directory in self.directories]
        for directory in self.directories:
            directory.old = list(directory.held)

    @property
    def total(self) -> float:
        """Bytes of all its files."""
        return self.done + sum(self.left)

    def end(self, why: str) -> None:
        """End the job."""
        self.running, self.why, self.rate, self.waiting = False, why, 0.0, ""

    def resume(self) -> None:
        """Go on with what was left when it ended, whatever another job has moved since."""
        for directory, left in zip(self.directories, self.left, strict=True):
            if sum(directory.old) < left:
                directory.old = [held * left / directory.size for held in directory.held]
        self.running, self.why = True, ""


@dataclass(slots=True)
class Host:
    """The machine: memory in bytes, checksum and parity throughput in bytes/s."""

    memory: int = 256 << 30
    throughput: float = 9e9
    buses: dict[str, float] = field(default_factory=dict)
    """Shared links, each with its bytes/s."""
    cpu: float = 0.03
    """Share of all processors in use in the last step."""
    arc: int = 96 << 30
    shelf: list[Leaf] = field(default_factory=list)
    """Devices of the machine that belong to no pool: what could replace one."""
    slots: int = 24
    """Slots of each of its shelves."""
    alias: str = ""
    """What vdev_id.conf calls a bay, before its number; empty where it names none."""
    flash: tuple[int, ...] = ()
    """Numbers of the machine's NVMe slots."""
    drawer: list[Leaf] = field(default_factory=list)
    """Disks that lie beside the machine: new ones, and those that were pulled."""
    pools: list[PoolState] = field(default_factory=list, repr=False, compare=False)
    """The pools on it."""


class Incident(NamedTuple):
    """Something the scenario makes happen at ``t`` simulated seconds."""

    t: float
    happen: Callable[[PoolState], None]


@dataclass(slots=True)
class PoolState:
    """The whole state of a simulated pool."""

    name: str
    guid: int
    tops: list[Top]
    host: Host
    load: ForegroundLoad
    breath: Wobble
    """Small variations of the devices."""
    layout: DataLayout = field(default_factory=DataLayout)
    version: str = VERSION
    spares: list[Leaf] = field(default_factory=list)
    cache: list[Leaf] = field(default_factory=list)
    tunables: Tunables = field(init=False)
    usual: Tunables = field(init=False)
    """The tunables that its kernel begins with."""
    scan: SimulatedScan | None = None
    removal: Relocation | None = None
    expansion: Relocation | None = None
    checkpoint: Checkpoint | None = None
    error_scrub: ErrorScrub | None = None
    directories: list[SimulatedDirectory] = field(default_factory=list)
    rewrite: Rewrite | None = None
    data_errors: float = 0.0
    damaged: tuple[str, ...] = ()
    destroyed: dict[str, str] = field(default_factory=dict)
    """Ids in ``damaged`` to the names of datasets that are no more."""
    suspended: bool = False
    one_stage: bool = field(init=False)
    """Scans issue as they walk (before 0.8)."""
    autoexpand: bool = False
    t: float = 0.0
    """Simulated seconds since the beginning."""
    txg: int = 4_200_000
    next_txg: float = TXG_SECONDS
    scrubbed_txg: int = 0
    """The newest txg that a scrub which ended has read (``last_scrubbed_txg``)."""
    start: float = 0.0
    """Epoch seconds of ``t`` = 0."""
    scrubbed: float | None = None
    """Epoch seconds of the end of its last full scrub, not counting the one in ``scan``."""
    events: list[Event] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    """What is still to happen to it, soonest first."""
    limits: dict[int, str] = field(default_factory=dict)
    """Top-level index to what bound its scan in the last step: the truth of a verdict."""
    next_guid: int = 1

    def __post_init__(self) -> None:
        self.tunables, self.usual = defaults(self.version), defaults(self.version)
        self.one_stage = parse_version(self.version) < SORTED
        self.host.pools.append(self)

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.start + self.t

    @property
    def alloc(self) -> float:
        """Bytes allocated in all data classes."""
        return sum(top.alloc for top in self.tops)

    @property
    def resilvering(self) -> bool:
        """Whether a healing resilver is under way."""
        return self.scan is not None and self.scan.active and self.scan.function == RESILVER

    @property
    def rebuilding(self) -> bool:
        """Whether a sequential rebuild is under way."""
        return any(top.rebuild is not None and top.rebuild.active for top in self.tops)

    def txg_at(self, t: float) -> int:
        """The txg of a moment in epoch seconds, in the past or now."""
        return max(0, min(self.txg, int(self.txg - (self.now - t) / TXG_SECONDS)))

    def leaves(self) -> Iterator[Leaf]:
        """Every device of the tree, cache devices and free spares included."""
        for top in self.tops:
            yield from top.leaves()
        yield from self.cache
        if self.spares:
            used = {leaf.guid for top in self.tops for leaf in top.leaves()}
            yield from (leaf for leaf in self.spares if leaf.guid not in used)

    def data_tops(self) -> list[Top]:
        """Top-level vdevs that hold blocks: all but logs, holes and removed ones."""
        return [t for t in self.tops if t.vclass != "log" and t.kind not in ("indirect", "hole")]

    def normal_tops(self) -> list[Top]:
        """Data vdevs of the normal class."""
        return [top for top in self.data_tops() if top.vclass == "normal"]

    def note(self, name: str, text: str, severity: str = "info", vdev: str | None = None) -> None:
        """Adds an event of this moment; a device is called as the reader of events calls it."""
        named = vdev and vdev.rpartition("/")[2].removesuffix("-part1")
        self.events.append(Event(self.now, name, text, severity, named))

    def write_shares(self, tops: list[Top]) -> list[float]:
        """What part of new allocated bytes each of ``tops`` gets, summing to 1.

        Up to 2.3 in proportion to free bytes × data disks, from 2.4 to free bytes (metaslab.c).
        """
        even = self.version >= "2.4"
        weights = [top.free * (1 if even else top.groups) * top.allocating for top in tops]
        total = sum(weights)
        return [weight / total if total else 0.0 for weight in weights]

    def new_guid(self) -> int:
        """A GUID not used before, the same in every run."""
        self.next_guid += 1
        return (self.guid ^ (self.next_guid * 0x9E3779B97F4A7C15)) & (2**64 - 1)
