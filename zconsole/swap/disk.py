"""One disk as a checklist remembers it: what tells it from others, and where it sits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from zconsole.actions.plan import Situation
from zconsole.hardware.device import Device
from zconsole.hardware.links import PARTITION
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.topology import FAILED, is_named, placed

BY_VDEV, BY_PATH = "/dev/disk/by-vdev/", "/dev/disk/by-path/"
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
        return f"{self.spot} ({self.mark})" if self.mark else self.spot

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


def disk_of_leaf(s: Situation, leaf: Vdev, key: str) -> SwapDisk:
    """The disk below a leaf; one that is gone as it is remembered."""
    device = s.facts.device(leaf.path or "")
    if device is None:
        found = _remembered(leaf)
    elif _is_other(s, leaf, device):
        found = _displaced(leaf, device)
    else:
        found = replace(disk_of(device), path=leaf.path or "")
    return replace(found, name=leaf.name, key=key, pool=s.pool.name)


def leaf_device(s: Situation, leaf: Vdev) -> Device | None:
    """The machine's device below a leaf; None, too, where another one is in its place."""
    device = s.facts.device(leaf.path or "")
    return None if device is None or _is_other(s, leaf, device) else device


def _is_other(s: Situation, leaf: Vdev, device: Device) -> bool:
    """Whether another disk is already where the leaf's path leads: a path may name a bay.

    The disk of a leaf has a label of its pool, or the serial number or WWN that ZFS noted.
    """
    if s.device_of(leaf) is None:
        return True
    contents = device.contents
    if leaf.state not in FAILED or contents.unread or contents.zfs_pool == s.pool.name:
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
    return SwapDisk(
        name=leaf.name,
        path=path,
        whole=PARTITION.sub("", path),
        serial=known.serial or _serial_in(leaf.devid or ""),
        wwn=known.wwn,
        model=known.model,
        size=leaf.size_bytes,
        bay=known.bay or (port_of(path) if by_place else ""),
        port=known.port or port_of(leaf.phys_path or (path if path.startswith(BY_PATH) else "")),
    )


def _serial_in(devid: str) -> str:
    """The serial number at the end of the id that ZFS noted; empty where it has none."""
    name = PARTITION.sub("", devid)
    if name.startswith(("nvme-", "usb-")):
        name = _AFTER_SERIAL.sub("", name)
    return name.rpartition("_")[2] if "_" in name else ""


def device_of(disk: SwapDisk, devices: Iterable[Device]) -> Device | None:
    """The device of the machine that is this disk; None while it is not there."""
    return next((device for device in devices if disk.is_on(device)), None)


def leaves_of(pool: Pool) -> tuple[tuple[str, Vdev], ...]:
    """The devices of a pool with their keys, its hot spares included.

    A spare in use is only where it stands in: at several places where it is shared.
    """
    leaves = [p for p in placed(pool.root) if not p.vdev.children and p.depth]
    used = {p.vdev.guid or p.vdev.name for p in leaves if p.vdev.vclass != "spare"}
    return tuple(
        (p.key, p.vdev)
        for p in leaves
        if p.vdev.vclass != "spare" or (p.vdev.guid or p.vdev.name) not in used
    )
