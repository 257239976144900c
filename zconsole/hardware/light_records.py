"""What is known of lights that are on: one file, shared by every console of the machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from zconsole.hardware.led import LedSlot
from zconsole.system.record_file import LockedRecord

NAME, LOCK = "lights.json", "lights.lock"
PATIENCE = 25.0
"""Seconds to wait while another console switches a light."""


@dataclass(frozen=True, slots=True)
class LitSlot:
    """A light that was switched on here."""

    slot: LedSlot
    serial: str
    """Serial number of the disk that was in the bay then; empty: unknown."""
    bay: str
    """What people call the bay."""
    t: float
    """Epoch seconds at which it was lit."""
    until: float
    """Epoch seconds at which what was found is put back."""
    before: bool
    """Whether it was on already when it was lit first."""
    boot: str
    """The boot in which it was lit last."""
    confirmed: bool = True
    """Whether the enclosure said that it is on: only then does "off" mean that somebody did it."""

    @property
    def name(self) -> str:
        """The bay, and the disk that was in it."""
        return f"{self.bay} (serial {self.serial})" if self.serial else self.bay

    @property
    def words(self) -> str:
        """What lighting it came to."""
        said = f"the light of {self.name} is on"
        if self.before:
            said += "; it was on before, and stays on at the end"
        if not self.confirmed:
            said += "; the enclosure doesn't confirm it: look at the bay"
        return said


Records = dict[tuple[str, str], LitSlot]


@dataclass(frozen=True, slots=True)
class _File:
    lights: tuple[LitSlot, ...]
    version: int = 1


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The records while they are locked."""

    records: Records
    _write: Callable[[_File], None]

    def put(self, record: LitSlot) -> None:
        """Keep a record; on the disk when this returns. Raises StateError."""
        self.records[record.slot.key] = record
        self._write(_File(tuple(self.records.values())))

    def drop(self, record: LitSlot) -> None:
        """Forget a record. Raises StateError."""
        del self.records[record.slot.key]
        self._write(_File(tuple(self.records.values())))


class LightRecords:
    """The file in the state directory, locked while it is changed."""

    def __init__(self, directory: Path) -> None:
        self._file = LockedRecord(_File(()), directory / NAME, LOCK, PATIENCE)

    def read(self) -> Records:
        """The records as they are now, without a lock. Raises StateError for a damaged file."""
        return {record.slot.key: record for record in self._file.read().lights}

    @contextlib.contextmanager
    def open(self) -> Iterator[OpenRecords]:
        """The records, to be read and changed by one at a time. Raises StateError."""
        with self._file.open() as write:
            yield OpenRecords(self.read(), write)
