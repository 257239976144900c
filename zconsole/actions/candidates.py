"""Which devices of the machine can take a vdev's place, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.actions.plan import Facts
from zconsole.actions.target import Target, find_path, members
from zconsole.hardware.device import Contents, Device
from zconsole.pool.model import Pool, Vdev
from zconsole.system.printable import clean
from zconsole.units import size

LABELS = 4 * 1024**2 + 512 * 1024
"""Four labels and the boot block (VDEV_LABEL_START_SIZE, VDEV_LABEL_END_SIZE in vdev_impl.h)."""

PARTITIONING = 11 * 1024**2
"""What zpool's own partitioning of a whole disk can cost: alignment and the 8 MiB part9."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device judged for one place in one pool."""

    device: Device
    problems: tuple[str, ...] = ()
    """Why it cannot work; empty when it can."""
    cautions: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether zpool would take it, as far as is known."""
        return not self.problems


def ranked(pool: Pool, target: Target, facts: Facts) -> tuple[Candidate, ...]:
    """Every device of the machine: usable ones first, the best fit by size first among them."""
    judged = [judge(pool, target, device, facts) for device in facts.devices]
    return tuple(sorted(judged, key=_order))


def judge(pool: Pool, target: Target, device: Device, facts: Facts) -> Candidate:
    """One device for this place, with every reason against it."""
    sized, hair = _size(target, device, facts)
    sector, slow = _sectors(target, device)
    used, doubts = _in_use(pool, target, device)
    return Candidate(device, (*used, *sized, *sector), (*doubts, *hair, *slow))


def cautions(pool: Pool, target: Target, new: str, facts: Facts) -> tuple[str, ...]:
    """What speaks against a device that was chosen, though it may work."""
    device = facts.device(new)
    if device is None:
        return (f"{new} not examined: its size and content are unknown",)
    return judge(pool, target, device, facts).cautions


def least_bytes(target: Target) -> int | None:
    """Bytes that a device in this place must have at least; None when that is not known.

    ``vdev_get_min_asize`` (vdev.c): a raidz member carries the top-level's size over its width,
    a mirror member all of it. Never more than the smallest disk that is there now has.
    """
    top = target.top
    present = min((leaf.size_bytes for leaf in top.leaves() if leaf.size_bytes), default=None)
    if not top.size_bytes or top.kind.startswith("draid"):
        return present
    width = len(members(top)) if top.kind.startswith("raidz") else 1
    least = top.size_bytes // max(1, width) + LABELS
    return least if present is None else min(least, present)


def ashift_of(target: Target) -> int | None:
    """The alignment shift of the top-level vdev the place belongs to; None when unknown."""
    if target.top.ashift:
        return target.top.ashift
    return next((leaf.ashift for leaf in target.top.leaves() if leaf.ashift), None)


def _order(candidate: Candidate) -> tuple[bool, int, int, str]:
    device = candidate.device
    return (not candidate.usable, len(candidate.cautions), device.size or 0, device.path)


def _size(target: Target, device: Device, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    least = least_bytes(target)
    if least is None or device.size is None:
        return (), ("size unknown: it may be too small",)
    if device.size < least:
        return (f"too small: {size(device.size)}, this place needs {size(least)}",), ()
    usable = device.size - (PARTITIONING if device.kind == "disk" else 0)
    if usable < least and device.size < _smallest_sibling(target, facts, device.size + 1):
        return (), (f"may be slightly too small: {size(device.size)}, needs {size(least)}",)
    return (), ()


def _smallest_sibling(target: Target, facts: Facts, unknown: int) -> int:
    """Size of the smallest whole disk the vdev has: another of that size fits as that one did."""
    known = (facts.device(leaf.path) for leaf in target.top.leaves() if leaf.path)
    return min((d.size for d in known if d is not None and d.size), default=unknown)


def _sectors(target: Target, device: Device) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ashift = ashift_of(target)
    if ashift is None:
        return (), ()
    if device.logical and device.logical > 1 << ashift:
        return (
            f"its sectors are {device.logical} bytes, {target.top.name} is laid out for"
            f" {1 << ashift} (ashift {ashift}); only a new vdev can use it",
        ), ()
    if device.physical and device.physical > 1 << ashift:
        return (), (f"works, but slowly: {device.physical}-byte sectors under ashift {ashift}",)
    return (), ()


def _in_use(pool: Pool, target: Target, device: Device) -> tuple[tuple[str, ...], tuple[str, ...]]:
    problems: list[str] = []
    member = find_path(pool, (device.path, device.node, *device.aliases))
    # A new disk put where the old one was has the old one's path.
    if member and (member.key != target.key or member.vdev.state == "ONLINE"):
        problems.append(f"in this pool already, as {member.name}")
    problems += [f"mounted on {clean(where)}" for where in device.mounted]
    problems += [f"in use by {holder}" for holder in device.holders]
    problems += ["used as swap"] if device.swap else []
    problems += ["read-only"] if device.read_only else []
    problems += _contents(pool, device.contents) if member is None else []
    return tuple(problems), (
        "its content could not be read: it may hold data",
    ) if device.contents.unread else ()


def _contents(pool: Pool, found: Contents) -> list[str]:
    """What zpool would refuse to overwrite without being forced, which is never done here."""
    said = [
        f"holds {name}; zpool does not overwrite that unless forced: wipe it first if it is"
        " of no use (wipefs)"
        for name in found.names
    ]
    if found.zfs_pool is not None:
        whose = f"pool {found.zfs_pool}" if found.zfs_pool else "a pool"
        whose = "this pool" if found.zfs_pool == pool.name else whose
        said.append(f"has a label of {whose}; if you don't need that: zpool labelclear")
    return said


def spares(pool: Pool) -> dict[str, Vdev]:
    """The pool's hot spares that are free to be used, by the name to give to zpool.

    That is the whole disk's path, or the name of a distributed spare.
    """
    free = (v for v in pool.root.children if v.vclass == "spare" and v.state == "AVAIL")
    return {(v.path or v.name).removesuffix("-part1"): v for v in free}


def unfit_spare(spare: Vdev, target: Target) -> str | None:
    """Why zpool would not let a hot spare stand in there (spa_vdev_attach, spa.c)."""
    if target.top.vclass == "log":
        return "a hot spare cannot replace a log device"
    # Named draid<parity>-<top-level vdev>-<number> (vdev_draid_spare_name, vdev_draid.c).
    if spare.kind == "dspare" and spare.name.split("-")[1] != target.top.name.rpartition("-")[2]:
        return "spares are distributed over a dRAID vdev, for its own devices"
    return None
