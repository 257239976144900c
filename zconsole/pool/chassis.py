"""Where disks sit: a leaf's disk, enclosures with their slots, and how these lie.

The last is as the configuration says it: nothing else tells that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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

    def called(self, name: str) -> str:
        """How people call the disk of the device ``name``: ``Slot 05 (serial ZC1A)``.

        Without a bay it is called by its name; a mark that stands there already is not repeated.
        """
        mark = f"serial {self.serial}" if self.serial else self.wwn and f"WWN {self.wwn}"
        spot = self.bay or name
        return f"{spot} ({mark})" if mark and (self.serial or self.wwn) not in spot else spot

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


LARGEST = 100
"""Columns or rows at most: several times those of any chassis."""
BY_ROW, BY_COLUMN = "by-row", "by-column"
FROM_TOP, FROM_BOTTOM = "from-top", "from-bottom"
EXAMPLE = '"SAS3x40: 4x6 by-column from-bottom"'
_EITHER = ({BY_ROW, BY_COLUMN}, {FROM_TOP, FROM_BOTTOM})
_FORM = re.compile(
    r"(?P<name>.*\S) *: *(?P<columns>\d{1,3})x(?P<rows>\d{1,3})(?P<words>( +[a-z-]+)*)"
)


class ChassisLayout(NamedTuple):
    """Columns and rows of an enclosure's slots, and where the first slot is."""

    name: str
    """The id of the enclosures meant, or a part of their vendor and model."""
    columns: int
    rows: int
    by_column: bool = False
    """Whether the second slot is above or below the first one, and not beside it."""
    from_bottom: bool = False
    """Whether the first slot is in the lowest row."""

    def grid(self, slots: int) -> tuple[tuple[int | None, ...], ...]:
        """The indices of the slots row by row, None where a place has no slot.

        What is more than fits follows as another block below, as the next drawer.
        """
        size = self.columns * self.rows
        starts = range(0, slots, size)
        return tuple(row for start in starts for row in self._block(start, slots))

    def _block(self, start: int, slots: int) -> Iterable[tuple[int | None, ...]]:
        rows = range(self.rows)
        for row in reversed(rows) if self.from_bottom else rows:
            down, right = (1, self.rows) if self.by_column else (self.columns, 1)
            numbers = (start + row * down + column * right for column in range(self.columns))
            yield tuple(number if number < slots else None for number in numbers)


def parse_layout(text: str) -> ChassisLayout:
    """A layout as it is written: ``SAS3x40: 4x6 by-column from-bottom``. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    words = found["words"].split() if found else []
    # Of contradictory words none can be meant: a wrong map leads to the wrong disk.
    known = {*words} <= set[str]().union(*_EITHER) and not any(two <= {*words} for two in _EITHER)
    columns, rows = (int(found["columns"]), int(found["rows"])) if found else (0, 0)
    if found is None or not known or not 0 < columns <= LARGEST or not 0 < rows <= LARGEST:
        raise ValueError(f"must be layouts such as {EXAMPLE}, not {text!r}")
    return ChassisLayout(found["name"], columns, rows, BY_COLUMN in words, FROM_BOTTOM in words)


def layout_of(layouts: Sequence[str], enclosure: Enclosure) -> ChassisLayout | None:
    """The layout of an enclosure: by its id, else by vendor and model; None where none is said."""
    known = [parse_layout(text) for text in layouts]
    by_id = (each for each in known if enclosure.key and each.name == enclosure.key)
    by_model = (each for each in known if each.name.lower() in enclosure.name.lower())
    return next(by_id, None) or next(by_model, None)
