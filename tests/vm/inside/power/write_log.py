"""A log of dm-log-writes, read and replayed (format: drivers/md/dm-log-writes.c of Linux)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = 0x6A736677736872
VERSION = 1
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")
_PIECE = 1 << 20


class LogError(Exception):
    """The data read is not a dm-log-writes log."""


@dataclass(frozen=True)
class Entry:
    """One write, or a flush without data; all numbers are bytes."""

    place: int
    """Offset on the device."""
    length: int
    data: int
    """Offset of its data in the log."""
    flags: int

    @property
    def waited_for(self) -> bool:
        """Return whether its sender was promised that it and all earlier entries are on disk."""
        return bool(self.flags & (FLUSH | FUA))


def entries(log: int) -> list[Entry]:
    """Return all entries of a log, in order. Raises LogError."""
    magic, version, count, sector = _SUPER.unpack(os.pread(log, _SUPER.size, 0))
    if (magic, version) != (MAGIC, VERSION):
        raise LogError(f"no log of writes: magic {magic:#x}, version {version}")
    return list(_entries(log, count, sector))


def _entries(log: int, count: int, sector: int) -> Iterator[Entry]:
    at = sector
    for _ in range(count):
        place, sectors, flags, _length = _ENTRY.unpack(os.pread(log, _ENTRY.size, at))
        at += sector
        yield Entry(place * sector, sectors * sector, at, flags)
        if not flags & (DISCARD | MARK):
            at += sectors * sector


def points(found: Sequence[Entry]) -> list[int]:
    """Return how many entries are on the disk at each flush and FUA write, and at the end.

    Of several without a write in between, which leave the same disk, only the first is included.
    """
    ends, changed = [], False
    for number, entry in enumerate(found, 1):
        changed = changed or writes(entry)
        if changed and (entry.waited_for or number == len(found)):
            ends.append(number)
            changed = False
    return ends


def writes(entry: Entry) -> bool:
    """Return whether an entry changes the device; discarded blocks have undefined contents."""
    return entry.length > 0 and not entry.flags & (DISCARD | MARK)


def replay(log: int, device: int, found: Sequence[Entry]) -> None:
    """Repeat these writes on a device; returns when they are on disk."""
    for entry in found:
        if not writes(entry):
            continue
        for start in range(0, entry.length, _PIECE):
            piece = os.pread(log, min(_PIECE, entry.length - start), entry.data + start)
            os.pwrite(device, piece, entry.place + start)
    os.fsync(device)
