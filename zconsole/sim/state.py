"""The state of a simulated pool, its machine and its running work."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import gt
from typing import NamedTuple

from zconsole.pool.model import Event, Volumes, parse_version
from zconsole.sim.disk import Leaf
from zconsole.sim.topology import Top
from zconsole.system.day_hours import DayHours
from zconsole.tunables.catalog import TUNABLES

DAY = 86400.0
_SIZE = 256
"""Number of values in a table of noise."""
SORTED = (0, 8)
"""First version with sorted scans; earlier ones throttle by parameters that no longer exist."""


class Tunables(dict[str, int]):
    """The parameters of one simulated kernel: name to live value."""

    def __missing__(self, name: str) -> int:
        """Return 0 for a parameter that this version does not have."""
        return 0


def defaults(version: str) -> Tunables:
    """Return the initial parameters of a kernel with this OpenZFS, where its source has values."""
    running = parse_version(version)
    known = {tunable.name: tunable.default(running) for tunable in TUNABLES}
    return Tunables({name: value for name, value in known.items() if value is not None})


def rng(seed: int, *names: object) -> random.Random:
    """Return a separate generator for one component, reproducible for the same seed and names."""
    return random.Random("/".join(str(part) for part in (seed, *names)))


class Wobble:
    """Smooth noise in 0…1: random values on a grid of ``period`` seconds, eased between."""

    __slots__ = ("_period", "_table")

    def __init__(self, source: random.Random, period: float) -> None:
        """Draw the table from ``source``; one value every ``period`` seconds."""
        self._table = tuple(source.random() for _ in range(_SIZE))
        self._period = period

    def at(self, t: float) -> float:
        """Return the value at ``t`` seconds of simulated time."""
        x = t / self._period
        i = math.floor(x)
        f = x - i
        a = self._table[i % _SIZE]
        # Smoothstep between two values of the table.
        return a + (self._table[(i + 1) % _SIZE] - a) * f * f * (3 - 2 * f)


@dataclass(slots=True)
class ForegroundLoad:
    """Rates of applications in bytes/s of data, without parity and copies; sizes per request."""

    wobble: Wobble
    read: float = 0.0
    write: float = 0.0
    size: float = 65536.0
    sequential: float = 1.0
    """Requests that are contiguous on disk before the heads move."""
    daily: float = 0.0
    """Swing over a day: 0 none … 1 from nothing to double; highest at ``peak``."""
    peak: float = 0.0
    """Simulated seconds of the daily maximum."""
    bursty: float = 0.3
    """Share of the rate that fluctuates."""
    sync: float = 0.0
    """Share of synchronous writes (they end txgs early and go to log vdevs)."""
    kept: float = 0.0
    """Share of written bytes that stays allocated; the rest overwrites or is freed."""

    def at(self, t: float) -> tuple[float, float]:
        """Return the (read, write) bytes/s wanted at ``t``."""
        day = 1.0 + self.daily * math.cos((t - self.peak) * 2 * math.pi / DAY)
        factor = day * (1.0 + self.bursty * (2.0 * self.wobble.at(t) - 1.0))
        return self.read * factor, self.write * factor


@dataclass(slots=True)
class SimulatedDataset:
    """A dataset or volume, with its shares (0…1) of the load and the bytes that makes."""

    name: str
    reads: float
    writes: float
    read: float = 0.0
    written: float = 0.0


SCRUB, RESILVER = 1, 2
"""pool_scan_func_t (include/sys/fs/zfs.h)."""
SCANNING, FINISHED, CANCELED, ERRORSCRUBBING = 1, 2, 3, 4
"""dsl_scan_state_t, also used by removal and expansion (DSS_SCANNING and so on)."""
EXISTS, DISCARDING = 1, 2
"""checkpoint_state_t (include/sys/fs/zfs.h)."""
TXG_SECONDS = 5.0
VERSION = "2.3.9"
"""OpenZFS version of a pool, unless its scenario says otherwise."""


@dataclass(slots=True)
class Relocation:
    """A removal or raidz expansion, as in pool_removal_stat_t and pool_raidz_expand_stat_t.

    Sizes are in bytes, times in epoch seconds.
    """

    vdev: int
    start: float
    total: float
    state: int = SCANNING
    end: float = 0.0
    moved: float = 0.0
    held: bool = False
    """Whether it is blocked, though it counts as running."""

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self.state == SCANNING


@dataclass(slots=True)
class ErrorScrub:
    """A scrub of the blocks with known errors; times are epoch seconds."""

    start: float
    total: float
    """Number of blocks."""
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
    """Progress of a scan on one top-level vdev, in allocated bytes."""

    top: Top
    total: float
    unscanned: float
    fraction: float
    """Share of the bytes that needs I/O; the rest is skipped."""
    queued: float = 0.0
    issued: float = 0.0
    density: float = 1.0
    """Share of the data left to issue that is in memory: more of it sorts better."""


@dataclass(slots=True)
class SimulatedScan:
    """dsl_scan_phys_t and the in-memory state of a scan; times in epoch seconds."""

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
    """Simulated seconds at which the queues were last emptied for a checkpoint."""
    skipped: float = 0.0
    processed: float = 0.0
    errors: float = 0.0
    pass_start: float = 0.0
    pass_examined: float = 0.0
    pass_issued: float = 0.0
    paused_since: float = 0.0
    spent_paused: float = 0.0
    txg: int = 0
    """The txg in which it began."""
    txgs: tuple[int, int] = (0, 0)
    """The oldest and the newest txg whose blocks it reads."""

    @property
    def total(self) -> float:
        """Bytes to examine (``to_examine``)."""
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
        """Bytes in memory that are still to be issued."""
        return sum(queue.queued for queue in self.queues)

    @property
    def full(self) -> bool:
        """Whether it is a scrub of every block."""
        return self.function == SCRUB and self.txgs == (0, self.txg)

    @property
    def active(self) -> bool:
        """Whether it is neither finished nor canceled; it may be paused."""
        return self.state == SCANNING

    @property
    def running(self) -> bool:
        """Whether it is active and not paused."""
        return self.active and not self.paused_since


class DataLayout(NamedTuple):
    """The layout of the pool's data on its disks."""

    block: float = 131072.0
    """Mean allocated bytes per block."""
    run: float = 48 * 1048576.0
    """Allocated bytes that are contiguous once all blocks are sorted."""
    old_run: float = 262144.0
    """Allocated bytes contiguous in the order of writing, the order of scans before 0.8."""
    span: float = 6 * 1048576.0
    """Data bytes that one metadata read leads to."""


@dataclass(slots=True)
class SimulatedDirectory:
    """A directory whose files can be rewritten; bytes are allocated ones, parity included."""

    path: str
    files: int
    held: list[float]
    """Bytes on each normal-class top-level vdev, in the pool's order."""

    @property
    def size(self) -> float:
        """Total bytes."""
        return sum(self.held)


@dataclass(slots=True)
class Rewrite:
    """A running rebalance, which rewrites directories one after the other."""

    directories: list[SimulatedDirectory]
    limit: float = math.inf
    """Limit in bytes/s."""
    running: bool = True
    done: float = 0.0
    paused: bool = False
    during_scan: bool = True
    target: float | None = None
    """Spread (0…1) at which it ends."""
    most: float = math.inf
    """Bytes after which it ends."""
    floor: float = 0.0
    """Share of the pool that stays free."""
    hours: DayHours | None = None
    """The only hours of the day in which it works."""
    waiting: str = ""
    """Condition that it waits for now."""
    why: str = ""
    """Reason for its end."""
    rate: float = 0.0
    """Bytes/s in the last step."""
    worked: float = 0.0
    """Seconds in which it moved something."""
    old: list[list[float]] = field(init=False)
    """Of each directory, the bytes on each vdev that are not rewritten yet: each moves once."""

    def __post_init__(self) -> None:
        self.old = [list(directory.held) for directory in self.directories]

    @property
    def left(self) -> list[float]:
        """Bytes left in each directory."""
        return list(map(sum, self.old))

    @property
    def total(self) -> float:
        """Bytes of all its files."""
        return self.done + sum(self.left)

    def end(self, why: str) -> None:
        """End the job, for reason ``why``."""
        self.running, self.why, self.rate, self.waiting = False, why, 0.0, ""

    def resume(self) -> None:
        """Continue with the bytes that were left at its end, even if another job moved them."""
        for index, (directory, left) in enumerate(zip(self.directories, self.left, strict=True)):
            if any(map(gt, self.old[index], directory.held)):
                self.old[index] = [held * left / directory.size for held in directory.held]
        self.running, self.why = True, ""


@dataclass(slots=True)
class Host:
    """The machine: memory in bytes, checksum and parity throughput in bytes/s."""

    memory: int = 256 << 30
    throughput: float = 9e9
    buses: dict[str, float] = field(default_factory=dict)
    """Shared links: name to bytes/s."""
    cpu: float = 0.03
    """Share of all processors in use in the last step."""
    shelf: list[Leaf] = field(default_factory=list)
    """Devices of the machine that belong to no pool and could replace one."""
    zed: bool | None = None
    """Whether ZED runs; the simulated one does nothing."""
    slots: int = 24
    """Slots in each of its shelves."""
    alias: str = ""
    """Prefix of bay numbers in vdev_id.conf; empty if the machine does not name bays."""
    flash: tuple[int, ...] = ()
    """Numbers of the machine's NVMe slots."""
    drawer: list[Leaf] = field(default_factory=list)
    """Disks outside the machine: new ones, and disks that were pulled."""
    pools: list[PoolState] = field(default_factory=list, repr=False, compare=False)
    """The pools on the machine."""


class Incident(NamedTuple):
    """An event that the scenario triggers at ``t`` simulated seconds."""

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
    """Small variations in the speed of the devices."""
    layout: DataLayout = field(default_factory=DataLayout)
    version: str = VERSION
    spares: list[Leaf] = field(default_factory=list)
    cache: list[Leaf] = field(default_factory=list)
    tunables: Tunables = field(init=False)
    usual: Tunables = field(init=False)
    """The initial tunables of its kernel."""
    scan: SimulatedScan | None = None
    removal: Relocation | None = None
    expansion: Relocation | None = None
    checkpoint: Checkpoint | None = None
    error_scrub: ErrorScrub | None = None
    datasets: list[SimulatedDataset] = field(default_factory=list)
    directories: list[SimulatedDirectory] = field(default_factory=list)
    volumes: Volumes | None = None
    rewrite: Rewrite | None = None
    data_errors: float = 0.0
    damaged: tuple[str, ...] = ()
    destroyed: dict[str, str] = field(default_factory=dict)
    """Ids in ``damaged`` to the names of destroyed datasets."""
    suspended: bool = False
    one_stage: bool = field(init=False)
    """Whether scans issue as they walk (before 0.8)."""
    resilver_defer: bool = field(init=False)
    """Whether the feature is enabled, by which a device waits for a running resilver (0.8)."""
    autoexpand: bool = False
    t: float = 0.0
    """Simulated seconds since the beginning."""
    txg: int = 4_200_000
    next_txg: float = TXG_SECONDS
    scrubbed_txg: int = 0
    """The newest txg that a completed scrub has read (``last_scrubbed_txg``)."""
    start: float = 0.0
    """Epoch seconds of ``t`` = 0."""
    scrubbed: float | None = None
    """Epoch seconds at which its last full scrub ended, not counting the one in ``scan``."""
    events: list[Event] = field(default_factory=list)
    """Events since the last sample."""
    happened: list[Event] = field(default_factory=list)
    """All events."""
    incidents: list[Incident] = field(default_factory=list)
    """Incidents still to come, soonest first."""
    limits: dict[int, str] = field(default_factory=dict)
    """Top-level index to the true limit of its scan in the last step, to check diagnosis."""
    next_guid: int = 1

    def __post_init__(self) -> None:
        self.tunables, self.usual = defaults(self.version), defaults(self.version)
        self.one_stage = parse_version(self.version) < SORTED
        self.resilver_defer = not self.one_stage
        self.host.pools.append(self)

    @property
    def now(self) -> float:
        """The current epoch seconds."""
        return self.start + self.t

    @property
    def alloc(self) -> float:
        """Allocated bytes in all data classes."""
        return sum(top.alloc for top in self.tops)

    @property
    def resilvering(self) -> bool:
        """Whether a healing resilver is running."""
        return self.scan is not None and self.scan.active and self.scan.function == RESILVER

    @property
    def rebuilding(self) -> bool:
        """Whether a sequential rebuild is running."""
        return any(top.rebuild is not None and top.rebuild.active for top in self.tops)

    def txg_at(self, at: float) -> int:
        """Return the txg at epoch second ``at``, which must not lie in the future."""
        return max(0, min(self.txg, int(self.txg - (self.now - at) / TXG_SECONDS)))

    def in_vdevs(self) -> list[Leaf]:
        """Return the devices of the top-level vdevs, among them spares in use."""
        return [leaf for top in self.tops for leaf in top.leaves()]

    def lacking(self) -> list[Leaf]:
        """Return the devices that answer and lack data, except targets of a rebuild."""
        return [x for x in self.in_vdevs() if x.online and x.dtl > 0.0 and not x.rebuilding]

    def leaves(self) -> Iterator[Leaf]:
        """Yield every device of the tree, including cache devices and free spares."""
        used = self.in_vdevs()
        yield from used
        yield from self.cache
        yield from (leaf for leaf in self.spares if leaf not in used)

    def data_tops(self) -> list[Top]:
        """Return the top-level vdevs that hold blocks: all but logs, holes and removed ones."""
        return [t for t in self.tops if t.vclass != "log" and t.kind not in ("indirect", "hole")]

    def normal_tops(self) -> list[Top]:
        """Return the data vdevs of the normal class."""
        return [top for top in self.data_tops() if top.vclass == "normal"]

    def note(self, name: str, text: str, severity: str = "info", vdev: str | None = None) -> None:
        """Add an event at the current time; ``vdev`` is a path, shortened to its name."""
        named = vdev and vdev.rpartition("/")[2].removesuffix("-part1")
        event = Event(self.now, name, text, severity, named)
        self.events.append(event)
        self.happened.append(event)

    def weight(self, top: Top) -> int:
        """Return the allocator's weight of a free byte of ``top``.

        It is the number of data disks up to 2.3, and 1 from 2.4 (metaslab.c).
        """
        return (1 if self.version >= "2.4" else top.groups) * top.allocating

    def write_shares(self, tops: list[Top]) -> list[float]:
        """Return the share of newly allocated bytes for each of ``tops``, summing to 1."""
        weights = [top.free * self.weight(top) for top in tops]
        total = sum(weights)
        return [weight / total if total else 0.0 for weight in weights]

    def new_guid(self) -> int:
        """Return a GUID not used before; reproducible in every run."""
        self.next_guid += 1
        # Multiples of this constant, 2^64 divided by the golden ratio, are distinct and spread
        # well.
        return (self.guid ^ (self.next_guid * 0x9E3779B97F4A7C15)) & (2**64 - 1)
