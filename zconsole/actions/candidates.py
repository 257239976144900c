"""Which devices of the machine can take a vdev's place, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.actions.plan import Facts
from zconsole.actions.target import Target, find_path, partition_in, partition_of
from zconsole.hardware.device import Device
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.spares import least_bytes
from zconsole.system.printable import clean
from zconsole.units import size

LEAST = 64 * 1024**2
"""The smallest device that ZFS takes (SPA_MINDEVSIZE, include/sys/fs/zfs.h)."""

PARTITIONING = 11 * 1024**2
"""What zpool's own partitioning of a whole disk can cost: alignment and the 8 MiB part9."""


FAILED_DISK, OLD_DISK = "this is the failed disk", "this is the disk to replace"
"""Why a device cannot take its own place: zpool refuses a disk that has the pool's label."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device judged for one place in one pool."""

    device: Device
    problems: tuple[str, ...] = ()
    """Why it cannot work; empty when it can."""
    cautions: tuple[str, ...] = ()
    is_old: bool = False
    """Whether it is the very device that is to be replaced."""

    @property
    def usable(self) -> bool:
        """Whether zpool would take it, as far as is known."""
        return not self.problems


def ranked(pool: Pool, target: Target, facts: Facts) -> tuple[Candidate, ...]:
    """Every device of the machine: usable ones first, the best fit by size first among them.

    The device that is to be replaced comes last.
    """
    judged = [judge_device(pool, target, device, facts) for device in facts.devices]
    return tuple(sorted(judged, key=_fit))


def judge_device(pool: Pool, target: Target, device: Device, facts: Facts) -> Candidate:
    """One device for this place, with every reason against it."""
    sized, hair = _size(target, device, facts)
    sector, slow = _sectors(target, device)
    used, doubts = _in_use(pool, target, device)
    shared, beside = _on_one_disk(target, device, facts)
    is_old = used[:1] in ((FAILED_DISK,), (OLD_DISK,))
    stands_in = _only_by_a_spare(target)
    problems = (*used, *stands_in, *shared, *sized, *sector)
    return Candidate(device, problems, (*doubts, *beside, *hair, *slow), is_old)


def judge_new(pool: Pool, device: Device, ashift: int | None) -> Candidate:
    """One device for a vdev that is to be added, laid out for ``ashift`` where that is known."""
    used, doubts = _in_use(pool, None, device)
    sector, slow = _under(ashift, pool.name, device, "ZFS adds no vdev of another")
    if device.size is None:
        return Candidate(device, (*used, *sector), (*doubts, "size unknown", *slow))
    small = f"too small: {size(device.size)}, a vdev needs {size(LEAST)}"
    return Candidate(device, (*used, *(small,) * (device.size < LEAST), *sector), (*doubts, *slow))


def cautions(pool: Pool, target: Target, new: str, facts: Facts) -> tuple[str, ...]:
    """What speaks against a device that was chosen, though it may work."""
    device = facts.named(new)
    if device is None:
        return (f"{new} not examined: its size and content are unknown",)
    whole = _whole_for_a_part(target, new) if device.kind == "disk" else ()
    return (*whole, *judge_device(pool, target, device, facts).cautions)


def _whole_for_a_part(target: Target, new: str) -> tuple[str, ...]:
    """That a whole disk takes the place of a partition: no others are made on it."""
    parts = ((v.name, partition_of(v)) for v in target.vdev.leaves())
    name, part = next((each for each in parts if each[1] is not None), ("", None))
    if part is None or partition_in(new) is not None:
        return ()
    return (
        f"{name} is partition {part} of its disk, and {new} is used whole: it can't boot, and gets"
        f" none of the other partitions. To have them: sgdisk --replicate={new} /dev/OTHER, sgdisk"
        f" --randomize-guids {new}, then choose {new}-part{part}",
    )


def ashift_of(target: Target) -> int | None:
    """The alignment shift of the top-level vdev the place belongs to; None when unknown."""
    if target.top.ashift:
        return target.top.ashift
    return next((leaf.ashift for leaf in target.top.leaves() if leaf.ashift), None)


def own_ashift(target: Target, new: str, facts: Facts) -> tuple[str, ...]:
    """``-o ashift`` where zpool would otherwise ask for more than the vdev has.

    It passes on the pool's ashift property (zpool_do_attach_or_replace, zpool_main.c), else some
    releases choose by the new device's sectors, and the kernel refuses a higher alignment than
    the vdev's.
    """
    ashift, wanted = ashift_of(target), facts.properties.get("ashift", "0")
    device = facts.named(new)
    physical = device.physical if device is not None else None
    more = wanted.isdigit() and ashift is not None and int(wanted) > ashift
    if ashift is not None and (more or (physical or 0) > 1 << ashift):
        return ("-o", f"ashift={ashift}")
    return ()


def order(candidate: Candidate) -> tuple[bool, bool]:
    """A key to sort by: what can be used first, the device that is to be replaced last."""
    return candidate.is_old, not candidate.usable


def _fit(candidate: Candidate) -> tuple[bool, bool, int, int, str]:
    device = candidate.device
    return (*order(candidate), len(candidate.cautions), device.size or 0, device.path)


def _size(target: Target, device: Device, facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    least = least_bytes(target.top)
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
    known = (facts.disk(leaf.path) for leaf in target.top.leaves() if leaf.path)
    return min((d.size for d in known if d is not None and d.size), default=unknown)


def _sectors(target: Target, device: Device) -> tuple[tuple[str, ...], tuple[str, ...]]:
    so = "only a new vdev can use it"
    return _under(ashift_of(target), target.top.name, device, so)


def _under(
    ashift: int | None, name: str, device: Device, so: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What speaks against a device's sectors in ``name``, laid out for ``ashift``, and so what."""
    if ashift is None:
        return (), ()
    if device.logical and device.logical > 1 << ashift:
        return (
            f"its sectors are {device.logical} bytes, {name} is laid out for"
            f" {1 << ashift} (ashift {ashift}); {so}",
        ), ()
    if device.physical and device.physical > 1 << ashift:
        return (), (f"works, but slowly: {device.physical}-byte sectors under ashift {ashift}",)
    return (), ()


def _on_one_disk(
    target: Target, device: Device, facts: Facts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What speaks against a part of a disk that the vdev, or the place itself, is on."""
    if device.kind == "disk":
        return (), ()
    disks = facts.disks_under(device)
    paths = {path for disk in disks for path in (disk.path, *disk.aliases)}
    serials = {disk.serial for disk in disks} - {""}
    here = [
        leaf
        for leaf in target.top.leaves()
        if leaf.path in paths or (leaf.disk is not None and leaf.disk.serial in serials)
    ]
    others = ", ".join(leaf.name for leaf in here if leaf is not target.vdev)
    if others:
        return (f"on one disk with {others}: {target.top.name} would lose both with it",), ()
    stays = here and target.vdev.state in ("ONLINE", "DEGRADED")
    return (), (f"on one disk with {target.name}: both fail with it",) * bool(stays)


def _in_use(
    pool: Pool, target: Target | None, device: Device
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    problems: list[str] = []
    member = find_path(pool, (device.path, device.node, *device.aliases))
    own = member is not None and target is not None and member.key == target.key
    state = target.vdev.state if own and target is not None else "ONLINE"
    in_place = state != "ONLINE"
    # A new disk put where the old one was has the old one's path, but not the pool's label.
    if in_place and device.contents.zfs_pool == pool.name:
        return (OLD_DISK if state == "OFFLINE" else FAILED_DISK,), ()
    if member is not None and not in_place:
        problems.append(f"in this pool already, as {member.name}")
    problems += [f"mounted on {clean(where)}" for where in device.mounted]
    problems += [f"in use by {holder}" for holder in device.holders]
    problems += ["used as swap"] if device.swap else []
    problems += ["read-only"] if device.read_only else []
    problems += ["not named by udev yet: look again"] if device.unnamed else []
    problems += held(pool, device) if member is None or in_place else []
    return tuple(problems), (
        "its content could not be read: it may hold data",
    ) if device.contents.unread else ()


def held(pool: Pool, device: Device) -> list[str]:
    """What zpool would refuse to overwrite without being forced, which is never done here."""
    found = device.contents
    said = [
        f"holds {name}; zpool does not overwrite that unless forced: if you don't"
        f" need it, wipe the disk first (wipefs --all {device.node or device.path})"
        for name in found.names
    ]
    if device.unlisted:
        numbers = ", ".join(map(str, device.unlisted))
        said.append(
            f"may be another host's disk: the kernel doesn't know partition {numbers} of its table."
            f" If no other host uses it: partprobe {device.node or device.path}, then look again"
        )
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
    for group in target.top.walk():
        original = group.children[0] if group.kind == "spare" and group.children else None
        if original is not None and target.vdev in original.walk():
            return f"{group.children[-1].name} stands in already: choose a disk that is no spare"
    return None


def _only_by_a_spare(target: Target) -> tuple[str, ...]:
    """Why a disk cannot take the place of a spare in use (zpool_vdev_attach, libzfs_pool.c)."""
    group = target.group
    if group is None or group.kind != "spare" or group.children[0] is target.vdev:
        return ()
    original = next(group.children[0].leaves()).name
    return (f"{target.name} is a spare that stands in: replace {original} instead",)
