"""Where disks sit: a leaf's disk, and enclosures with their slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LeafDisk(NamedTuple):
    """The disk below a leaf: where it sits, and what tells it from others; empty is unknown.

    A leaf on several disks has the words of all of them; multipath members are one disk.
    """

    bay: str = ""
    """The place as people call it: an alias by place, else enclosure and slot."""
    enclosure: str = ""
    """What tells the enclosure from others; empty for a slot of the machine itself."""
    slot: str = ""
    """The slot's own name."""
    port: str = ""
    """The by-path name of where it is plugged in."""
    serial: str = ""
    wwn: str = ""
    model: str = ""
    temperature: float | None = None
    """Degrees Celsius."""

    def words(self, besides: str = "") -> str:
        """``bay A12, serial ZC1A2B3C``, as far as it is known and not said in ``besides``."""
        said = any(word in self.bay.lower() for word in ("bay", "slot"))
        place = self.bay if said else f"bay {self.bay}"
        known = ((self.bay, place), (self.serial, f"serial {self.serial}"))
        return ", ".join(words for what, words in known if what and what not in besides)


class Slot(NamedTuple):
    """A place for one disk."""

    name: str
    """As the enclosure calls it, unique in it."""
    number: int | None = None
    disks: tuple[str, ...] = ()
    """What the kernel calls the disk in it, a name for each path to it; () is an empty slot."""
    folders: tuple[str, ...] = ()
    """Its folders in /sys, one for each path to the enclosure; () of what was recorded."""

    @property
    def label(self) -> str:
        """``slot 7`` where the enclosure only has numbers, else its name."""
        if self.name.isdigit():
            return f"slot {self.name if self.number is None else self.number}"
        return self.name


class Enclosure(NamedTuple):
    """A shelf, or the bays of a machine, with its slots as they lie."""

    key: str
    """What tells it from others: its id, else its SCSI address; empty for NVMe slots."""
    name: str
    """Vendor and model."""
    slots: tuple[Slot, ...] = ()
    """In the order of their numbers."""


SlotKey = tuple[str, str]
"""Key of the enclosure and name of the slot."""


class SlotLights(NamedTuple):
    """What an enclosure says of a slot when asked; None is unknown."""

    fault: bool | None = None
    locate: bool | None = None
    status: str = ""
    """``OK``, ``not installed``, ``critical``, …; empty is unknown."""


Lights = Mapping[SlotKey, SlotLights]
