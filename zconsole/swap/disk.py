"""The checklist record with its disks, and the machine view that it is compared with.

A disk is identified by serial number, WWN and place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from zconsole.actions.candidates import judge_new
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, failed, find, suspects, targets
from zconsole.diagnosis.device_errors.faults import DeviceFault, SmartCounts
from zconsole.errors import NotFoundError, UsageError
from zconsole.hardware.device import Device
from zconsole.hardware.location import PARTITION
from zconsole.pool.chassis import Enclosure, LeafDisk
from zconsole.pool.model import FAILED, Pool, Vdev, has_disk_id
from zconsole.timeline.eta.estimate import Estimate

REPLACE_FIRST, SPARE_FIRST, PULL_FIRST = "replace-first", "spare-first", "pull-first"
OPEN, DONE, BACKED_OUT = "open", "done", "backed out"
OUT_ALREADY = "not needed: it is out already"
"""Log text of the offline step if the disk left before it."""
TOO_EARLY = "the old disk left the machine before the new one was filled"
"""Log text of the pull step if the new disk is to be filled first, but the old one left."""

BY_VDEV, BY_PATH = "/dev/disk/by-vdev/", "/dev/disk/by-path/"
STACKED = ("/dev/mapper/", "/dev/dm-", "/dev/md", "/dev/disk/by-id/dm-", "/dev/disk/by-id/md-")
"""Prefixes of device paths built on other devices: dm-crypt, LVM, multipath, md."""
LASTING_LINKS = "/dev/disk/"
"""The folder of udev's links to disks; these names survive a reboot."""
_UNIT = re.compile(r"-(?:lun|nvme)-\d+$")
"""The end of a by-path name that tells apart the units of one disk."""
_AFTER_SERIAL = re.compile(r"(?<=.)(?:_\d{1,3}|-\d+:\d+)$")
"""What udev appends to a serial number: the namespace of NVMe, the unit of USB."""


@dataclass(frozen=True, slots=True)
class SwapDisk:
    """A disk of the machine, and the pool leaf on it; fields are empty where unknown."""

    name: str
    """The leaf's name as ``zpool status`` prints it; the path for a disk without a pool."""
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
    def leaf(self) -> tuple[str, str]:
        """The pool and the key of its leaf."""
        return self.pool, self.key

    @property
    def place(self) -> str:
        """The disk's bay, else its port; empty where neither is known."""
        return self.bay or (f"port {self.port}" if self.port else "")

    @property
    def spot(self) -> str:
        """The disk's place (bay or port), or its name if the place is unknown."""
        return self.place or self.name

    @property
    def mark(self) -> str:
        """The identity printed on the disk's label: ``serial WD-1234``; empty where unknown."""
        if self.serial:
            return f"serial {self.serial}"
        return f"WWN {self.wwn}" if self.wwn else ""

    @property
    def words(self) -> str:
        """Place and label of the disk: ``bay07 (serial WD-1234)``."""
        disk = LeafDisk(bay=self.place, serial=self.serial, wwn=self.wwn)
        return disk.called(self.name)

    def is_on(self, device: Device) -> bool:
        """Return whether this disk is the device: by serial and WWN, else by link, else by node."""
        marked = self.is_marked(device)
        if marked is not None:
            return marked
        paths = {self.whole, self.path, self.node} - {""}
        # The kernel may give a node name to another disk at the next boot, or when disks return, so
        # it counts only where no lasting link is known.
        lasting = {path for path in paths if path.startswith(LASTING_LINKS)}
        return bool((lasting or paths) & {device.path, *device.aliases})

    def is_marked(self, device: Device) -> bool | None:
        """Return whether serial and WWN match the device; None where they can't be compared.

        Both are compared: units of one disk share a serial number, and some adapters report the
        same serial number for all of their disks.
        """
        # WWNs of different schemes (naa, eui, t10) say nothing about each other.
        if self.wwn and device.wwn and _naming(self.wwn) == _naming(device.wwn):
            if self.wwn != device.wwn:
                return False
            return not (self.serial and device.serial) or self.serial == device.serial
        if self.serial and device.serial:
            return self.serial == device.serial
        return None

    def shares_place(self, device: Device) -> bool | None:
        """Return whether the device is in this disk's place; None where that can't be compared."""
        if self.port and device.port:
            return port_of(self.port) == port_of(device.port)
        if self.bay and device.bay:
            return self.bay == device.bay
        if self.whole.startswith((BY_VDEV, BY_PATH)):
            return self.whole in (device.path, *device.aliases)
        return None


@dataclass(frozen=True, slots=True)
class SwapEntry:
    """One log entry of a checklist."""

    t: float
    """Epoch seconds."""
    step: str
    text: str
    command: str = ""
    """The command that was run, quoted for a shell."""
    result: str = ""
    """The command's result: ``done``, ``started``, or the error that it printed."""


@dataclass(frozen=True, slots=True)
class ReturnedDisk:
    """A disk that was pulled by mistake, and is complete in its pool again."""

    pool: str
    key: str
    t: float
    """Epoch seconds when the disk was complete again."""


@dataclass(frozen=True, slots=True)
class Checklist:
    """The saved record of one swap, without anything that pool or machine can tell at any time."""

    id: str
    """Eight hexadecimal digits."""
    pool: str
    guid: str | None
    begun: float
    """Epoch seconds."""
    old: SwapDisk
    vdev: str
    """Name of the old disk's top-level vdev."""
    mode: str
    """replace-first, spare-first or pull-first."""
    why: tuple[str, ...] = ()
    """What failed, with the evidence."""
    predicted: float | None = None
    """Predicted duration of the resilver in seconds when the swap began; None where unknown."""
    basis: str = ""
    """The basis of the prediction."""
    new: SwapDisk | None = None
    """The new disk, chosen beforehand or found in the bay."""
    spare: SwapDisk | None = None
    """The hot spare that this checklist lets stand in."""
    spared: bool = False
    """Whether any hot spare stands in, whoever attached it."""
    along: bool = False
    """Whether the old disk holds other pool devices, which leave together with it."""
    beside: tuple[SwapDisk, ...] = ()
    """Devices of other pools on the old disk."""
    was_gone: bool = False
    """Whether the machine lost the old disk before its pull was due, or before the swap."""
    around: tuple[SwapDisk, ...] = ()
    """Every other disk of the machine as it was before the pull: these must stay."""
    wrong: tuple[SwapDisk, ...] = ()
    """Disks of ``around`` pulled by mistake and not complete again; those still out come first."""
    noticed: tuple[str, ...] = ()
    """Keys of disks in ``wrong`` whose pool noticed the pull: it lost or reopened the device."""
    meant: tuple[SwapDisk, ...] = ()
    """Disks of ``around`` that are out and that the operator said were pulled on purpose."""
    returned: tuple[ReturnedDisk, ...] = ()
    """Disks pulled by mistake during this swap that returned: nothing is wrong with them."""
    pulled: float | None = None
    """Epoch seconds when the old disk was found, or said, to be out."""
    unseen: bool = False
    """Whether the operator said it was out while the machine still showed it."""
    same: bool = False
    """Whether the inserted disk is the old one again, so that only its contact was bad."""
    passed: tuple[str, ...] = ()
    """Steps done or skipped by the operator's word, where the machine shows nothing."""
    lit: bool = False
    """Whether this checklist switched the bay's light on."""
    boot: str = ""
    """Id of the boot during which the checklist was last updated."""
    at: str = "explain"
    """The current step at the last update."""
    resilvered: float | None = None
    """Seconds that the resilver took, as the pool tells it; None where unknown."""
    log: tuple[SwapEntry, ...] = ()
    state: str = OPEN
    ended: float | None = None
    undone: tuple[str, ...] = ()
    """What was left undone when the swap was given up, each with what to do about it."""

    @property
    def left_early(self) -> bool:
        """Whether the old disk left the machine before it was taken offline, or replaced."""
        early = (OUT_ALREADY, TOO_EARLY)
        return self.was_gone and any(entry.text in early for entry in self.log)

    @property
    def was_needed(self) -> bool:
        """Whether the old disk left the machine at a time when the new one was to be filled."""
        return any(entry.text == TOO_EARLY for entry in self.log)

    @property
    def undoable(self) -> str:
        """Why nothing can be undone, for a checklist that left nothing in place."""
        ran = any(entry.command for entry in self.log)
        return "nothing is left to undo" if ran else "nothing has been done yet"

    @property
    def scrub_begun(self) -> float | None:
        """Epoch seconds when this checklist began a scrub; None if it didn't, or stopped it."""
        own = [entry for entry in self.log if entry.step == "scrub" and entry.command]
        stopped = not own or "-s" in own[-1].command.split()
        return None if stopped else own[-1].t

    @property
    def estimate(self) -> Estimate:
        """The predicted duration of the resilver; without an ETA where unknown."""
        return Estimate(self.predicted, None, None, self.basis)

    def noted(self, step: str) -> float | None:
        """Return the time of the newest log entry of a step; None if it has none."""
        return max((entry.t for entry in self.log if entry.step == step), default=None)

    def noting(
        self, now: float, step: str, text: str, command: str = "", result: str = ""
    ) -> Checklist:
        """Return the checklist with one more log entry."""
        return replace(self, log=(*self.log, SwapEntry(now, step, text, command, result)))

    def passing(self, step: str) -> Checklist:
        """Return the checklist with a step marked as passed, though nothing shows it."""
        return self if step in self.passed else replace(self, passed=(*self.passed, step))

    def retaking(self, step: str) -> Checklist:
        """Return the checklist with a step no longer marked as passed."""
        return replace(self, passed=tuple(each for each in self.passed if each != step))


def same_unit(a: Device, b: Device) -> bool:
    """Return whether two devices are units of one disk, pulled together.

    Dual-actuator disks and NVMe namespaces appear as several devices with one serial number in one
    place.
    """
    if a is b:
        return True
    if not a.serial or a.serial != b.serial:
        return False
    if a.bay and b.bay:
        return a.bay == b.bay
    # Ports of units of one disk differ in the number of the unit only.
    return _UNIT.sub("", a.port) == _UNIT.sub("", b.port) != ""


def _naming(wwn: str) -> str:
    """Return the scheme of a WWN: naa, eui, t10; empty if it has none."""
    return wwn.partition(".")[0] if "." in wwn else ""


def port_of(path: str) -> str:
    """Return the by-path name in a path, without folder and partition.

    Two spellings of a path give the same name.
    """
    return PARTITION.sub("", path.rpartition("/")[2])


def disk_of(device: Device) -> SwapDisk:
    """Build the disk of a device, without a leaf."""
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
    """Build the disk below a leaf; a disk that is gone comes from what is remembered of it."""
    leaf = target.vdev
    if (own := leaf_device(situation, leaf)) is not None:
        found = replace(disk_of(own), path=leaf.path or "")
    elif (other := situation.facts.disk(leaf.path or "")) is not None:
        found = _displaced(leaf, other)
    else:
        found = _remembered(leaf)
    return replace(found, name=leaf.name, key=target.key, pool=situation.pool.name)


def leaf_device(situation: Situation, leaf: Vdev) -> Device | None:
    """Return the device below a leaf; None if it is gone or another disk is in its place.

    The leaf's own disk has a label of its pool, or the serial number or WWN that ZFS noted. A path
    may name a bay, and so lead to another disk by now.
    """
    device = situation.device_of(leaf)
    if device is None or leaf.state not in FAILED or device.contents.unread:
        return device
    labeled = device.contents.zfs_pool == situation.pool.name
    return device if labeled or has_disk_id(leaf, device.serial, device.wwn) else None


def _displaced(leaf: Vdev, device: Device) -> SwapDisk:
    """Build the disk of a leaf whose path leads to another disk; the path itself is dropped.

    The other disk's bay is taken over only if the path names a place.
    """
    known = leaf.disk or LeafDisk()
    if known.serial == device.serial or known.wwn == device.wwn != "":
        leaf = leaf._replace(disk=None)  # the remembered serial is that of the other disk
    old, here = replace(_remembered(leaf), whole="", path=""), disk_of(device)
    if not (leaf.path or "").startswith((BY_VDEV, BY_PATH)):
        return old
    return replace(old, bay=here.bay or old.bay, port=here.port or old.port, light=here.light)


def _remembered(leaf: Vdev) -> SwapDisk:
    """Build a disk that is gone: from the history, else from the names that ZFS noted."""
    known = leaf.disk or LeafDisk()
    path = leaf.path or ""
    # Names in by-vdev are those of bays, by the rules of vdev_id.conf(5).
    by_place = path.startswith(BY_VDEV)
    # The vdev's devid ends with the serial number.
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
    """Return the partition of a disk with this number; None without one.

    If only udev links show the partition, this is the whole device with the partition's path.
    """
    known = next((part for part in device.parts if part.number == number), None)
    path = f"{device.path}-part{number}"
    return replace(device, path=path) if known is None and path in device.aliases else known


def leaves_of(pool: Pool) -> tuple[Target, ...]:
    """Return the leaves of a pool, hot spares included.

    A spare in use is listed only where it stands in, which may be several places if it is shared.
    """
    leaves = [target for target in targets(pool) if not target.vdev.children]
    used = {t.vdev.guid or t.vdev.name for t in leaves if t.vdev.vclass != "spare"}
    return tuple(
        target
        for target in leaves
        if target.vdev.vclass != "spare" or (target.vdev.guid or target.vdev.name) not in used
    )


def replacing(target: Target | None) -> Vdev | None:
    """Return the replacing vdev around a device, old or new; else None."""
    group = None if target is None else target.group
    return group if group is not None and group.kind == "replacing" else None


def is_being_replaced(target: Target) -> bool:
    """Return whether the device is the old one of a running replace."""
    group = replacing(target)
    return group is not None and group.children[0] is target.vdev


@dataclass(frozen=True, slots=True)
class MachineView:
    """The state that a checklist is compared with: its pool at one moment, other pools, disks."""

    situation: Situation
    others: tuple[Situation, ...] = ()
    """The machine's other pools."""
    faults: tuple[DeviceFault, ...] = ()
    """Devices of the pool with new errors, or that disconnected."""
    smart: Mapping[str, SmartCounts] = field(default_factory=dict)
    """SMART counts by ``Device.path``; disks that were not asked are missing."""
    leaving: tuple[SwapDisk, ...] = ()
    """Disks that other open checklists swap: their pull is no mistake."""
    boot: str = ""
    """The id of this boot; empty where unknown."""
    enclosures: Collection[Enclosure] = ()
    """The machine's enclosures with their slots; empty if it has none that are known."""

    @property
    def pool(self) -> Pool:
        """The pool of the checklist."""
        return self.situation.pool

    @property
    def devices(self) -> tuple[Device, ...]:
        """The machine's disks; empty if they could not be read."""
        return self.situation.facts.devices

    @property
    def situations(self) -> tuple[Situation, ...]:
        """Every pool, that of the checklist first."""
        return (self.situation, *self.others)

    @property
    def faulty(self) -> tuple[str, ...]:
        """Keys of the devices in ``faults``."""
        return tuple(fault.key for fault in self.faults)

    def device(self, disk: SwapDisk | None) -> Device | None:
        """Return the device that is this disk; None while it is not present."""
        return None if disk is None else device_of(disk, self.devices)

    def placed(self, disk: SwapDisk) -> SwapDisk:
        """Return the disk with the place where it is now; one that is out keeps its last place."""
        device = self.device(disk)
        if device is None or not disk.is_marked(device):
            return disk
        here = disk_of(device)
        # Without a bay, the disk is still in its old one as long as the port is the same.
        stays = here.port == disk.port or not here.port
        return replace(
            disk,
            whole=here.whole,
            node=here.node,
            bay=here.bay or (disk.bay if stays else ""),
            port=here.port or disk.port,
            light=here.light or (disk.light if stays else ""),
        )

    def counts(self, device: Device | None) -> SmartCounts | None:
        """Return a disk's SMART counts; None where it was not asked, or is not present."""
        return None if device is None else self.smart.get(device.path)

    def target(self, key: str) -> Target | None:
        """Return the leaf with this key; None if the pool no longer has it."""
        return find(self.pool, key)

    def disk(self, target: Target) -> SwapDisk:
        """Return the disk below a leaf of the pool."""
        return disk_of_leaf(self.situation, target)

    @property
    def leaf_disks(self) -> list[SwapDisk]:
        """The disks below all leaves of all pools: one entry per leaf."""
        return [disk_of_leaf(at, leaf) for at in self.situations for leaf in leaves_of(at.pool)]

    def newcomer(self, group: Vdev) -> SwapDisk:
        """Return the new disk of a replacing group; a hot spare may stand in for it already."""
        new = next(group.children[-1].leaves())
        return self.disk(next(target for target in leaves_of(self.pool) if target.vdev is new))

    def of(self, pool: str) -> Situation | None:
        """Return the state of the pool of this name; None while it is not imported."""
        return next((each for each in self.situations if each.pool.name == pool), None)

    def having(self, situation: Situation) -> MachineView:
        """Return the view with ``situation`` in place of the pool of the same name."""
        name = situation.pool.name
        first, *rest = (situation if each.pool.name == name else each for each in self.situations)
        return replace(self, situation=first, others=tuple(rest))

    def leaf_of(self, disk: SwapDisk) -> tuple[Situation, Target] | None:
        """Return the leaf of a disk, with its pool; None if either is not there."""
        situation = self.of(disk.pool)
        target = None if situation is None else find(situation.pool, disk.key)
        return None if situation is None or target is None else (situation, target)

    def has_failed(self, disk: SwapDisk) -> bool:
        """Return whether the leaf of a disk is in its pool, and has failed."""
        found = self.leaf_of(disk)
        return found is not None and found[1].vdev.state in FAILED


def device_of(disk: SwapDisk, devices: Iterable[Device]) -> Device | None:
    """Return the device that is this disk; None while it is not present."""
    return next((device for device in devices if disk.is_on(device)), None)


def device_named(view: MachineView, word: str) -> str:
    """Return the key of the leaf that ``word`` means: its bay, serial, GUID, path or name.

    Raises NotFoundError if there is none, UsageError if there are several.
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
    """Return every name by which an operator may mean a leaf."""
    leaf, disk = target.vdev, view.disk(target)
    device = view.situation.facts.disk(leaf.path or "")
    paths = (device.path, *device.aliases) if device else ()
    known = {target.key, leaf.name, leaf.path, leaf.guid, disk.bay, disk.serial, disk.wwn}
    return {*known, disk.port, *paths, *(path.rpartition("/")[2] for path in paths)} - {""}


def proposed(view: MachineView) -> tuple[Target, ...]:
    """Return the devices to offer for a swap where none was named."""
    if view.situation.suspended and (out := gone_from(view)):
        return out[:1]  # no swap may begin while suspended: one device is enough to say why
    replaced = filter(is_being_replaced, leaves_of(view.pool))
    found = (*suspects(view.pool, view.faulty), *replaced)
    return tuple({target.key: target for target in found}.values())


def gone_from(view: MachineView) -> tuple[Target, ...]:
    """Return the devices that failed, and for a suspended pool those that left the machine.

    A suspended pool gives no new sample, so only the machine shows these. Devices that nothing
    replaces come first.
    """
    leaves = leaves_of(view.pool)
    lost = [leaf for leaf in leaves if is_being_replaced(leaf) and leaf.vdev.state in FAILED]
    if view.situation.suspended and view.devices:
        lost += (
            leaf
            for leaf in leaves
            if leaf.vdev.kind == "disk" and not (leaf.vdev.path or "").startswith(STACKED)
            if view.device(view.disk(leaf)) is None
        )
    found = {target.key: target for target in (*failed(view.pool), *lost)}
    return tuple(sorted(found.values(), key=is_being_replaced))


NAMED = 3
"""Number of free disks that are named."""


def free_to_go(view: MachineView) -> str:
    """Return the unused disks in words, such as replaced ones; empty if there are none."""
    used = view.leaf_disks
    free = [
        disk_of(device).words
        for device in view.devices
        if device.kind == "disk" and judge_new(view.pool, device, None).usable
        if not any(disk.is_on(device) for disk in used)
    ]
    more = f" and {len(free) - NAMED} more" if len(free) > NAMED else ""
    return ", ".join(free[:NAMED]) + more


def sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"
