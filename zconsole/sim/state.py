"""The simulated pool's topology, its allocator and its state: data, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from zconsole.sim.disk import DEGRADED, Leaf
from zconsole.sim.load import ForegroundLoad
from zconsole.sim.noise import Wobble
from zconsole.sim.tunables import Tunables

ACTIVE = 1
"""dsl_scan_state_t, which removal and expansion use (DSS_SCANNING, DSS_FINISHED)."""


@dataclass(slots=True)
class Removal:
    """pool_removal_stat_t; bytes, epoch seconds."""

    vdev: int
    start: float
    total: float
    state: int = ACTIVE
    end: float = 0.0
    copied: float = 0.0


@dataclass(slots=True)
class Expansion:
    """pool_raidz_expand_stat_t; bytes, epoch seconds."""

    vdev: int
    start: float
    total: float
    state: int = ACTIVE
    end: float = 0.0
    reflowed: float = 0.0


@dataclass(slots=True)
class Checkpoint:
    """pool_checkpoint_stat_t: ``state`` 1 exists, 2 discarding; ``space`` in bytes."""

    start: float
    space: float
    state: int = 1


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
    plans: list[float] = field(default_factory=list)
    """``moved`` of each directory once it is done: what it holds at the start, on top."""
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

    def __post_init__(self) -> None:
        self.plans = [directory.moved + directory.size for directory in self.directories]
        for directory in self.directories:
            directory.old = list(directory.held)

    @property
    def total(self) -> float:
        """Bytes it has to move in all."""
        return self.done + sum(self.left)

    @property
    def left(self) -> list[float]:
        """Bytes left of each directory."""
        pairs = zip(self.directories, self.plans, strict=True)
        return [plan - directory.moved for directory, plan in pairs]

    def end(self, why: str) -> None:
        """It is over."""
        self.running, self.why, self.rate, self.waiting = False, why, 0.0, ""


@dataclass(slots=True)
class Rebuild:
    """vdev_rebuild_phys_t; bytes, epoch seconds."""

    start: float
    estimate: float
    targets: list[Leaf] = field(default_factory=list)
    state: int = ACTIVE
    end: float = 0.0
    needed: float = 1.0
    """Share of the scanned bytes that lies in damaged groups; dRAID skips the others."""
    scanned: float = 0.0
    rebuilt: float = 0.0
    elapsed: float = 0.0
    errors: int = 0


SCRUB, RESILVER = 1, 2


SCANNING, FINISHED, CANCELED = 1, 2, 3


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
    restarts: int = 0

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
    def running(self) -> bool:
        """Active and not paused."""
        return self.state == SCANNING and not self.paused_since


TXG_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class Group:
    """A replacing or spare vdev: several devices in one place of a top-level vdev."""

    kind: str
    guid: int
    children: list[Member]


Member = Leaf | Group
"""What a top-level vdev, or a group in it, is made of."""


@dataclass(slots=True, eq=False)
class Top:
    """A top-level vdev."""

    kind: str
    """mirror, raidz, draid, disk, indirect or hole."""
    guid: int
    members: list[Member]
    nparity: int = 0
    vclass: str = "normal"
    alloc: float = 0.0
    """Bytes allocated, parity included."""
    space: float = 0.0
    """Bytes that can be allocated."""
    frag: float = 0.0
    ashift: int = 12
    asize: int = 0
    data_disks: int = 0
    """dRAID: data devices in a redundancy group."""
    spares: int = 0
    """dRAID: distributed spares."""
    removing: bool = False
    allocating: bool = True
    synced: float = 0.0
    """``alloc`` as of the last txg."""
    rebuild: Rebuild | None = None

    @property
    def width(self) -> int:
        """How many members it has."""
        return max(1, len(self.members))

    @property
    def share(self) -> float:
        """What part of an allocated byte each member holds."""
        return 1.0 if self.kind in ("mirror", "disk") else 1.0 / self.width

    @property
    def inflation(self) -> float:
        """Allocated bytes a byte of data takes."""
        if self.kind == "draid":
            return (self.data_disks + self.nparity) / self.data_disks
        return self.width / (self.width - self.nparity) if self.kind == "raidz" else 1.0

    @property
    def groups(self) -> int:
        """Data disks, the weight of the allocator up to 2.3 (metaslab.c, mg_aliquot)."""
        return max(1, self.width - self.nparity) if self.kind in ("raidz", "draid") else 1

    @property
    def free(self) -> float:
        """Bytes left to allocate."""
        return max(0.0, self.space - self.alloc)

    def leaves(self) -> Iterator[Leaf]:
        """Its devices, in order."""
        for member in self.members:
            if isinstance(member, Leaf):
                yield member
            else:
                yield from leaves_of(member)

    def sources(self) -> list[Leaf]:
        """A complete leaf for each member that has one."""
        found = []
        for member in self.members:
            for leaf in (member,) if isinstance(member, Leaf) else leaves_of(member):
                if leaf.dtl == 0.0 and leaf.state >= DEGRADED:
                    found.append(leaf)
                    break
        return found

    def lost(self) -> int:
        """Members without a complete leaf."""
        return self.width - len(self.sources())

    @property
    def tolerance(self) -> int:
        """Members it can do without."""
        return self.width - 1 if self.kind == "mirror" else self.nparity


def top_name(top: Top, index: int) -> str:
    """What ``zpool status`` calls it (zpool_vdev_name, lib/libzfs/libzfs_pool.c)."""
    if top.kind == "disk":
        return next(top.leaves()).name
    if top.kind == "draid":
        shape = f":{top.data_disks}d:{top.width}c:{top.spares}s"
        return f"draid{top.nparity}{shape}-{index}"
    return f"{top.kind}{top.nparity if top.kind == 'raidz' else ''}-{index}"


def leaves_of(member: Member) -> list[Leaf]:
    """The leaves of a member: itself, or all of the group's."""
    if isinstance(member, Leaf):
        return [member]
    return [leaf for child in member.children for leaf in leaves_of(child)]


def siblings(top: Top, member: Member) -> list[Member]:
    """The list ``member`` stands in: the top-level vdev's, or that of the group it is in."""
    waiting: list[list[Member]] = [top.members]
    while waiting:
        found = waiting.pop()
        if any(child is member for child in found):
            return found
        waiting += [child.children for child in found if isinstance(child, Group)]
    raise ValueError("not in this top-level vdev")


def parent(top: Top, member: Member) -> Group | None:
    """The innermost replacing or spare vdev that ``member`` is in."""
    held = siblings(top, member)
    return next((group for group in groups(top) if group.children is held), None)


def groups(top: Top) -> list[Group]:
    """Every replacing and spare vdev of ``top``, inner ones first."""
    found: list[Group] = []
    waiting = list(top.members)
    while waiting:
        member = waiting.pop()
        if isinstance(member, Group):
            found.insert(0, member)
            waiting += member.children
    return found


@dataclass(slots=True)
class DataLayout:
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


@dataclass(slots=True)
class PoolEvent:
    """Something for ``zpool events``; ``t`` in simulated seconds."""

    t: float
    name: str
    text: str
    severity: str = "info"
    vdev: str | None = None


@dataclass(slots=True)
class PoolState:
    """Everything there is to know about a simulated pool."""

    name: str
    guid: int
    tops: list[Top]
    host: Host
    load: ForegroundLoad
    breath: Wobble
    """The devices' little ups and downs."""
    layout: DataLayout = field(default_factory=DataLayout)
    version: str = "2.3.9"
    spares: list[Leaf] = field(default_factory=list)
    cache: list[Leaf] = field(default_factory=list)
    tunables: Tunables = field(default_factory=Tunables)
    scan: SimulatedScan | None = None
    removal: Removal | None = None
    expansion: Expansion | None = None
    checkpoint: Checkpoint | None = None
    directories: list[SimulatedDirectory] = field(default_factory=list)
    rewrite: Rewrite | None = None
    data_errors: float = 0.0
    damaged: tuple[str, ...] = ()
    suspended: bool = False
    one_stage: bool = False
    """Scans issue as they walk (before 0.8)."""
    autoexpand: bool = False
    t: float = 0.0
    """Simulated seconds since the beginning."""
    txg: int = 4_200_000
    next_txg: float = TXG_SECONDS
    start: float = 0.0
    """Epoch seconds of ``t`` = 0."""
    events: list[PoolEvent] = field(default_factory=list)
    limits: dict[int, str] = field(default_factory=dict)
    """Top-level index to what bound its scan in the last step: the truth of a verdict."""
    next_guid: int = 1

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.start + self.t

    @property
    def alloc(self) -> float:
        """Bytes allocated in all data classes."""
        return sum(top.alloc for top in self.tops)

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
        """Adds an event of this moment."""
        self.events.append(PoolEvent(self.t, name, text, severity, vdev))

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
