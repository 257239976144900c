"""Devices of the machine that can replace a vdev, and why the others can't."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from zconsole.actions.plan import Facts
from zconsole.actions.target import Target, find_path, partition_in, partition_of
from zconsole.hardware.device import Device
from zconsole.hardware.shingled import HOST_MANAGED
from zconsole.pool.health import LEAST_DEVICE, least_bytes
from zconsole.pool.model import Pool
from zconsole.pool.spares import ashift_of
from zconsole.system.printable import clean
from zconsole.units import size

PARTITIONING = 11 * 1024**2
"""Bytes that zpool's own partitioning of a whole disk may take: alignment and 8 MiB part9."""


FAILED_DISK, OLD_DISK = "this is the failed disk", "this is the disk to replace"
"""Reasons why a device can't replace itself: zpool refuses a disk with the pool's label."""


class Objection(NamedTuple):
    """A reason against using a device in a place."""

    text: str
    fatal: bool = True
    """Whether it makes the device unusable."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device, judged for one place in one pool."""

    device: Device
    problems: tuple[str, ...] = ()
    """Why it can't be used; empty if it can."""
    cautions: tuple[str, ...] = ()
    is_old: bool = False
    """Whether it is the device to be replaced itself."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The cautions where they stand alone, and could be of another disk."""
        about = {self.device.failure: "the new disk ", _slow(self.device): "the new disk is "}
        return tuple(f"{about.get(text, '')}{text}" for text in self.cautions)

    @property
    def usable(self) -> bool:
        """Whether zpool would accept it, as far as is known."""
        return not self.problems


def ranked(pool: Pool, target: Target, facts: Facts) -> tuple[Candidate, ...]:
    """Return every device of the machine: usable ones first, sorted by best fit in size.

    The device to be replaced comes last.
    """
    judged = [judge_device(pool, target, device, facts) for device in facts.devices]
    return tuple(sorted(judged, key=_fit))


def judge_device(pool: Pool, target: Target, device: Device, facts: Facts) -> Candidate:
    """Judge one device for this place, with every reason against it."""
    found = (
        *_in_use(pool, target, device),
        *_only_by_a_spare(target),
        *_on_one_disk(target, device, facts),
        *_size(target, device, facts),
        *_under(ashift_of(target.top), target.top.name, device, "only a new vdev can use it"),
    )
    return _judged(device, found)


def _judged(device: Device, found: Sequence[Objection]) -> Candidate:
    """Build the candidate from the objections to a device; that it failed comes first."""
    found = (*found, *_shingled(device))
    if device.failure:
        found = (Objection(device.failure, fatal=False), *found)
    problems = tuple(each.text for each in found if each.fatal)
    cautions = tuple(each.text for each in found if not each.fatal)
    return Candidate(device, problems, cautions, problems[:1] in ((FAILED_DISK,), (OLD_DISK,)))


def _shingled(device: Device) -> Iterator[Objection]:
    """Yield the objection to a shingled disk."""
    if device.shingled == HOST_MANAGED:
        yield Objection(f"{HOST_MANAGED}: ZFS can't use it")
    elif device.shingled:
        yield Objection(_slow(device), fatal=False)


def _slow(device: Device) -> str:
    """Return what a resilver onto a shingled disk takes.

    The test: servethehome.com/wd-red-smr-vs-cmr-tested-avoid-red-smr (May 2020), 4 TB, raidz1. The
    errors: openzfs #10214, #15033.
    """
    return (
        f"{device.shingled}: a resilver onto it may take many times as long as estimated (9 days"
        " instead of 16 hours in a test), and some such disks fail with write errors meanwhile"
    )


def judge_new(pool: Pool, device: Device, ashift: int | None) -> Candidate:
    """Judge one device for a new vdev, with this ``ashift`` if it is known."""
    small = Objection("size unknown", fatal=False)
    if device.size is not None:
        small = Objection(f"too small: {size(device.size)}, a vdev needs {size(LEAST_DEVICE)}")
    found = (
        *_in_use(pool, None, device),
        *((small,) * (device.size is None or device.size < LEAST_DEVICE)),
        *_under(ashift, pool.name, device, "ZFS adds no vdev of another"),
    )
    return _judged(device, found)


def cautions(pool: Pool, target: Target, new: str, facts: Facts) -> tuple[str, ...]:
    """Return the cautions about a device that was chosen, though it may work."""
    device = facts.named(new)
    if device is None:
        return (f"{new} not examined: its size and content are unknown",)
    found = judge_device(pool, target, device, facts).warnings
    parts = ((v.name, partition_of(v)) for v in target.vdev.leaves())
    name, part = next((each for each in parts if each[1] is not None), ("", None))
    if part is None or device.kind != "disk" or partition_in(new) is not None:
        return found
    whole = (
        f"{name} is partition {part} of its disk, and {new} is used whole: it can't boot, and gets"
        f" none of the other partitions. To have them: sgdisk --replicate={new} /dev/OTHER, sgdisk"
        f" --randomize-guids {new}, then choose {new}-part{part}"
    )
    return (whole, *found)


def own_ashift(target: Target, new: str, facts: Facts) -> tuple[str, ...]:
    """Return ``-o ashift`` if zpool would otherwise ask for more than the vdev has.

    zpool passes on the pool's ashift property (zpool_do_attach_or_replace, zpool_main.c); without
    it, some releases choose by the new device's sectors, and the kernel refuses a higher alignment
    than the vdev's.
    """
    ashift, wanted = ashift_of(target.top), facts.properties.get("ashift", "0")
    device = facts.named(new)
    physical = device.physical if device is not None else None
    more = wanted.isdigit() and ashift is not None and int(wanted) > ashift
    if ashift is not None and (more or (physical or 0) > 1 << ashift):
        return ("-o", f"ashift={ashift}")
    return ()


def order(candidate: Candidate) -> tuple[bool, bool, bool]:
    """Return a sort key: usable devices first, failed ones after them, the one to replace last."""
    return candidate.is_old, not candidate.usable, bool(candidate.device.failure)


def _fit(candidate: Candidate) -> tuple[bool, bool, bool, bool, int, int, str]:
    """Return a sort key: as ``order``, shingled last, fewest cautions, then the smallest size."""
    device, cautious = candidate.device, len(candidate.cautions)
    size_of = device.size or 0
    return (*order(candidate), bool(device.shingled), cautious, size_of, device.path)


def _size(target: Target, device: Device, facts: Facts) -> Iterator[Objection]:
    """Yield objections to a device's size."""
    least = least_bytes(target.top)
    if least is None or device.size is None:
        yield Objection("size unknown: it may be too small", fatal=False)
        return
    if device.size < least:
        yield Objection(f"too small: {size(device.size)}, this place needs {size(least)}")
        return
    # A disk of the same size as the vdev's smallest whole disk fits as that one did.
    siblings = (facts.disk(leaf.path) for leaf in target.top.leaves() if leaf.path)
    sizes = (each.size for each in siblings if each is not None and each.size)
    usable = device.size - (PARTITIONING if device.kind == "disk" else 0)
    if usable < least and device.size < min(sizes, default=device.size + 1):
        what = f"may be slightly too small: {size(device.size)}, needs {size(least)}"
        yield Objection(what, fatal=False)


def _under(ashift: int | None, name: str, device: Device, so: str) -> Iterator[Objection]:
    """Yield objections to a device's sectors in ``name``, which has this ``ashift``.

    ``so``: what follows from sectors that are too large, in words.
    """
    if ashift is None:
        return
    # The kernel refuses an alignment above that of the vdev (spa_vdev_attach, spa.c).
    if device.logical and device.logical > 1 << ashift:
        yield Objection(
            f"its sectors are {device.logical} bytes, {name} is laid out for"
            f" {1 << ashift} (ashift {ashift}); {so}"
        )
    elif device.physical and device.physical > 1 << ashift:
        what = f"works, but slowly: {device.physical}-byte sectors under ashift {ashift}"
        yield Objection(what, fatal=False)


def _on_one_disk(target: Target, device: Device, facts: Facts) -> Iterator[Objection]:
    """Yield objections to a partition of a disk that the vdev, or the place itself, is on."""
    if device.kind == "disk":
        return
    disks = facts.disks_under(device)
    paths = {path for disk in disks for path in (disk.path, *disk.aliases)}
    serials = {disk.serial for disk in disks} - {""}
    here = [
        leaf
        for leaf in target.top.leaves()
        if leaf.path in paths or (leaf.disk is not None and leaf.disk.serial in serials)
    ]
    others = ", ".join(leaf.called for leaf in here if leaf is not target.vdev)
    if others:
        yield Objection(f"on one disk with {others}: {target.top.name} would lose both with it")
    elif here and target.vdev.state in ("ONLINE", "DEGRADED"):
        yield Objection(f"on one disk with {target.name}: both fail with it", fatal=False)


def _in_use(pool: Pool, target: Target | None, device: Device) -> Iterator[Objection]:
    """Yield objections to a device that is in use, or that holds data."""
    member = find_path(pool, (device.path, device.node, *device.aliases))
    own = target if target and member and member.key == target.key else None
    state = own.vdev.state if own else "ONLINE"
    in_place = state != "ONLINE"
    # A new disk in the old one's bay has the old one's path, but not the pool's label.
    if in_place and device.contents.zfs_pool == pool.name:
        yield Objection(OLD_DISK if state == "OFFLINE" else FAILED_DISK)
        return
    problems: list[str] = []
    if member is not None and not in_place:
        problems.append(f"in this pool already, as {member.name}")
    problems += [f"mounted on {clean(where)}" for where in device.mounted]
    problems += [f"in use by {holder}" for holder in device.holders]
    problems += ["used as swap"] if device.swap else []
    problems += ["read-only"] if device.read_only else []
    problems += ["not named by udev yet: look again"] if device.unnamed else []
    problems += held(pool, device) if member is None or in_place else []
    yield from map(Objection, problems)
    if device.contents.unread:
        yield Objection("its content could not be read: it may hold data", fatal=False)


def held(pool: Pool, device: Device) -> list[str]:
    """Return why zpool would refuse to overwrite a device without ``-f``, which is never used."""
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


def _only_by_a_spare(target: Target) -> Iterator[Objection]:
    """Yield the objection that only a spare's original can be replaced, not the spare in use.

    From zpool_vdev_attach, libzfs_pool.c.
    """
    group = target.group
    if group is not None and group.kind == "spare" and group.children[0] is not target.vdev:
        original = next(group.children[0].leaves()).called
        yield Objection(f"{target.name} is a spare that stands in: replace {original} instead")
