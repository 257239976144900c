"""The original values of tunables that were changed: one file for all consoles of the machine.

It belongs to one era, that is, one boot and one load of the module: after either, every parameter
is at its default again, and the saved values mean nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from zconsole.system.record_file import MOST_BYTES, LockedRecord, LockedStore, encoded
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError

NAME = "tunables.json"
PILOT = "autopilot.lock"
"""File with the mark of the machine's newest autopilot, locked while that runs."""
KEPT_CHANGES = 500
"""Changes kept for the rate timeline."""

PATIENCE = 10.0
"""Seconds to wait for the lock while another console changes a parameter."""
HURRY = 1.0
"""Seconds to wait for the lock before values are restored, which then goes on without it."""


@dataclass(frozen=True, slots=True)
class SavedTunable:
    """One parameter that we have set."""

    original: int
    """Value before the first console changed it."""
    value: int
    """Value that we set; any other live value was set by somebody else."""
    t: float
    """When it was set (epoch seconds)."""
    owner: str | None = None
    """Mark (``pid:start``) of the console that set it; None if set to stay (command line)."""
    until: str | None = None
    """GUID of the pool at the end of whose scan it is to be restored."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write, for the timeline of rates: time, name, value before and after."""

    t: float
    name: str
    before: int | None
    after: int


@dataclass(slots=True)
class SavedTunables:
    """The content of the file, for the time that it is locked; saved at the end, or by ``save``."""

    era: str
    values: dict[str, SavedTunable] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    pilot: str = ""
    """The mark of the newest autopilot, running or not; empty where there never was one."""
    save: Callable[[], None] = lambda: None
    """Saves the content durably; it survives a power cut once this returns. Raises StateError."""

    def has_set(self, name: str, live: int | None) -> bool:
        """Whether a live value is one that we set.

        Usually it is the value saved. But that is saved before the kernel gets it. Example: a
        value is set from 3000 to 4000, then to 5000, and the process is killed before the kernel
        has that. The file has 5000 (original 3000), and the kernel has 4000, the value of the
        newest change. If it is killed before the very first write, the original is live, which
        nobody set.
        """
        entry = self.values.get(name)
        if entry is None or live == entry.value:
            return entry is not None
        written = next((c.after for c in reversed(self.changes) if c.name == name), None)
        return live is not None and live == written and live != entry.original


class TunableStore:
    """The file in the state directory, locked while it is read and changed.

    If the directory doesn't answer, the content that was read last is used.
    """

    def __init__(self, directory: Path | None, pilot: str = "", shared: int | None = None) -> None:
        """Without a directory, everything is kept in memory: for a simulated kernel.

        ``pilot`` is the mark of its autopilot. ``shared`` is an open file in memory with the newest
        content: if the keeper's child process is killed, its parent finds there what that had set.
        """
        path = directory and directory / NAME
        self._file = LockedRecord(_File("", {}, ()), path, f"{NAME}.lock", PATIENCE)
        self._store = LockedStore(directory)
        self._shared = shared
        self._pilot = pilot
        if shared is not None:
            self._file.last = _recalled(shared)

    @contextlib.contextmanager
    def open(self, era: str, patience: float = PATIENCE) -> Iterator[SavedTunables]:
        """Lock and read the values set in this era; they are saved at the end if changed.

        ``patience``: seconds to wait for the lock. Values set in another era are dropped. Raises
        StateError if the directory is not ours to write or doesn't answer, if another process keeps
        the lock, or as `read` does: a file that can't be read is not overwritten.
        """
        with self._file.open(patience) as write:
            found = self.read(era)
            saved = _file(found)

            def _save() -> None:
                nonlocal saved
                if (changed := _file(found)) != saved:
                    write(changed)
                    saved = changed
                    self._share(changed)

            found.save = _save
            try:
                yield found
            finally:
                _save()

    def peek(self, era: str, must_know: bool = False) -> SavedTunables:
        """Return the values set in this era, for reading only, without a lock.

        If the file can't be read now, they are those read last; empty if nothing was set. With
        ``must_know``, raises StateError or OSError if it was never read.
        """
        try:
            return self.read(era)
        except (OSError, StateError):
            if must_know and not self._file.last.era:
                raise
        return self._last_in(era)

    def read(self, era: str) -> SavedTunables:
        """Read the values set in this era, without a lock.

        Returns those read last if the file was removed. Raises StateError if the file can't be read
        now: the disk hangs, or the file is damaged.
        """
        if (file := self._file.read()).era:
            self._pilot = self._newest_pilot()
            self._share(file)
        # Else it was never made, or removed, and not by us: what it held is still set.
        return self._last_in(era)

    def _last_in(self, era: str) -> SavedTunables:
        last, found = self._file.last, SavedTunables(era, pilot=self._pilot)
        if last.era == era:
            found.values, found.changes = dict(last.values), list(last.changes)
        return found

    def _share(self, file: _File) -> None:
        if self._shared is not None:
            # Of the changes, `has_set` needs only the newest of each tunable.
            newest = {c.name: c for c in file.changes if c.name in file.values}
            kept = replace(file, changes=tuple(newest.values()))
            os.pwrite(self._shared, encoded(kept) + b"\n", 0)

    def _newest_pilot(self) -> str:
        if self._store.directory is None:
            return self._pilot
        try:
            return self._store.read_file(PILOT, lambda _, data: data.decode("ascii").strip(), 100)
        except (OSError, StateError):
            return ""


@dataclass(frozen=True, slots=True)
class _File:
    """The content of the file, as it is written."""

    era: str
    values: Mapping[str, SavedTunable]
    changes: tuple[Change, ...]
    version: int = 1


def _recalled(shared: int) -> _File:
    """Return the content in a shared file in memory; empty if there is none, or it is incomplete.

    It is incomplete if a process was killed while it wrote the first.
    """
    line = os.pread(shared, MOST_BYTES, 0).partition(b"\n")[0]
    try:
        return from_json(_File, parse_json(line))
    except ValueError:
        return _File("", {}, ())


def _file(saved: SavedTunables) -> _File:
    return _File(saved.era, dict(saved.values), tuple(saved.changes[-KEPT_CHANGES:]))
