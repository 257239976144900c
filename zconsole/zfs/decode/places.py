"""Where disks sit, from the ``disks`` and ``enclosures`` of a raw form.

A recording may have been made by anybody: what has another shape is unknown, and text is cleaned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.system.printable import clean
from zconsole.zfs.decode.memory import SourceMemory
from zconsole.zfs.raw import Raw

LONGEST = 128
"""Characters kept of a word."""
MOST = 1024
"""Slots of an enclosure, and enclosures, that are looked at."""

_WORDS = tuple(name for name in LeafDisk._fields if name != "temperature")


def disks_of(raw: Raw, memory: SourceMemory | None = None) -> Mapping[str, LeafDisk]:
    """Leaf path to the disk below it."""
    found = raw.get("disks")
    if not isinstance(found, Mapping):
        return {}
    memory, pool = memory or SourceMemory(), raw.get("pool")
    forms, known = memory.disks(pool)
    if found != forms:
        known = {
            path: known[path] if path in known and forms[path] == each else _disk(each)
            for path, each in found.items()
            if isinstance(each, Mapping)
        }
        memory.keep_disks(pool, found, known)
    return known


def enclosures_of(raw: Raw, memory: SourceMemory | None = None) -> tuple[Enclosure, ...]:
    """The machine's enclosures."""
    found = raw.get("enclosures")
    memory = memory or SourceMemory()
    known = memory.enclosures(found)
    if known is not None:
        return known
    rows = found[:MOST] if isinstance(found, list | tuple) else ()
    made = tuple(_enclosure(each) for each in rows if isinstance(each, Mapping))
    return memory.keep_enclosures(found, made)


def _disk(found: Mapping[str, Any]) -> LeafDisk:
    degrees = found.get("temperature")
    if not isinstance(degrees, int | float) or not math.isfinite(degrees):
        degrees = None
    words: dict[str, Any] = {name: _word(found.get(name)) for name in _WORDS}
    return LeafDisk(**words, temperature=degrees)


def _enclosure(found: Mapping[str, Any]) -> Enclosure:
    slots = found.get("slots")
    rows = slots[:MOST] if isinstance(slots, list | tuple) else ()
    return Enclosure(_word(found.get("key")), _word(found.get("name")), tuple(_slots(rows)))


def _slots(rows: object) -> Iterator[Slot]:
    for row in rows if isinstance(rows, list | tuple) else ():
        if isinstance(row, list | tuple) and len(row) > 1:
            number, name, *disks = row
            known = isinstance(number, int) and not isinstance(number, bool)
            yield Slot(_word(name), number if known else None, tuple(map(_word, disks[:MOST])))


def _word(value: object) -> str:
    return clean(value)[:LONGEST] if isinstance(value, str) else ""
