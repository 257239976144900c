"""The devices below leaves: I/O counters, disks and their slots, and enclosures.

Counters are rows of /proc/diskstats. A recording may come from anyone: values of an unexpected type
count as unknown, and text is cleaned of control characters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import add, itemgetter
from typing import Any

from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.pool.model import BlockCounters
from zconsole.system.printable import clean
from zconsole.zfs.decode.values import check_range, mapping
from zconsole.zfs.raw import Raw

_SECTOR = 512
_FIELDS = 14
"""major, minor, name and the eleven counters that every kernel since 2.6.25 has."""
_COUNTED = itemgetter(3, 5, 6, 7, 9, 10, 12)
"""Reads, sectors read, milliseconds reading; writes, sectors written, milliseconds writing;
milliseconds busy."""


LONGEST = 128
"""Longest word that is kept, in characters."""
MOST = 1024
"""Most slots of an enclosure, and most enclosures, that are read."""


REMEMBERED = 4096
"""Disks that are cached: each occurs again in every sample, and cleaning its words takes most of
the time (7 of 8 ms for 1,000 disks)."""

_WORDS = tuple(name for name in LeafDisk._fields if name != "temperature")


@dataclass(frozen=True)
class Enclosures(Collection[Enclosure]):
    """Enclosures that are decoded only when the map of slots needs them, which is seldom."""

    forms: Sequence[Mapping[str, object]]

    def __iter__(self) -> Iterator[Enclosure]:
        return map(_enclosure, self.forms)

    def __len__(self) -> int:
        return len(self.forms)

    def __contains__(self, enclosure: object) -> bool:
        return enclosure in tuple(self)


class Devices:
    """Devices of a raw form: counters and disks by the paths of their leaves, and enclosures.

    Fields of the counters: Documentation/admin-guide/iostats.rst of Linux; sectors of 512 bytes,
    milliseconds.
    """

    def __init__(self, raw: Raw) -> None:
        stats: Any = raw.get("diskstats")
        lines = stats.splitlines() if isinstance(stats, str) else stats
        rows = lines if isinstance(lines, list | tuple) else ()
        # A recording may have rows as lines of text.
        split = (row.split() if isinstance(row, str) else row for row in rows)
        self._rows = {
            row[2]: row for row in split if isinstance(row, list | tuple) and len(row) >= _FIELDS
        }
        self._blocks: Mapping[str, Sequence[str]] = raw.get("devices") or {}
        """Leaf path to the names in ``_rows`` that count its I/O."""
        disks, shelves = raw.get("disks"), raw.get("enclosures")
        forms = disks.items() if isinstance(disks, Mapping) else ()
        self.disks = {path: _disk(form) for path, form in forms if isinstance(form, Mapping)}
        found = shelves[:MOST] if isinstance(shelves, list | tuple) else ()
        self.enclosures = Enclosures([each for each in found if isinstance(each, Mapping)])
        """Enclosures of the machine."""
        self.names: Mapping[str, str] = mapping(raw.get("names"), "names")
        """Path to the name that zpool prints, if the form has only one of them."""

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Printed name to path."""
        return {name: path for path, name in self.names.items()}

    def counters(self, path: str) -> BlockCounters | None:
        """Return the counters for a leaf path; without ``devices`` the name after /dev is tried."""
        names = self._blocks.get(path) or (path.removeprefix("/dev/"),)
        known = tuple([name for name in names if name in self._rows])
        if not known:
            return None
        counts = list(map(int, _COUNTED(self._rows[known[0]])))
        for name in known[1:]:
            # Busy times are added, too: the paths to a multipath disk take turns, so they do not
            # overlap, neither now nor in the totals since boot.
            counts = list(map(add, counts, map(int, _COUNTED(self._rows[name]))))
        check_range(counts, "diskstats")
        reads, sectors_read, reading, writes, sectors_written, writing, busy = counts
        return BlockCounters(
            known,
            reads,
            sectors_read * _SECTOR,
            reading / 1000,
            writes,
            sectors_written * _SECTOR,
            writing / 1000,
            busy / 1000,
        )

    def all_counters(self) -> dict[str, BlockCounters | None]:
        """Return the counters of every path in ``devices``; None for a device that has left."""
        return {path: self.counters(path) for path in self._blocks}


def _disk(found: Mapping[str, object]) -> LeafDisk:
    degrees = found.get("temperature")
    known = isinstance(degrees, int | float) and math.isfinite(degrees)
    words = [value if isinstance(value, str) else "" for value in map(found.get, _WORDS)]
    return _made(degrees if known else None, *words)


@lru_cache(maxsize=REMEMBERED)
def _made(degrees: float | None, *words: str) -> LeafDisk:
    named: dict[str, Any] = dict(zip(_WORDS, map(_word, words), strict=True))
    return LeafDisk(**named, temperature=degrees)


def _enclosure(found: Mapping[str, object]) -> Enclosure:
    slots = found.get("slots")
    rows = slots[:MOST] if isinstance(slots, list | tuple) else ()
    places = []
    for row in rows:
        if isinstance(row, list | tuple) and len(row) > 1:
            number, name, *disks = row
            known = isinstance(number, int) and not isinstance(number, bool)
            words = tuple(map(_word, disks[:MOST]))
            places.append(Slot(_word(name), number if known else None, words))
    return Enclosure(_word(found.get("key")), _word(found.get("name")), tuple(places))


def _word(value: object) -> str:
    return clean(value)[:LONGEST] if isinstance(value, str) else ""


def disk_form(disk: LeafDisk) -> dict[str, Any]:
    """Convert a disk to its raw form: the fields that are known."""
    return {key: value for key, value in disk._asdict().items() if value not in ("", None)}


def enclosure_form(found: Enclosure) -> dict[str, Any]:
    """Convert an enclosure to its raw form."""
    slots = [[slot.number, slot.name, *slot.disks] for slot in found.slots]
    return {"key": found.key, "name": found.name, "slots": slots}
