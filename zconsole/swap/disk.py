"""What a checklist remembers, its disks and what was done, and the machine it is held against.

A disk is told from others by serial number, WWN and place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, failed, find, suspects, targets
from zconsole.diagnosis.device_errors.faults import DeviceFault, SmartCounts
from zconsole.errors import NotFoundError, UsageError
from zconsole.hardware.device import Device
from zconsole.hardware.location import PARTITION
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.topology import FAILED, is_named

REPLACE_FIRST, SPARE_FIRST, PULL_FIRST = "replace-first", "spare-first", "pull-first"
OPEN, DONE, BACKED_OUT = "open", "done", "backed out"
OUT_ALREADY = "not needed: it is out already"
"""What the log says of taking offline a disk that left before."""

BY_VDEV, BY_PATH = "/dev/disk/by-vdev/", "/dev/disk/by-path/"
STACKED = ("/dev/mapper/", "/dev/dm-", "/dev/md", "/dev/disk/by-id/dm-", "/dev/disk/by-id/md-")
"""Paths of devices that are made of others: dm-crypt, LVM, multipath, md."""
LASTING_LINKS = "/dev/disk/"
"""Where udev keeps names of disks that stay over a boot."""
_UNIT = re.compile(r"-(?:lun|nvme)-\d+$")
"""The end of a by-path name that tells units of one disk apart."""
_AFTER_SERIAL = re.compile(r"(?<=.)(?:_\d{1,3}|-\d+:\d+)$")
"""What udev appends to the serial number: the namespace of NVMe, the unit of USB."""


@dataclass(frozen=True, slots=True)
class SwapDisk:
    """A disk of the machine, and the leaf that is on it; unknown is empty."""

    name: str
    """As ``zpool status`` prints it; of a disk without a pool its path."""
    key: str = ""
    """The key of its leaf in the pool."""
    pool: str = ""
    path: str = ""
    """The path of the leaf, which may be a partition."""
    whole: str = ""
    """The path of the whole disk, as ``Device.path``."""
    node: str = ""
    serial: str = ""
    wwn: str = ""
    model: str = ""
    size: int | None = None
    bay: str = ""
    port: str = ""
    light: str = ""
    """The enclosure's LED file of its bay."""

    @property
    def place(self) -> str:
        """Where it sits, in words: its bay, else its port; empty where neither is known."""
        return self.bay or (f"port {self.port}" if self.port else "")

    @property
    def spot(self) -> str:
        """Where it sits, in words; where that is unknown, its name."""
        return self.place or self.name

    @property
    def mark(self) -> str:
        """What its own label says: ``serial WD-1234``; empty where nothing is known."""
        if self.serial:
            return f"serial {self.serial}"
        return f"WWN {self.wwn}" if self.wwn else ""

    @property
    def words(self) -> str:
        """Where it sits and what its label says: ``bay07 (serial WD-1234)``."""
        disk = LeafDisk(bay=self.place, serial=self.serial, wwn=self.wwn)
        return disk.called(self.name)

    def is_on(self, device: Device) -> bool:
        """Whether it is this device: by serial and WWN, else by link, else by kernel name."""
        marked = self.is_marked(device)
        if marked is not None:
            return marked
        paths = {self.whole, self.path, self.node} - {""}
        # The kernel may give its names to other disks at the next boot, or when disks return.
        lasting = {path for path in paths if path.startswith(LASTING_LINKS)}
        return bool((lasting or paths) & {device.path, *device.aliases})

    def is_marked(self, device: Device) -> bool | None:
        """Whether serial and WWN say that it is this device; None where they can't be compared.

        Units of one disk have one serial number; several adapters write one for all of theirs.
        """
        if self.wwn and device.wwn and _naming(self.wwn) == _naming(device.wwn):
            if self.wwn != device.wwn:
                return False
            return not (self.serial and device.serial) or self.serial == device.serial
        if self.serial and device.serial:
            return self.serial == device.serial
        return None

    def shares_place(self, device: Device) -> bool | None:
        """Whether the device sits where this disk sat; None where that can't be compared."""
        if self.port and device.port:
            return port_of(self.port) == port_of(device.port)
        if self.bay and device.bay:
            return self.bay == device.bay
        if self.whole.startswith((BY_VDEV, BY_PATH)):
            return self.whole in (device.path, *device.aliases)
        return None


@dataclass(frozen=True, slots=True)
class SwapEntry:
    """One line of what happened."""

    t: float
    """Epoch seconds."""
    step: str
    text: str
    command: str = ""
    """The command that was run, quoted for a shell."""
    result: str = ""
    """How it ended: ``done``, or what it printed."""


@dataclass(frozen=True, slots=True)
class ReturnedDisk:
    """A disk that was pulled by mistake, and is complete in its pool again."""

    pool: str
    key: str
    t: float
    """Epoch seconds at which it was complete again."""


@dataclass(frozen=True, slots=True)
class Checklist:
    """One swap. What the pool and the machine tell anew each time is not kept here."""

    id: str
    """Eight hexadecimal digits."""
    pool: str
    guid: str | None
    begun: float
    """Epoch seconds."""
    old: SwapDisk
    vdev: str
    """The top-level vdev the old disk was in."""
    mode: str
    """replace-first, spare-first or pull-first."""
    why: tuple[str, ...] = ()
    """What failed, and why it was thought so."""
    predicted: float | None = None
    """Seconds that its resilver was predicted to take when it began; None where unknown."""
    basis: str = ""
    """What that was based on."""
    new: SwapDisk | None = None
    """The disk that takes the place: chosen before, or seen in the bay."""
    spare: SwapDisk | None = None
    """The hot spare that stands in meanwhile, where it was put in by this checklist."""
    spared: bool = False
    """Whether a hot spare stands in meanwhile, put in by whomever."""
    along: bool = False
    """Whether other devices of pools are on the old disk, and go with it."""
    beside: tuple[SwapDisk, ...] = ()
    """Of those, the ones of other pools."""
    was_gone: bool = False
    """Whether the machine had lost the old disk before the swap began."""
    around: tuple[SwapDisk, ...] = ()
    """Every other disk of the machine, as it was before anybody pulled one."""
    wrong: tuple[SwapDisk, ...] = ()
    """Of those, disks that were pulled and are not complete again; those still out are first."""
    noticed: tuple[str, ...] = ()
    """Keys of disks in ``wrong`` of which the pool knows: it lost them, or opened them again."""
    meant: tuple[SwapDisk, ...] = ()
    """Of those, disks that are out and that somebody said were meant to go."""
    returned: tuple[ReturnedDisk, ...] = ()
    """Disks that were pulled by mistake during this swap: nothing is wrong with them."""
    pulled: float | None = None
    """Epoch seconds at which the old disk was seen, or said, to be out."""
    unseen: bool = False
    """Whether somebody said so while the machine still showed the disk."""
    same: bool = False
    """Whether the disk that came is the old one again: only its cable or contact was bad."""
    passed: tuple[str, ...] = ()
    """Steps that nothing shows to be done: done, or left out, by somebody's word."""
    lit: bool = False
    """Whether the light is on that this checklist switched on."""
    boot: str = ""
    """The boot during which it was last looked at."""
    at: str = "explain"
    """The step that was current then."""
    log: tuple[SwapEntry, ...] = ()
    state: str = OPEN
    ended: float | None = None
    undone: tuple[str, ...] = ()
    """What was left undone when it was given up, and what to do about it."""

    @property
    def left_early(self) -> bool:
        """Whether the old disk is out, and left before anything took it offline."""
        return self.was_gone and any(entry.text == OUT_ALREADY for entry in self.log)

    @property
    def resilvered(self) -> float | None:
        """Seconds between giving the place to the new disk and the end of its resilver."""
        begun, ended = self.noted("replace"), self.noted("resilver")
        return None if begun is None or ended is None or ended < begun else ended - begun

    @property
    def scrub_begun(self) -> float | None:
        """When this checklist began a scrub; None where it didn't, or stopped it again."""
        own = [entry for entry in self.log if entry.step == "scrub" and entry.command]
        stopped = not own or "-s" in own[-1].command.split()
        return None if stopped else own[-1].t

    def noted(self, step: str) -> float | None:
        """When something was written down of a step last; None where nothing was."""
        return max((entry.t for entry in self.log if entry.step == step), default=None)

    def noting(
        self, t: float, step: str, text: str, command: str = "", result: str = ""
    ) -> Checklist:
        """With one more line of what happened."""
        return replace(self, log=(*self.log, SwapEntry(t, step, text, command, result)))

    def passing(self, step: str) -> Checklist:
        """With a step done, or left out, though nothing shows it."""
        return self if step in self.passed else replace(self, passed=(*self.passed, step))

    def retaking(self, step: str) -> Checklist:
        """With a step that was passed to be taken again."""
        return replace(self, passed=tuple(each for each in self.passed if each != step))

    def ending(self, t: float, state: str, undone: tuple[str, ...] = ()) -> Checklist:
        """Closed: done or backed out, with what was left undone."""
        return replace(self, state=state, ended=t, undone=undone)


def same_unit(a: Device, b: Device) -> bool:
    """Whether two devices are one disk to pull: units of it, as two actuators and namespaces are.

    They have one serial number and sit in one place.
    """
    if a is b:
        return True
    if not a.serial or a.serial != b.serial:
        return False
    if a.bay and b.bay:
        return a.bay == b.bay
    return _UNIT.sub("", a.port) == _UNIT.sub("", b.port) != ""


def _naming(wwn: str) -> str:
    """By which scheme a WWN is made: naa, eui, t10."""
    return wwn.partition(".")[0] if "." in wwn else ""


def port_of(path: str) -> str:
    """The by-path name in a path, without folder and partition; two spellings become one."""
    return PARTITION.sub("", path.rpartition("/")[2])


def disk_of(device: Device) -> SwapDisk:
    """A disk of the machine that holds no leaf."""
    return SwapDisk(
        name=device.path,
        whole=device.path,
        node=device.node,
        serial=device.serial,
        wwn=device.wwn,
        model=device.model,
        size=device.size,
        bay=device.bay,
        port=device.port,
        light=device.locate or "",
    )


def disk_of_leaf(situation: Situation, target: Target) -> SwapDisk:
    """The disk below a leaf; one that is gone as it is remembered."""
    leaf = target.vdev
    device = situation.facts.disk(leaf.path or "")
    if device is None:
        found = _remembered(leaf)
    elif _is_other(situation, leaf, device):
        found = _displaced(leaf, device)
    else:
        found = replace(disk_of(device), path=leaf.path or "")
    return replace(found, name=leaf.name, key=target.key, pool=situation.pool.name)


def leaf_device(situation: Situation, leaf: Vdev) -> Device | None:
    """The machine's device below a leaf; None, too, where another one is in its place."""
    device = situation.facts.disk(leaf.path or "")
    return None if device is None or _is_other(situation, leaf, device) else device


def _is_other(situation: Situation, leaf: Vdev, device: Device) -> bool:
    """Whether another disk is already where the leaf's path leads: a path may name a bay.

    The disk of a leaf has a label of its pool, or the serial number or WWN that ZFS noted.
    """
    if situation.device_of(leaf) is None:
        return True
    contents = device.contents
    if leaf.state not in FAILED or contents.unread or contents.zfs_pool == situation.pool.name:
        return False
    return not is_named(leaf, device.serial, device.wwn)


def _displaced(leaf: Vdev, device: Device) -> SwapDisk:
    """A disk whose path leads to another one, and is left out.

    Only a path that names a place tells that the other one has its bay.
    """
    known = leaf.disk or LeafDisk()
    if known.serial == device.serial or known.wwn == device.wwn != "":
        leaf = leaf._replace(disk=None)  # what is remembered is the other disk
    old, here = replace(_remembered(leaf), whole="", path=""), disk_of(device)
    if not (leaf.path or "").startswith((BY_VDEV, BY_PATH)):
        return old
    return replace(old, bay=here.bay or old.bay, port=here.port or old.port, light=here.light)


def _remembered(leaf: Vdev) -> SwapDisk:
    """A disk that is gone: as the history has it, else by the place and name that ZFS noted."""
    known = leaf.disk or LeafDisk()
    path = leaf.path or ""
    by_place = path.startswith(BY_VDEV)
    # ZFS noted an id, which ends with the serial number.
    noted = PARTITION.sub("", leaf.devid or "")
    if noted.startswith(("nvme-", "usb-")):
        noted = _AFTER_SERIAL.sub("", noted)
    return SwapDisk(
        name=leaf.name,
        path=path,
        whole=PARTITION.sub("", path),
        serial=known.serial or (noted.rpartition("_")[2] if "_" in noted else ""),
        wwn=known.wwn,
        model=known.model,
        size=leaf.size_bytes,
        bay=known.bay or (port_of(path) if by_place else ""),
        port=known.port or port_of(leaf.phys_path or (path if path.startswith(BY_PATH) else "")),
    )


def partition_on(device: Device, number: str) -> Device | None:
    """The partition of a disk with this number; None without one.

    Of a disk whose partitions are known by their links only, it is all of the disk.
    """
    known = next((part for part in device.parts if part.number == number), None)
    path = f"{device.path}-part{number}"
    return replace(device, path=path) if known is None and path in device.aliases else known


def leaves_of(pool: Pool) -> tuple[Target, ...]:
    """The devices of a pool, its hot spares included.

    A spare in use is only where it stands in: at several places where it is shared.
    """
    leaves = [target for target in targets(pool) if not target.vdev.children]
    used = {t.vdev.guid or t.vdev.name for t in leaves if t.vdev.vclass != "spare"}
    return tuple(
        target
        for target in leaves
        if target.vdev.vclass != "spare" or (target.vdev.guid or target.vdev.name) not in used
    )


def replacing(target: Target | None) -> Vdev | None:
    """The replacing group that a device is in, as the old one or the new one; else None."""
    group = None if target is None else target.group
    return group if group is not None and group.kind == "replacing" else None


def is_being_replaced(target: Target | None) -> bool:
    """Whether the device is the old one of a replace that runs."""
    group = replacing(target)
    return group is not None and target is not None and group.children[0] is target.vdev


@dataclass(frozen=True, slots=True)
class MachineView:
    """What a checklist is judged by: its pool at one moment, the other pools, the disks."""

    situation: Situation
    others: tuple[Situation, ...] = ()
    """The machine's other pools."""
    faults: tuple[DeviceFault, ...] = ()
    """Devices of the pool with new errors, or that disconnected."""
    smart: Mapping[str, SmartCounts] = field(default_factory=dict)
    """What disks say of themselves, by ``Device.path``; what was not asked is missing."""
    leaving: tuple[SwapDisk, ...] = ()
    """Disks that other open checklists swap: their pull is no mistake."""
    boot: str = ""
    """The id of this boot; empty where unknown."""

    @property
    def pool(self) -> Pool:
        """The pool with the checklist."""
        return self.situation.pool

    @property
    def devices(self) -> tuple[Device, ...]:
        """The machine's disks; none where they could not be read."""
        return self.situation.facts.devices

    @property
    def situations(self) -> tuple[Situation, ...]:
        """Every pool, the one with the checklist first."""
        return (self.situation, *self.others)

    @property
    def faulty(self) -> tuple[str, ...]:
        """The keys of devices of the pool with new errors, or that disconnected."""
        return tuple(fault.key for fault in self.faults)

    def device(self, disk: SwapDisk | None) -> Device | None:
        """The device of the machine that is this disk; None while it is not there."""
        return None if disk is None else device_of(disk, self.devices)

    def counts(self, device: Device | None) -> SmartCounts | None:
        """What a disk says of itself; None where it was not asked, or is not there."""
        return None if device is None else self.smart.get(device.path)

    def target(self, key: str) -> Target | None:
        """The leaf of the pool with this key; None once it is no longer in it."""
        return find(self.pool, key)

    def disk(self, target: Target) -> SwapDisk:
        """The disk below a leaf of the pool."""
        return disk_of_leaf(self.situation, target)

    @property
    def leaf_disks(self) -> list[SwapDisk]:
        """The disks below all leaves of all pools; one that holds several is there as often."""
        return [disk_of_leaf(at, leaf) for at in self.situations for leaf in leaves_of(at.pool)]

    def newcomer(self, group: Vdev) -> SwapDisk:
        """The disk that takes the place of another one in a group of the pool.

        A hot spare may stand in for it already.
        """
        new = next(group.children[-1].leaves())
        return self.disk(next(target for target in leaves_of(self.pool) if target.vdev is new))

    def of(self, pool: str) -> Situation | None:
        """The pool of this name; None while it is not imported."""
        return next((each for each in self.situations if each.pool.name == pool), None)

    def having(self, situation: Situation) -> MachineView:
        """The same, with the pool of this name as ``situation`` has it."""
        name = situation.pool.name
        first, *rest = (situation if each.pool.name == name else each for each in self.situations)
        return replace(self, situation=first, others=tuple(rest))

    def leaf_of(self, disk: SwapDisk) -> tuple[Situation, Target] | None:
        """The leaf of a disk, with its pool; None where there is none, or its pool is away."""
        situation = self.of(disk.pool)
        target = None if situation is None else find(situation.pool, disk.key)
        return None if situation is None or target is None else (situation, target)


def device_of(disk: SwapDisk, devices: Iterable[Device]) -> Device | None:
    """The device among these that is this disk; None where it is not there."""
    return next((device for device in devices if disk.is_on(device)), None)


def device_named(view: MachineView, word: str) -> str:
    """The key of the leaf that ``word`` means: its bay, serial, GUID, path or name.

    Raises NotFoundError without one, UsageError where it means several.
    """
    found = [target for target in leaves_of(view.pool) if word in _names(view, target)]
    pool = view.pool.name
    if not found:
        raise NotFoundError(f"{pool} has no device {word!r}: name it by bay, serial, path or GUID")
    if len({target.vdev.guid or target.vdev.name for target in found}) > 1:
        names = ", ".join(target.name for target in found)
        raise UsageError(f"{word!r} means {names}: name it by GUID or serial")
    return found[0].key


def _names(view: MachineView, target: Target) -> set[str | None]:
    leaf, disk = target.vdev, view.disk(target)
    device = view.situation.facts.disk(leaf.path or "")
    paths = (device.path, *device.aliases) if device else ()
    known = {target.key, leaf.name, leaf.path, leaf.guid, disk.bay, disk.serial, disk.wwn}
    return {*known, disk.port, *paths, *(path.rpartition("/")[2] for path in paths)} - {""}


def proposed(view: MachineView) -> tuple[Target, ...]:
    """The devices that a swap is offered for where none was named."""
    if view.situation.suspended and (out := gone_from(view)):
        return out[:1]  # no swap may begin: one device is enough to say why
    replaced = filter(is_being_replaced, leaves_of(view.pool))
    found = (*suspects(view.pool, view.faulty), *replaced)
    return tuple({target.key: target for target in found}.values())


def gone_from(view: MachineView) -> tuple[Target, ...]:
    """The devices that failed, or that the machine lost while a suspended pool gives no sample.

    Those that nothing replaces come first.
    """
    lost = [
        target
        for target in leaves_of(view.pool)
        if (is_being_replaced(target) and target.vdev.state in FAILED) or _is_lost(view, target)
    ]
    found = {target.key: target for target in (*failed(view.pool), *lost)}
    return tuple(sorted(found.values(), key=is_being_replaced))


def _is_lost(view: MachineView, target: Target) -> bool:
    if not (view.situation.suspended and view.devices) or target.vdev.kind != "disk":
        return False
    stacked = (target.vdev.path or "").startswith(STACKED)
    return not stacked and view.device(view.disk(target)) is None


NAMED = 3
"""Free disks that are named."""


def free_to_go(view: MachineView) -> str:
    """The disks of the machine that hold nothing, such as replaced ones, in words; may be empty."""
    free = [
        disk_of(device)
        for device in view.devices
        if device.kind == "disk" and device.contents.zfs_pool is None
        if not (device.mounted or device.swap or device.holders or device.contents.names)
        if not device.unlisted
        if not any(disk.is_on(device) for disk in view.leaf_disks)
    ]
    more = f" and {len(free) - NAMED} more" if len(free) > NAMED else ""
    return f"{', '.join(disk.words for disk in free[:NAMED])}{more}" if free else ""


def sentence(text: str) -> str:
    """A text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"
