"""The machine's disks: where they sit (enclosures, slots, bays), and what they are.

Unknown fields stay empty. Also covers the names of disks in /dev/disk, the aliases of
vdev_id.conf(5), and facts of a device. No request goes to a disk.

Slots: the kernel's ``enclosure`` class (drivers/misc/enclosure.c, drivers/scsi/ses.c), and PCI hot
plug for NVMe (drivers/pci/slot.c). ``enclosures`` reads only data in the kernel's memory.
``fault``, ``locate`` and ``status`` are different: each read of them asks the enclosure itself
(``ses_get_fault`` and others), so they are read only on request.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zconsole.pool.chassis import Enclosure, LeafDisk, Lights, Slot, SlotLights
from zconsole.system.host import PAGE, ROOT, bytes_in, names_in, number_in, real, tidy, word
from zconsole.zfs.sources.blockdev import SECTOR, node_name, slaves, udev_properties

_DISK_TYPES = ("device", "array device")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CONTROLLER = re.compile(r"nvme\d+")


def enclosures(root: Path = ROOT) -> tuple[Enclosure, ...]:
    """Return the machine's enclosures, each once even with several paths, then its NVMe slots."""
    folder = root / "sys/class/enclosure"
    found: list[Enclosure] = []
    for name in names_in(folder):
        new = _enclosure(real(folder / name))
        if not new.slots:
            continue
        same = next((i for i, old in enumerate(found) if _same(old, new, root)), None)
        if same is None:
            found.append(new)
        else:
            found[same] = _merged(found[same], new)
    nvme = _nvme_slots(root)
    return (*_with_unique_keys(found), *((Enclosure("", "NVMe slots", nvme),) if nvme else ()))


def lights_of(slot: Slot) -> SlotLights:
    """Return the lights of a slot from the first path that answers; may take a while."""
    for folder in map(Path, slot.folders):
        fault, locate = number_in(folder / "fault"), number_in(folder / "locate")
        status = word(folder / "status")
        if fault is not None or locate is not None or status:
            return SlotLights(_lit(fault), _lit(locate), status)
    return SlotLights()


def lights(root: Path = ROOT) -> Lights:
    """Return the lights of every slot.

    Each slot needs three requests to its enclosure: dozens of slots may take seconds, and a broken
    enclosure much longer.
    """
    return {
        (each.key, slot.name): lights_of(slot)
        for each in enclosures(root)
        for slot in each.slots
        if slot.folders
    }


def _lit(value: int | None) -> bool | None:
    return None if value is None else value > 0


def _enclosure(place: Path) -> Enclosure:
    """Return an enclosure as seen through one path."""
    vendor, model = word(place / "device/vendor"), word(place / "device/model")
    found = [slot for name in names_in(place) if (slot := _slot(place / name)) is not None]
    key = word(place / "id")
    usable = key and set(key) - set("0x")  # some report only zeros
    return Enclosure(
        key if usable else tidy(place.name), f"{vendor} {model}".strip(), _ordered(found)
    )


def _slot(place: Path) -> Slot | None:
    """Return a component of an enclosure, or None if it is not a slot for a disk."""
    if word(place / "type") not in _DISK_TYPES:
        return None
    disks = names_in(place / "device/block")
    return Slot(tidy(place.name), number_in(place / "slot"), disks, (str(place),))


def _ordered(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    return tuple(sorted(slots, key=lambda s: (s.number is None, s.number or 0, s.name)))


def _by_place(slots: tuple[Slot, ...]) -> Mapping[object, Slot]:
    """Return the slots by number, or by name if the numbers are not unique."""
    counts = Counter(slot.number for slot in slots)
    numbered = None not in counts and max(counts.values(), default=1) == 1
    return {slot.number if numbered else slot.name: slot for slot in slots}


def _same(a: Enclosure, b: Enclosure, root: Path) -> bool:
    """Return whether two paths lead to one enclosure.

    They do if id or a disk is the same, and no slot holds different disks.
    """
    mine, other = _by_place(a.slots), _by_place(b.slots)
    pairs = [(_wwid(mine[k], root), _wwid(other[k], root)) for k in mine.keys() & other.keys()]
    known = [(one, two) for one, two in pairs if one and two]
    if len(mine) != len(other) or any(one != two for one, two in known):
        return False
    return bool(known) or a.key == b.key


def _wwid(slot: Slot, root: Path) -> str:
    """Return the WWID of the disk in a slot; empty without a disk, or if unknown."""
    names = (word(root / "sys/class/block" / disk / "device/wwid") for disk in slot.disks)
    return next(filter(None, names), "")


def _merged(a: Enclosure, b: Enclosure) -> Enclosure:
    other = _by_place(b.slots)
    slots = (
        slot._replace(disks=(*slot.disks, *more.disks), folders=(*slot.folders, *more.folders))
        if (more := other.get(key)) is not None
        else slot
        for key, slot in _by_place(a.slots).items()
    )
    return a._replace(slots=_ordered(slots))


def _with_unique_keys(found: list[Enclosure]) -> Iterator[Enclosure]:
    """Yield the enclosures; those that share an id get their SCSI address added to the key."""
    counts = Counter(each.key for each in found)
    for each in found:
        if counts[each.key] == 1:
            yield each
        else:
            address = tidy(Path(each.slots[0].folders[0]).parent.name)
            yield each._replace(key=f"{each.key} {address}")


def _nvme_slots(root: Path) -> tuple[Slot, ...]:
    """Return the PCI slots that hold NVMe disks.

    Empty slots are left out: nothing tells which of them are for disks.
    """
    block, folder = root / "sys/class/block", root / "sys/bus/pci/slots"
    slots = {word(folder / name / "address"): name for name in names_in(folder)}
    held: dict[str, list[str]] = {}
    for disk in names_in(block) if slots else ():
        if not disk.startswith("nvme") or (block / disk / "partition").exists():
            continue
        for address in _pci_addresses(block / disk):
            if name := slots.get(address.partition(".")[0]):
                held.setdefault(name, []).append(disk)
    found = [
        Slot(tidy(name), int(name) if name.isascii() and name.isdigit() else None, tuple(disks))
        for name, disks in held.items()
    ]
    return _ordered(found)


def _pci_addresses(disk: Path) -> Iterator[str]:
    """Yield the PCI address of each controller of an NVMe disk."""
    device = real(disk / "device")
    controllers = [real(device / n) for n in names_in(device) if _CONTROLLER.fullmatch(n)]
    # The last PCI function in the path is the controller; those before it are bridges.
    for place in controllers or [device]:
        functions = [part for part in place.parts if _PCI.fullmatch(part)]
        yield from functions[-1:]


SHORTEST = 4
"""Fewest final digits of an enclosure's id in the name of a bay; its label shows them, too."""


@dataclass(frozen=True, slots=True)
class Locations:
    """The locations of the machine's disks at one moment."""

    enclosures: tuple[Enclosure, ...] = ()
    by_name: Mapping[str, LeafDisk] = field(default_factory=dict)
    """Kernel name of a disk, or of a multipath device with an alias, to its location."""
    by_slot: Mapping[tuple[str, str], LeafDisk] = field(default_factory=dict)
    """(address of an enclosure, kernel's name of a slot in it) to location."""
    configured: Mapping[str, str] = field(default_factory=dict)
    """Aliases of vdev_id.conf."""

    def of_leaf(self, path: str, slot: str = "") -> LeafDisk:
        """Return the last location of a missing disk, by the path of its leaf.

        ``slot`` is the folder of its slot in /sys at the import of its pool.
        """
        # Padded, so that an empty slot gives two empty names.
        *_, address, component = ("", "", *slot.split("/"))
        found = self.by_slot.get((address, component), LeafDisk())
        name = PARTITION.sub("", path.rpartition("/")[2])
        if is_by_place(path):
            ports = {port: alias for alias, port in self.configured.items()}
            return found._replace(bay=tidy(ports.get(name, "")) or found.bay, port=tidy(name))
        if "/by-vdev/" in path and names_place(self.configured.get(name, "")):
            return found._replace(bay=tidy(name))
        return found

    def of(self, names: Iterable[str]) -> LeafDisk:
        """Return the location of a disk by its kernel names: its own, and those of its paths."""
        found = [self.by_name[name] for name in names if name in self.by_name]
        columns = zip(*(each[:4] for each in found), strict=True)
        words: list[Any] = [next(filter(None, each), "") for each in columns]
        return LeafDisk(*words)


def locations(root: Path = ROOT) -> Locations:
    """Return the locations of all disks; sends no request to a disk or an enclosure."""
    found = enclosures(root)
    places, folders = _in_slots(root, found)
    named, plugged = aliases(root), ports(root)
    for disk in dict.fromkeys((*named, *plugged)):
        old = places.get(disk, LeafDisk())
        places[disk] = old._replace(bay=named.get(disk, old.bay), port=plugged.get(disk, old.port))
    by_slot = {(Path(f).parent.name, Path(f).name): where for f, where in folders.items()}
    return Locations(found, places, by_slot, configured(root))


def disks_below(path: str, root: Path = ROOT) -> tuple[tuple[str, ...], ...]:
    """Return the kernel names of each disk below a leaf's path.

    A multipath disk has several names: first the device that joins the paths, then each path.
    """
    name = node_name(path, root)
    return () if name is None else tuple(dict.fromkeys(_below(name.replace("/", "!"), root)))


_HUB = re.compile(r"/(?:(expander-\d+:\d+|ata\d+|host\d+(?=/rport-))|(\d+-\d+(?:\.\d+)*))(?=/)")
"""A device that several disks may be behind, in the path of a disk in /sys.

SAS expanders (drivers/scsi/scsi_transport_sas.c), ATA ports (libata-transport.c), ports of Fibre
Channel (scsi_transport_fc.c), and USB hubs and bridges (drivers/usb/core/usb.c).
"""


def hubs(names: Sequence[str], root: Path = ROOT) -> str:
    """Return the hubs of a disk, as ``LeafDisk.hubs``; ``names`` as from ``disks_below``.

    Of a multipath disk only those of all its paths: it goes on working without the others.
    """
    ways = [
        [
            plain or f"usb-{usb}"
            for plain, usb in _HUB.findall(str(real(root / "sys/class/block" / disk)))
        ]
        for disk in names[1:] or names
    ]
    shared = [hub for hub in reversed(ways[0]) if all(hub in way for way in ways)]
    return ", ".join(shared)


def is_multipath(name: str, root: Path = ROOT) -> bool:
    """Return whether a dm device joins the paths to one disk (``dm/uuid``, multipath-tools)."""
    return word(root / "sys/class/block" / name / "dm/uuid").startswith("mpath-")


def _below(name: str, root: Path, depth: int = 8) -> Iterator[tuple[str, ...]]:
    place = root / "sys/class/block" / name
    if (place / "partition").exists():
        name = real(place).parent.name
    made_of = slaves(name, root) if depth else ()
    if made_of and is_multipath(name, root):
        yield (name, *made_of)
    elif made_of:
        for each in made_of:
            yield from _below(each, root, depth - 1)
    else:
        yield (name,)


def _in_slots(
    root: Path, found: Sequence[Enclosure]
) -> tuple[dict[str, LeafDisk], dict[str, LeafDisk]]:
    """Return the locations by a disk's kernel name, and by a slot's folder.

    The enclosure's record takes precedence over the link in the disk's own folder.
    """
    bays = bay_names(found)
    places: dict[str, LeafDisk] = {}
    slots: dict[str, LeafDisk] = {}
    for enclosure in found:
        for slot in enclosure.slots:
            where = LeafDisk(bays[enclosure.key, slot.name], enclosure.key, slot.name)
            places.update(dict.fromkeys(slot.disks, where))
            slots.update(dict.fromkeys(slot.folders, where))
    for disk in names_in(root / "sys/block"):
        own = None if disk in places else _by_disk(root / "sys/block" / disk, slots)
        if own is not None:
            places[disk] = own
    return places, slots


def _by_disk(disk: Path, slots: Mapping[str, LeafDisk]) -> LeafDisk | None:
    for name in names_in(disk / "device"):
        if name.startswith("enclosure_device:"):
            folder = real(disk / "device" / name)
            known = slots.get(str(folder))
            slot = Slot(tidy(folder.name))
            return known or LeafDisk(slot.label, tidy(folder.parent.name), slot.name)
    return None


def bay_names(found: Sequence[Enclosure]) -> Mapping[tuple[str, str], str]:
    """Return the names of all slots for people, by the enclosure's key and the slot's name.

    ``Slot 05``; with several enclosures, the end of the enclosure's id comes first: ``ee7f Slot
    05``.
    """
    shelves = _short_names([each.key for each in found if each.key])
    return {
        (each.key, slot.name): f"{shelves[each.key]} {slot.label}".strip()
        if each.key
        else f"NVMe slot {slot.name}"
        for each in found
        for slot in each.slots
    }


def _short_names(keys: Sequence[str]) -> Mapping[str, str]:
    """Return short unique names of enclosures: empty for a single one, else the ends of the ids."""
    if len(keys) < 2:
        return dict.fromkeys(keys, "")
    for length in range(SHORTEST, max(map(len, keys))):
        if len({key[-length:] for key in keys}) == len(keys):
            return {key: key[-length:] for key in keys}
    return {key: key for key in keys}


# Names of disks

LARGEST = 1 << 20
"""Most bytes of vdev_id.conf that are read."""
_OWN_ADDRESS = re.compile(r"-sas-0x[0-9a-f]+")
"""Part of a by-path name with the disk's own SAS address, which changes with the disk."""
_PLACE = re.compile(r"(?:pci|platform|acpi|virtio-pci|ccw)-")
"""Beginnings of by-path names (systemd, src/udev/udev-builtin-path_id.c)."""
PARTITION = re.compile(r"-part\d+$")

DiskLinks = Mapping[str, Sequence[str]]
"""Kernel name to the links that lead to it."""


def links(root: Path = ROOT, *folders: str) -> DiskLinks:
    """Return the links in these folders of /dev."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for link in sorted((root / "dev" / folder).iterdir()):
                with contextlib.suppress(OSError):
                    found.setdefault(link.readlink().name, []).append(str(link))
    return found


def is_by_place(link: str) -> bool:
    """Return whether a by-path link leads to whatever disk is plugged in there."""
    return "/by-path/" in link and not _OWN_ADDRESS.search(link)


def names_place(target: str) -> bool:
    """Return whether an alias for this link, or for an unknown one, names a location."""
    return not target or bool(_PLACE.match(target) and not _OWN_ADDRESS.search(target))


def ports(root: Path = ROOT) -> Mapping[str, str]:
    """Return a mapping of kernel name to by-path name of the port, the shortest of several."""
    found: dict[str, str] = {}
    for disk, paths in links(root, "disk/by-path").items():
        names = [Path(each).name for each in paths if is_by_place(each)]
        if names:
            found[disk] = tidy(min(names, key=lambda name: (len(name), name)))
    return found


def aliases(root: Path = ROOT) -> Mapping[str, str]:
    """Return a mapping of kernel name to the alias of the disk's location.

    An alias that vdev_id.conf gives to one disk by its id names no location and is left out.
    Aliases made from channels and slots are taken from the links in by-vdev, as udev resolved them.
    """
    by_path = {
        Path(link).name: disk
        for disk, found in links(root, "disk/by-path").items()
        for link in found
        if is_by_place(link)
    }
    known = configured(root)
    named = {by_path[target]: name for name, target in known.items() if target in by_path}
    linked = {
        disk: name
        for disk, found in links(root, "disk/by-vdev").items()
        for name in (Path(link).name for link in found)
        if not PARTITION.search(name) and names_place(known.get(name, ""))
    }
    return {disk: tidy(name) for disk, name in (named | linked).items()}


def configured(root: Path = ROOT) -> Mapping[str, str]:
    """Return the aliases of vdev_id.conf: name to its link, without the link's folder."""
    try:
        text = bytes_in(root / "etc/zfs/vdev_id.conf", LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return {row[1]: row[2].rpartition("/")[2] for row in rows if row[:1] == ["alias"] and row[2:]}


# Identity (serial number, World Wide Name, model), and other facts of a device: all of it is in the
# kernel's memory or in udev's database.

_SERIAL_PAGE = 0x80
"""Unit Serial Number page (SPC-4, 7.8.15): a header of four bytes, then text."""


def identity(disk: Path, root: Path = ROOT) -> LeafDisk:
    """Return serial number, World Wide Name and model of a disk, by its folder in /sys/block.

    Unknown fields are empty. The kernel's values take precedence over udev's, which may be old.
    """
    udev = udev_properties(disk, root)

    def _first(*names: str) -> str:
        return next(filter(None, (word(disk / name) for name in names)), "")

    serial = tidy(_first("serial", "device/serial") or udev.get("ID_SERIAL_SHORT", ""))
    return LeafDisk(
        serial=serial or _page_serial(disk / "device/vpd_pg80"),
        wwn=_first("wwid", "device/wwid") or tidy(udev.get("ID_WWN", "")),
        model=_first("device/model") or tidy(udev.get("ID_MODEL", "")),
    )


def _page_serial(page: Path) -> str:
    try:
        found = bytes_in(page, PAGE)
    except OSError:
        return ""
    if found[1:2] != bytes((_SERIAL_PAGE,)):
        return ""
    length = int.from_bytes(found[2:4], "big")
    return tidy(found[4 : 4 + length].decode("ascii", "replace"))


def device_facts(path: str, root: Path = ROOT) -> Mapping[str, str]:
    """Return facts of the disks under a leaf, without starting a process or accessing a disk.

    Keys, where known: device, disks, serial, model, size (bytes), rotational (0, 1),
    logical_sector, physical_sector (bytes).
    """
    name = node_name(path, root)
    if name is None:
        return {}
    disks = [path for names in disks_below(path, root) for path in names[1:] or names]
    columns: dict[str, list[str]] = {"disks": disks if disks != [name] else []}
    for folder in (root / "sys/block" / disk for disk in disks):
        who, vendor = identity(folder, root), word(folder / "device/vendor")
        # libata reports the vendor ATA for every disk, and NVMe a PCI id: neither belongs to the
        # model.
        known = vendor and not vendor.startswith("0x") and vendor != "ATA" and who.model
        for key, value in (
            ("serial", who.serial),
            ("model", f"{vendor} {who.model}" if known else who.model),
            ("rotational", word(folder / "queue/rotational")),
            ("logical_sector", word(folder / "queue/logical_block_size")),
            ("physical_sector", word(folder / "queue/physical_block_size")),
        ):
            columns.setdefault(key, []).append(value)
    sectors = number_in(root / "sys/class/block" / name.replace("/", "!") / "size")
    facts = {"device": name, "size": str(sectors * SECTOR) if sectors else ""}
    facts |= {key: " ".join(dict.fromkeys(filter(None, row))) for key, row in columns.items()}
    return {key: value for key, value in facts.items() if value}
