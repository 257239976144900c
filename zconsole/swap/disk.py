"""One disk as a checklist remembers it: what tells it from others, and where it sits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from zconsole.actions.plan import Situation
from zconsole.actions.target import FAILED
from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.topology import placed

BY_VDEV, BY_PATH = "/dev/disk/by-vdev/", "/dev/disk/by-path/"
_PART = re.compile(r"-part\d+$")


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
    def mark(self) -> str:
        """What its own label says: ``serial WD-1234``; empty where nothing is known."""
        if self.serial:
            return f"serial {self.serial}"
        return f"WWN {self.wwn}" if self.wwn else ""

    @property
    def words(self) -> str:
        """Where it sits and what its label says: ``bay07 (serial WD-1234)``."""
        spot = self.place or self.name
        return f"{spot} ({self.mark})" if self.mark else spot

    def is_on(self, device: Device) -> bool:
        """Whether it is this device: by serial, else by WWN, else by path."""
        if self.serial and device.serial:
            return self.serial == device.serial
        if self.wwn and device.wwn:
            return self.wwn == device.wwn
        paths = {self.whole, self.path, self.node} - {""}
        return bool(paths & {device.path, *device.aliases})

    def shares_place(self, device: Device) -> bool | None:
        """Whether the device sits where this disk sat; None where that can't be compared."""
        if self.port and device.port:
            return port_of(self.port) == port_of(device.port)
        if self.bay and device.bay:
            return self.bay == device.bay
        if self.whole.startswith((BY_VDEV, BY_PATH)):
            return self.whole in (device.path, *device.aliases)
        return None


def port_of(path: str) -> str:
    """The by-path name in a path, without folder and partition; two spellings become one."""
    return _PART.sub("", path.rpartition("/")[2])


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
        return _displaced(s, leaf, key, device)
    else:
        found = disk_of(device)
    return replace(
        found, name=leaf.name, key=key, pool=s.pool.name, path=leaf.path or "", size=found.size
    )


def _is_other(s: Situation, leaf: Vdev, device: Device) -> bool:
    """Whether another disk is already where the leaf's path leads: a path may name a bay.

    The disk of a leaf has a label of its pool, or the serial number or WWN that ZFS noted.
    """
    contents = device.contents
    if leaf.state not in FAILED or contents.unread or contents.zfs_pool == s.pool.name:
        return False
    marks = (device.serial, device.wwn.rpartition(".")[2].removeprefix("0x"))
    return not any(mark and mark in (leaf.devid or "") for mark in marks)


def _displaced(s: Situation, leaf: Vdev, key: str, device: Device) -> SwapDisk:
    """A disk whose place another one has: its path leads to that one, and is left out."""
    old = _remembered(leaf)
    if old.serial == device.serial or old.wwn == device.wwn != "":
        old = replace(old, serial="", wwn="", model="")  # what is remembered is the new disk
    here = disk_of(device)
    return replace(
        old,
        name=leaf.name,
        key=key,
        pool=s.pool.name,
        whole="",
        bay=here.bay or old.bay,
        port=here.port or old.port,
        light=here.light,
    )


def _remembered(leaf: Vdev) -> SwapDisk:
    """A disk that is gone: as the history has it, else by the place and name that ZFS noted."""
    known = leaf.disk or LeafDisk()
    path = leaf.path or ""
    whole = _PART.sub("", path)
    devid = _PART.sub("", leaf.devid or "")
    by_place = path.startswith(BY_VDEV)
    return SwapDisk(
        name=leaf.name,
        whole=whole,
        serial=known.serial or (devid.rpartition("_")[2] if "_" in devid else ""),
        wwn=known.wwn,
        model=known.model,
        size=leaf.size_bytes,
        bay=known.bay or (port_of(path) if by_place else ""),
        port=known.port or port_of(leaf.phys_path or (path if path.startswith(BY_PATH) else "")),
    )


def device_of(disk: SwapDisk, devices: Iterable[Device]) -> Device | None:
    """The device of the machine that is this disk; None while it is not there."""
    return next((device for device in devices if disk.is_on(device)), None)


def leaves_of(pool: Pool) -> tuple[tuple[str, Vdev], ...]:
    """The devices of a pool with their keys, its free hot spares included, each once."""
    found: dict[str, tuple[str, Vdev]] = {}
    for place in placed(pool.root):
        if not place.vdev.children and place.depth:
            found.setdefault(place.vdev.guid or place.key, (place.key, place.vdev))
    return tuple(found.values())
