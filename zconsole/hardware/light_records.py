"""What is known of lights that are on: one file, shared by every console of the machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.hardware.led import LedSlot
from zconsole.system.record_file import read_record, write_record
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import StateError, lock_within

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


@dataclass(slots=True)
class OpenRecords:
    """The records while they are locked."""

    records: Records
    path: Path
    saved: list[LitSlot] = field(default_factory=list)

    def put(self, record: LitSlot) -> None:
        """Keep a record; on the disk when this returns. Raises StateError."""
        self.records[record.slot.key] = record
        self.save()

    def drop(self, record: LitSlot) -> None:
        """Forget a record. Raises StateError."""
        self.records.pop(record.slot.key, None)
        self.save()

    def save(self) -> None:
        """Write the file, if anything changed. Raises StateError."""
        lights = list(self.records.values())
        if lights != self.saved:
            write_record(self.path, _File(tuple(lights)))
            self.saved = lights


class LightRecords:
    """The file in the state directory, locked while it is changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / NAME

    def read(self) -> Records:
        """The records as they are now, without a lock. Raises StateError for a damaged file."""
        try:
            file = read_record(_File, self._path)
        except FileNotFoundError:
            return {}
        return {record.slot.key: record for record in file.lights}

    @contextlib.contextmanager
    def open(self) -> Iterator[OpenRecords]:
        """The records, to be read and changed by one at a time. Raises StateError."""
        make_directory(self._directory)
        handle = lock_within(self._directory / LOCK, PATIENCE)
        if handle is None:
            raise StateError("another zconsole has been switching a light for too long; try again")
        try:
            records = self.read()
            yield OpenRecords(records, self._path, list(records.values()))
        finally:
            os.close(handle)
