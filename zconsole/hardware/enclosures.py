"""Enclosures and their slots, from the kernel's ``enclosure`` class and PCI hot plug.

Formats: drivers/misc/enclosure.c and drivers/scsi/ses.c; drivers/pci/slot.c for NVMe.
``enclosures`` reads only data in the kernel's memory. ``fault``, ``locate`` and ``status`` are
different: each read of them asks the enclosure itself (``ses_get_fault`` and others), so they are
read only on request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from zconsole.hardware.sysfs import names_in, real, tidy, word
from zconsole.pool.chassis import Enclosure, Lights, Slot, SlotLights
from zconsole.system.host import ROOT, number_in

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
