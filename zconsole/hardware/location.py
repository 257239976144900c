"""Where each disk of the machine sits; what nothing tells stays empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from zconsole.hardware.enclosures import enclosures
from zconsole.hardware.links import (
    PARTITION,
    aliases,
    configured,
    is_by_place,
    names_place,
    ports,
)
from zconsole.hardware.sysfs import names_in, real, tidy, word
from zconsole.pool.chassis import Enclosure, Slot
from zconsole.system.host import ROOT
from zconsole.zfs.sources.blockdev import node_name, slaves

SHORTEST = 4
"""Last digits of an enclosure's id in the name of a bay: what its label shows, too."""


class Location(NamedTuple):
    """Where one disk sits; see LeafDisk."""

    enclosure: str = ""
    slot: str = ""
    bay: str = ""
    port: str = ""


NOWHERE = Location()


@dataclass(frozen=True, slots=True)
class Locations:
    """The places of the machine's disks at one moment."""

    enclosures: tuple[Enclosure, ...] = ()
    by_name: Mapping[str, Location] = field(default_factory=dict)
    """Kernel name of a disk, or of a multipath device with an alias, to where it is."""
    by_slot: Mapping[tuple[str, str], Location] = field(default_factory=dict)
    """Address of an enclosure and the kernel's name of a slot in it to that slot."""
    configured: Mapping[str, str] = field(default_factory=dict)
    """The aliases of vdev_id.conf."""

    def of_leaf(self, path: str, slot: str = "") -> Location:
        """Where the disk of a leaf was that is not there now, by its path.

        ``slot``: its slot's folder in /sys, when its pool was imported.
        """
        *_, address, component = ("", "", *slot.split("/"))
        found = self.by_slot.get((address, component), NOWHERE)
        name = PARTITION.sub("", path.rpartition("/")[2])
        if is_by_place(path):
            ports = {port: alias for alias, port in self.configured.items()}
            return found._replace(bay=tidy(ports.get(name, "")) or found.bay, port=tidy(name))
        if "/by-vdev/" in path and names_place(self.configured.get(name, "")):
            return found._replace(bay=tidy(name))
        return found

    def of(self, names: Iterable[str]) -> Location:
        """Where the disk of these kernel names is: its own, and those of the paths to it."""
        found = [self.by_name[name] for name in names if name in self.by_name]
        return Location(*(next(filter(None, words), "") for words in zip(*found, strict=True)))


def locations(root: Path = ROOT) -> Locations:
    """The places of all disks; asks the kernel only, no disk and no enclosure."""
    found = enclosures(root)
    places, folders = _in_slots(root, found)
    named, plugged = aliases(root), ports(root)
    for disk in dict.fromkeys((*named, *plugged)):
        old = places.get(disk, NOWHERE)
        places[disk] = old._replace(bay=named.get(disk, old.bay), port=plugged.get(disk, old.port))
    by_slot = {(Path(f).parent.name, Path(f).name): where for f, where in folders.items()}
    return Locations(found, places, by_slot, configured(root))


def disks_below(path: str, root: Path = ROOT) -> tuple[tuple[str, ...], ...]:
    """The kernel names of each disk below a leaf's path; a multipath disk has several.

    A disk of several paths begins with the name of the device that joins them.
    """
    name = node_name(path, root)
    return () if name is None else tuple(dict.fromkeys(_below(name.replace("/", "!"), root)))


def is_multipath(name: str, root: Path = ROOT) -> bool:
    """Whether a device-mapper device joins the paths to one disk (``dm/uuid``, multipath-tools)."""
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
) -> tuple[dict[str, Location], dict[str, Location]]:
    """The slots by a disk's kernel name, and by their folder.

    By the enclosures' word, else by that of the disk itself.
    """
    bays = bay_names(found)
    places: dict[str, Location] = {}
    slots: dict[str, Location] = {}
    for enclosure in found:
        for slot in enclosure.slots:
            where = Location(enclosure.key, slot.name, bays[enclosure.key, slot.name])
            places.update(dict.fromkeys(slot.disks, where))
            slots.update(dict.fromkeys(slot.folders, where))
    for disk in names_in(root / "sys/block"):
        own = None if disk in places else _by_disk(root / "sys/block" / disk, slots)
        if own is not None:
            places[disk] = own
    return places, slots


def _by_disk(disk: Path, slots: Mapping[str, Location]) -> Location | None:
    for name in names_in(disk / "device"):
        if name.startswith("enclosure_device:"):
            folder = real(disk / "device" / name)
            known = slots.get(str(folder))
            slot = Slot(tidy(folder.name))
            return known or Location(tidy(folder.parent.name), slot.name, slot.label)
    return None


def bay_names(found: Sequence[Enclosure]) -> Mapping[tuple[str, str], str]:
    """What people call each slot, by the enclosure's key and the slot's name.

    ``Slot 05``; with several enclosures the end of its id before that: ``ee7f Slot 05``.
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
    """What tells enclosures apart: nothing where there is one, else the ends of their ids."""
    if len(keys) < 2:
        return dict.fromkeys(keys, "")
    for length in range(SHORTEST, max(map(len, keys))):
        if len({key[-length:] for key in keys}) == len(keys):
            return {key: key[-length:] for key in keys}
    return {key: key for key in keys}
