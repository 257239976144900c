"""Redundancy left in each top-level vdev, and the devices that must not be removed.

Also compares layouts as ``zpool add`` does without ``-f``: get_replication and check_replication in
cmd/zpool/zpool_vdev.c (2.2.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from zconsole.pool.model import GROUP_KINDS, REPAIRING, Pool, Scan, Vdev, data_vdevs, is_group
from zconsole.units import counted, size


class Redundancy(NamedTuple):
    """Number of devices of a top-level vdev that may still fail without losing data."""

    vdev: str
    left: int
    untouchable: tuple[str, ...] = ()
    """If ``left`` is 0: the devices whose loss would lose data."""
    unread: tuple[str, ...] = ()
    """While a repair runs: devices that count though they can't read some of their blocks."""

    @property
    def reservation(self) -> str:
        """How many devices may fail for blocks that some can't read; empty if no difference.

        ``1 for blocks sda can't read``.
        """
        if not (self.left and self.unread):
            return ""
        left = max(0, self.left - len(self.unread))
        return f"{left or 'none'} for blocks {' and '.join(self.unread)} can't read"


REPAIRS = frozenset({"resilver", "rebuild"})
SEEN = 5.0
"""Percent of a resilver after which every device that it fills has received some bytes."""
COUNTED = 0.1
"""That percentage for scans with two stages.

Issued bytes count as resilvered only when their txg is synced, up to some 16M of the first terabyte
later.
"""
_PARENTS = ("mirror", "raidz", "draid")
_LAYOUTS = (*_PARENTS, *GROUP_KINDS)


def may_fail(left: int) -> str:
    """Return how many devices may still fail as text: ``no device may fail``."""
    return f"{counted(left, 'more device')} may fail" if left > 0 else "no device may fail"


def redundancy(pool: Pool) -> tuple[tuple[Vdev, Redundancy], ...]:
    """Return the redundancy of each data-holding top-level vdev, in tree order.

    Names are made unique with ``#1``. A leaf that is resilvering, waiting for a resilver or not
    ONLINE counts as missing; a replacing or spare vdev counts as present if one of its children is
    ONLINE and complete. Never below 0.

    While a repair of the pool runs, some devices count as being filled, though zpool marks them
    only after the first bytes were written: the new device of a replacing vdev and an unfilled leaf
    (by the kernel, or as it came back: ``timeline.events.Absences.unfilled``). So does a spare on
    which the source is silent, if the repair has nothing else to fill. In a dRAID, no stripe has
    two devices of one failure domain (vdev_draid.c), so all missing ones of a domain count as one.
    A checkpoint alone can keep a replacing vdev whose new device is complete.

    A device on which the repair only writes blocks again that it could not read counts, and is
    among the ``unread`` (``timeline.events.Absences.marked`` tells it from one that is filled).

    There is no entry for a vdev of which too little is shown (``is_incomplete``), nor for one of
    which a repair that has just begun may fill a device (``unmarked_repairs``). Without the row of
    the pool, devices at the top level have none, either: they may belong to a vdev whose row is
    missing as well.
    """
    root, checkpoint = pool.root, pool.checkpoint is not None
    repairs = [scan for scan in pool.scans if scan.active and scan.function in REPAIRS]
    begun = unmarked_repairs(root, repairs)
    own = {id(vdev): _without_spread_marks(vdev, repairs) for vdev in data_vdevs(root)}
    tops = [own.get(id(vdev), vdev) for vdev in root.children]
    every = [vdev for top in tops for vdev in top.walk()] if repairs else []
    # A repair fills the spares if it has nothing else to fill.
    spares = bool(repairs) and not any(
        vdev.resilvering or vdev.unfilled or vdev.kind == "replacing" for vdev in every
    )
    entries: list[tuple[Vdev, Redundancy]] = []
    taken: dict[str, int] = {}
    for vdev in data_vdevs(root):
        count = taken.get(vdev.name, 0)
        taken[vdev.name] = count + 1
        name = f"{vdev.name}#{count}" if count else vdev.name
        if any(scan.vdev in (None, vdev.name) for scan in repairs):
            marked = _mark_filling(own[id(vdev)], spares)
        else:
            marked = _mark_unfilled(own[id(vdev)], _has_failed(pool.scans, vdev), checkpoint)
        entry = _of_top_level(marked, name)
        if repairs:
            entry = entry._replace(unread=tuple(_unread(marked)))
        loose = root.state == "UNKNOWN" and not vdev.kind.startswith(_PARENTS)
        # Devices hidden by truncated text or by a repair can only make it worse: 0 stays true.
        hidden = vdev.partial or any(scan.vdev in (None, vdev.name) for scan in begun)
        if not (loose or is_incomplete(vdev) or (hidden and entry.left)):
            entries.append((vdev, entry))
    return tuple(entries)


def unmarked_repairs(root: Vdev, scans: Iterable[Scan]) -> tuple[Scan, ...]:
    """Return running repairs that have written nothing yet, if no device is marked as being filled.

    Each fills at least one (vdev_resilver_needed, vdev.c), which zpool marks once bytes were
    written to it.
    """
    begun = tuple(
        scan
        for scan in scans
        if scan.active
        and scan.function in REPAIRS
        and not scan.processed_bytes
        and (scan.percent or 0.0) < (COUNTED if scan.two_stage else SEEN)
    )
    shown = begun and any(
        vdev.resilvering or vdev.unfilled or vdev.kind in GROUP_KINDS for vdev in root.walk()
    )
    return () if shown else begun


def is_incomplete(top: Vdev) -> bool:
    """Whether too little is shown of a top-level vdev to determine its redundancy.

    Its layout is unknown (``-g``, or a new kind), or devices (``-e``) or their states are missing.
    """
    every = tuple(top.walk())
    if any(v.children and not v.kind.startswith(_LAYOUTS) for v in every):
        return True
    if any(v.state in ("", "UNKNOWN") for v in every[1:]):
        return True
    if any(v.kind in GROUP_KINDS and len(v.children) == 1 for v in every):
        return True
    # zpool status -e shows only devices that have a problem.
    fewer = top.width is not None and len(top.children) < top.width
    if fewer and all(v.state != "ONLINE" or v.errors.total for v in top.children):
        return True
    layout = "mirror" if top.kind == "mirror" else parity(top)
    if not layout:
        return False
    least = 2 if layout == "mirror" else parity(top) + 1
    unexplained = top.state not in ("ONLINE", "") and all(v.state == "ONLINE" for v in every[1:])
    return len(top.children) < least or unexplained


def is_complete(vdev: Vdev) -> bool:
    """Whether a device has all its data and can be read: ONLINE and not being filled.

    A spare attached in several places is complete in none. In a replacing vdev only the old device
    counts, unless the kernel reports the new one as filled: it removes the old one then
    (spa_vdev_resilver_done_hunt, module/zfs/spa.c). A vdev that can't be opened is not complete,
    whatever the states of its devices.
    """
    if vdev.children and vdev.state not in ("ONLINE", "DEGRADED", ""):
        return False
    if vdev.kind == "replacing" and vdev.children:
        old, *new = vdev.children
        return is_complete(old) or any(v.unfilled is False and is_complete(v) for v in new)
    if vdev.children:
        return any(is_complete(child) for child in vdev.children)
    if vdev.shared or vdev.resilvering or vdev.awaiting_resilver:
        return False
    return vdev.state == "ONLINE"


def parity(vdev: Vdev) -> int:
    """Return how many failures a complete vdev survives: 2 for raidz2, n-1 for an n-way mirror."""
    if vdev.kind == "mirror":
        return max(0, len(vdev.children) - 1)
    if vdev.kind[:-1] in ("raidz", "draid") and vdev.kind[-1].isdigit():
        return int(vdev.kind[-1])
    return 1 if vdev.kind == "raidz" else 0


def members(top: Vdev) -> tuple[Vdev, ...]:
    """Return the members of a top-level vdev; itself if it is a single device or group."""
    return (top,) if not top.children or is_group(top) else top.children


def _has_failed(scans: Iterable[Scan], top: Vdev) -> bool:
    """Whether the last repair of a top-level vdev ended with errors or was canceled."""
    ended = [s for s in scans if s.function in REPAIRS and s.vdev in (None, top.name)]
    newest = max(ended, key=lambda s: s.end or 0.0, default=None)
    return newest is not None and (newest.state == "canceled" or bool(newest.errors))


def _without_spread_marks(vdev: Vdev, repairs: Iterable[Scan]) -> Vdev:
    """Clear ``resilvering`` of dRAID devices that only receive their part of a distributed spare.

    zpool marks each of them "(resilvering)", as repairs are written to all; the kernel knows that
    none of their own data is missing (no ZPOOL_CONFIG_RESILVER_TXG, vdev.c). If the source lacks
    that information, the marks mean nothing during a rebuild, nor if they are more than the parity.
    """
    if not vdev.kind.startswith("draid"):
        return vdev
    rebuilt = any(scan.function == "rebuild" and scan.vdev == vdev.name for scan in repairs)
    spread = rebuilt or sum(child.resilvering for child in vdev.children) > parity(vdev)
    children = (
        child._replace(resilvering=False)
        if child.unfilled is False or (child.unfilled is None and spread)
        else child
        for child in vdev.children
    )
    return vdev._replace(children=tuple(children))


def _mark_unfilled(vdev: Vdev, failed: bool, checkpoint: bool) -> Vdev:
    """Mark the devices that no repair has filled, in a vdev without a running repair.

    ``failed``: the last repair had errors or was canceled, so that it may be incomplete.
    """
    if not vdev.children:
        return vdev._replace(resilvering=True) if vdev.unfilled and not checkpoint else vdev
    *old, new = (_mark_unfilled(child, failed, checkpoint) for child in vdev.children)
    if vdev.kind == "replacing" and checkpoint and not failed and new.unfilled is None:
        new = new._replace(unfilled=False)
    if vdev.kind == "spare" and failed and new.unfilled is not False:
        new = new._replace(resilvering=True)
    return vdev._replace(children=(*old, new))


def _mark_filling(vdev: Vdev, spares: bool) -> Vdev:
    """Mark new devices and unfilled leaves as resilvering."""
    if not vdev.children:
        return vdev._replace(resilvering=True) if vdev.unfilled else vdev
    *others, new = (_mark_filling(child, spares) for child in vdev.children)
    if vdev.kind == "replacing":  # all but the first are new; earlier ones may be filled already
        late = (v._replace(resilvering=v.resilvering or v.unfilled is None) for v in others[1:])
        others = [*others[:1], *late]
    stands_in = spares and vdev.kind == "spare" and new.unfilled is None
    if vdev.kind == "replacing" or stands_in:
        new = new._replace(resilvering=True)
    return vdev._replace(children=(*others, new))


def _unread(top: Vdev) -> Iterator[str]:
    """Yield the devices that alone have the data of their place, but can't read all of it."""
    for member in members(top):
        whole = [leaf for leaf in member.leaves() if is_complete(leaf)]
        replaced = is_group(member) and any(leaf.errors.total for leaf in whole)
        if len(whole) == 1 and (replaced or REPAIRING in whole[0].note):
            yield whole[0].name


def _of_top_level(vdev: Vdev, name: str) -> Redundancy:
    places = members(vdev)
    domains = vdev.failure_group or len(places)
    # Failure groups follow one another: an equal remainder means the same failure domain.
    missing = {n % domains for n, member in enumerate(places) if not is_complete(member)}
    is_open = vdev.state in ("ONLINE", "DEGRADED", "")
    left = max(0, parity(vdev) - len(missing)) if is_open else 0
    if left:
        return Redundancy(name, left)
    # A member with a single complete device depends on that device.
    others = (member for n, member in enumerate(places) if n % domains not in missing)
    whole = [[leaf.name for leaf in each.leaves() if is_complete(leaf)] for each in others]
    alone = tuple(names[0] for names in whole if len(names) == 1)
    return Redundancy(name, left, alone)


FUZZ = 16 * 1024**2
"""Bytes by which the devices of one vdev may differ in size (ZPOOL_FUZZ)."""


class Replication(NamedTuple):
    """Layout of a top-level vdev: ``raidz2`` is kind ``raidz`` with parity 2."""

    kind: str
    width: int
    parity: int = 0

    @property
    def survives(self) -> int:
        """Number of its devices that may fail without losing data."""
        return max(0, self.width - 1) if self.kind == "mirror" else self.parity

    @property
    def words(self) -> str:
        """Text such as ``raidz2 of 6 disks``, ``mirror of 2 disks``, ``single disk``."""
        if self.width == 1 and not self.survives:
            return "single disk"
        return f"{self.kind}{self.parity or ''} of {self.width} disks"


def replication_of(top: Vdev) -> Replication:
    """Return the layout of a top-level vdev."""
    if top.kind.startswith(("raidz", "draid")):
        return Replication(top.kind[:5], len(top.children), parity(top))
    return Replication(top.kind, max(1, len(top.children)))


def least_redundant(root: Vdev) -> int:
    """Return how many failures every redundant normal-class vdev survives; at least 1.

    Vdevs without redundancy don't count: one added by mistake does not justify another.
    """
    tops = map(parity, (v for v in data_vdevs(root) if v.vclass == "normal"))
    return min(filter(None, tops), default=1)


def mismatch(root: Vdev, new: Replication, sizes: Iterable[int] = ()) -> str | None:
    """Reason why zpool would refuse to add a vdev of this layout without ``-f``; None if none.

    zpool compares with the last vdev, and only if the pool's own vdevs match each other.
    ``sizes``: bytes of the new devices, if known.
    """
    tops = data_vdevs(root)
    if not _is_consistent(tops):
        return None
    if (why := sizes_differ(sizes)) is not None:
        return why
    present = replication_of(tops[-1])
    if not _differ(present, new):
        return None
    return f"the pool has a {present.words}, this is a {new.words}"


def sizes_differ(sizes: Iterable[int]) -> str | None:
    """Reason why zpool refuses devices of these sizes in one vdev; None if it does not."""
    known = list(sizes)
    if not known or max(known) - min(known) <= FUZZ:
        return None
    return f"its devices differ in size: {size(min(known))} to {size(max(known))}"


def _is_consistent(tops: tuple[Vdev, ...]) -> bool:
    """Whether the pool's vdevs match each other; otherwise zpool accepts any new one."""
    layouts = [replication_of(top) for top in tops]
    alike = all(not _differ(a, b, among_present=True) for a, b in pairwise(layouts))
    return bool(tops) and alike and all(sizes_differ(_sizes(top)) is None for top in tops)


def _sizes(top: Vdev) -> Iterator[int]:
    """Yield the sizes of its devices, of a replacing or spare group that of the first."""
    for member in top.children:
        leaf = member
        while is_group(leaf):
            leaf = leaf.children[0]
        if leaf.size_bytes:
            yield leaf.size_bytes


def _differ(a: Replication, b: Replication, among_present: bool = False) -> bool:
    """Whether zpool considers two layouts different; raidz and mirror of equal redundancy match."""
    kinds = {a.kind, b.kind}
    if "mirror" in kinds and kinds & {"raidz", "draid"}:
        return a.survives != b.survives
    if among_present and {a.kind, b.kind} <= {"raidz", "draid"}:
        return a.parity != b.parity
    return a != b
