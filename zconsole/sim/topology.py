"""The simulated pool's vdevs: top-level vdevs, their groups, and the place of a device in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from zconsole.sim.disk import DEGRADED, Leaf

LABELS = 4 << 20
"""Bytes for labels and boot block on a device (VDEV_LABEL_START_SIZE and two end labels)."""
REBUILDING, REBUILT = 1, 3
"""vdev_rebuild_state_t (include/sys/fs/zfs.h)."""


@dataclass(slots=True, eq=False)
class Group:
    """A replacing or spare vdev: several devices in one place of a top-level vdev."""

    kind: str
    guid: int
    children: list[Member]


Member = Leaf | Group
"""Child of a top-level vdev or of a group."""


@dataclass(slots=True)
class Rebuild:
    """vdev_rebuild_phys_t; sizes in bytes, times in epoch seconds."""

    start: float
    estimate: float
    targets: list[Leaf] = field(default_factory=list)
    state: int = REBUILDING
    end: float = 0.0
    needed: float = 1.0
    """Share of the scanned bytes in damaged groups; dRAID skips the others."""
    scanned: float = 0.0
    rebuilt: float = 0.0
    elapsed: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it is still running."""
        return self.state == REBUILDING


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
    """Allocated bytes, parity included."""
    space: float = 0.0
    """Allocatable bytes."""
    frag: float = 0.0
    ashift: int = 12
    data_disks: int = 0
    """dRAID: data devices in a redundancy group."""
    spares: int = 0
    """dRAID: distributed spares."""
    removing: bool = False
    allocating: bool = True
    autosit: bool = False
    """Whether its slow disks are told to sit out (the property ``autosit``, 2.4)."""
    synced: float = 0.0
    """``alloc`` as of the last txg."""
    rebuild: Rebuild | None = None

    @property
    def width(self) -> int:
        """Number of members."""
        return max(1, len(self.members))

    @property
    def share(self) -> float:
        """Share of an allocated byte that each member holds."""
        return 1.0 if self.kind in ("mirror", "disk") else 1.0 / self.width

    @property
    def usable(self) -> float:
        """Bytes that its devices can hold, each counted as large as the smallest."""
        smallest = min(leaf.model.size for leaf in self.leaves()) - LABELS
        return float(smallest if self.share == 1.0 else smallest * self.width)

    @property
    def inflation(self) -> float:
        """Allocated bytes per byte of data."""
        if self.kind == "draid":
            return (self.data_disks + self.nparity) / self.data_disks
        return self.width / (self.width - self.nparity) if self.kind == "raidz" else 1.0

    @property
    def groups(self) -> int:
        """Data disks: the allocator's weight up to 2.3 (metaslab.c, mg_aliquot)."""
        return max(1, self.width - self.nparity) if self.kind in ("raidz", "draid") else 1

    @property
    def free(self) -> float:
        """Bytes left to allocate."""
        return max(0.0, self.space - self.alloc)

    def leaves(self) -> Iterator[Leaf]:
        """Yield its devices, in order."""
        for member in self.members:
            if isinstance(member, Leaf):
                yield member
            else:
                yield from leaves_of(member)

    def sources(self) -> list[Leaf]:
        """Return one complete leaf for each member that has one."""
        found = []
        for member in self.members:
            # In a replacing or spare vdev, the first complete leaf serves the reads.
            for leaf in (member,) if isinstance(member, Leaf) else leaves_of(member):
                if leaf.dtl == 0.0 and leaf.state >= DEGRADED:
                    found.append(leaf)
                    break
        return found

    def lost(self) -> int:
        """Return the number of members without a complete leaf."""
        return self.width - len(self.sources())

    @property
    def tolerance(self) -> int:
        """Number of members it can lose."""
        return self.width - 1 if self.kind == "mirror" else self.nparity

    @property
    def failed(self) -> bool:
        """Whether it has lost more members than it can."""
        return self.lost() > self.tolerance

    def answering(self) -> list[Leaf]:
        """Return its devices that answer, complete or not."""
        return [leaf for leaf in self.leaves() if leaf.online]


def top_name(top: Top, index: int) -> str:
    """Return its name in ``zpool status`` (zpool_vdev_name, lib/libzfs/libzfs_pool.c)."""
    if top.kind == "disk":
        return next(top.leaves()).name
    if top.kind == "draid":
        shape = f":{top.data_disks}d:{top.width}c:{top.spares}s"
        return f"draid{top.nparity}{shape}-{index}"
    return f"{top.kind}{top.nparity if top.kind == 'raidz' else ''}-{index}"


def leaves_of(member: Member) -> list[Leaf]:
    """Return the leaves of a member: itself, or all leaves of the group."""
    if isinstance(member, Leaf):
        return [member]
    return [leaf for child in member.children for leaf in leaves_of(child)]


def siblings(top: Top, member: Member) -> list[Member]:
    """Return the list that contains ``member``: in the top-level vdev, or in its group."""
    group = parent(top, member)
    return top.members if group is None else group.children


def parent(top: Top, member: Member) -> Group | None:
    """Return the innermost replacing or spare vdev that contains ``member``."""
    inside = (g for g in groups(top) if any(child is member for child in g.children))
    return next(inside, None)


def groups(top: Top) -> list[Group]:
    """Return every replacing and spare vdev of ``top``, inner ones first."""
    found: list[Group] = []
    waiting = list(top.members)
    while waiting:
        member = waiting.pop()
        if isinstance(member, Group):
            # Outer groups are found first, so inner ones go to the front.
            found.insert(0, member)
            waiting += member.children
    return found
