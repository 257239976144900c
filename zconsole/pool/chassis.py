"""Locations of disks: the disk of a leaf, enclosures with their slots, and the slots' layout.

The layout comes from the configuration: nothing else describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class LeafDisk(NamedTuple):
    """The disk under a leaf: its location and its identity; empty strings are unknown.

    For a leaf on several disks, each field lists all of them; multipath members are one disk.
    """

    bay: str = ""
    """Location for display: an alias by location, otherwise enclosure and slot."""
    enclosure: str = ""
    """Key of the enclosure; empty for a slot of the machine itself."""
    slot: str = ""
    """Name of the slot."""
    port: str = ""
    """Name in /dev/disk/by-path of the port it is plugged into."""
    serial: str = ""
    wwn: str = ""
    model: str = ""
    temperature: float | None = None
    """Degrees Celsius."""
    hubs: str = ""
    """Hubs on the way to it, which other disks may share, nearest first, separated by commas.

    By the kernel's names: ``expander-0:1``, ``ata3`` (several disks: a port multiplier), ``host7``
    (of Fibre Channel, a port), ``usb-2-1``.
    """

    def called(self, name: str) -> str:
        """Return how to find the disk of the device ``name`` by hand: ``Slot 05 (serial ZC1A)``.

        Without a bay, ``name`` is used; a serial number or WWN that it contains is not repeated.
        """
        mark = f"serial {self.serial}" if self.serial else self.wwn and f"WWN {self.wwn}"
        spot = self.bay or name
        return f"{spot} ({mark})" if mark and (self.serial or self.wwn) not in spot else spot

    def words(self, besides: str = "") -> str:
        """Return ``bay A12, serial ZC1A2B3C``, without unknown parts and those in ``besides``."""
        said = any(word in self.bay.lower() for word in ("bay", "slot"))
        place = self.bay if said else f"bay {self.bay}"
        known = ((self.bay, place), (self.serial, f"serial {self.serial}"))
        return ", ".join(words for what, words in known if what and what not in besides)


class Slot(NamedTuple):
    """A slot for one disk."""

    name: str
    """Name given by the enclosure, unique within it."""
    number: int | None = None
    disks: tuple[str, ...] = ()
    """Kernel names of the disk in it, one per path; () for an empty slot."""
    folders: tuple[str, ...] = ()
    """Its directories in /sys, one per path to the enclosure; () in a recording."""

    @property
    def label(self) -> str:
        """``slot 7`` if the enclosure only has numbers, otherwise its name."""
        if self.name.isdigit():
            return f"slot {self.name if self.number is None else self.number}"
        return self.name


class Enclosure(NamedTuple):
    """A shelf, or the bays of a machine, with its slots."""

    key: str
    """Identifies it: its id, otherwise its SCSI address; empty for NVMe slots."""
    name: str
    """Vendor and model."""
    slots: tuple[Slot, ...] = ()
    """Slots in the order of their numbers."""


SlotKey = tuple[str, str]
"""Key of the enclosure and name of the slot."""


class SlotLights(NamedTuple):
    """State of a slot as its enclosure reports it; None is unknown."""

    fault: bool | None = None
    locate: bool | None = None
    status: str = ""
    """``OK``, ``not installed``, ``critical``, …; empty is unknown."""


Lights = Mapping[SlotKey, SlotLights]


LARGEST = 100
"""Most columns or rows: several times those of any chassis."""
BY_ROW, BY_COLUMN = "by-row", "by-column"
FROM_TOP, FROM_BOTTOM = "from-top", "from-bottom"
EXAMPLE = '"SAS3x40: 4x6 by-column from-bottom"'
_EITHER = ({BY_ROW, BY_COLUMN}, {FROM_TOP, FROM_BOTTOM})
_FORM = re.compile(
    r"(?P<name>.*\S) *: *(?P<columns>\d{1,3})x(?P<rows>\d{1,3})(?P<words>( +[a-z-]+)*)"
)


class ChassisLayout(NamedTuple):
    """Columns and rows of an enclosure's slots, and the position of the first slot."""

    name: str
    """Id of the enclosure, or part of the vendor and model of the enclosures meant."""
    columns: int
    rows: int
    by_column: bool = False
    """Whether the second slot is above or below the first one, rather than next to it."""
    from_bottom: bool = False
    """Whether the first slot is in the lowest row."""

    def grid(self, slots: int) -> tuple[tuple[int | None, ...], ...]:
        """Return the indices of the slots row by row; None where there is no slot.

        Slots beyond columns × rows follow as another block below, such as the next drawer.
        """
        size = self.columns * self.rows
        starts = range(0, slots, size)
        return tuple(row for start in starts for row in self._block(start, slots))

    def _block(self, start: int, slots: int) -> Iterable[tuple[int | None, ...]]:
        rows = range(self.rows)
        for row in reversed(rows) if self.from_bottom else rows:
            # By how much the number changes from one slot to the one below, and to the right.
            down, right = (1, self.rows) if self.by_column else (self.columns, 1)
            numbers = (start + row * down + column * right for column in range(self.columns))
            yield tuple(number if number < slots else None for number in numbers)


def parse_layout(text: str) -> ChassisLayout:
    """Parse a layout such as ``SAS3x40: 4x6 by-column from-bottom``. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    words = found["words"].split() if found else []
    # Refuse contradictory words: a wrong map leads to the wrong disk.
    known = {*words} <= set[str]().union(*_EITHER) and not any(two <= {*words} for two in _EITHER)
    columns, rows = (int(found["columns"]), int(found["rows"])) if found else (0, 0)
    if found is None or not known or not 0 < columns <= LARGEST or not 0 < rows <= LARGEST:
        raise ValueError(f"must be layouts such as {EXAMPLE}, not {text!r}")
    return ChassisLayout(found["name"], columns, rows, BY_COLUMN in words, FROM_BOTTOM in words)


def layout_of(layouts: Sequence[str], enclosure: Enclosure) -> ChassisLayout | None:
    """Find the layout of an enclosure by its id, else by vendor and model; None if none fits."""
    known = [parse_layout(text) for text in layouts]
    by_id = (each for each in known if enclosure.key and each.name == enclosure.key)
    by_model = (each for each in known if each.name.lower() in enclosure.name.lower())
    return next(by_id, None) or next(by_model, None)
