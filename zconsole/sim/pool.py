"""The simulated pool's topology, its allocator and its state: data, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zconsole.sim.disk import DEGRADED, Leaf
from zconsole.sim.load import Load
from zconsole.sim.noise import Wobble
from zconsole.sim.tunables import Tunables

if TYPE_CHECKING:
    from zconsole.sim.activity import Checkpoint, Expansion, Removal
    from zconsole.sim.rebuild import Rebuild
    from zconsole.sim.rewrite import Directory, Rewrite
    from zconsole.sim.scan import Scan

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
class Layout:
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
    load: Load
    breath: Wobble
    """The devices' little ups and downs."""
    layout: Layout = field(default_factory=Layout)
    version: str = "2.3.9"
    spares: list[Leaf] = field(default_factory=list)
    cache: list[Leaf] = field(default_factory=list)
    tunables: Tunables = field(default_factory=Tunables)
    scan: Scan | None = None
    removal: Removal | None = None
    expansion: Expansion | None = None
    checkpoint: Checkpoint | None = None
    directories: list[Directory] = field(default_factory=list)
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
