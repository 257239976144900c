"""What was there before we changed it: one file, shared by every console of the machine.

It belongs to one boot and one load of the module; after either, every parameter is at its default
again and what was remembered means nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from zconsole.system.record_file import MOST_BYTES, LockedRecord, LockedStore
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError

NAME = "tunables.json"
PILOT = "autopilot.lock"
"""The machine's autopilot: locked while it runs, with the mark of the newest one."""
KEPT_CHANGES = 500
"""Changes kept for the rate timeline."""

PATIENCE = 10.0
"""Seconds to wait while another console changes a parameter."""
HURRY = 1.0
"""Seconds to wait before values are put back, which then goes ahead without the lock."""


@dataclass(frozen=True, slots=True)
class SavedTunable:
    """One parameter we have set."""

    original: int
    """What it was before the first console changed it."""
    value: int
    """What we set it to; anything else found there was set by somebody else."""
    t: float
    owner: str | None = None
    """The console that set it (``pid:start``); None when it was set to stay (command line)."""
    until: str | None = None
    """GUID of the pool at whose scan's end it is to be put back."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write, for the timeline of rates: when, what, from and to."""

    t: float
    name: str
    before: int | None
    after: int


@dataclass(slots=True)
class SavedTunables:
    """The file's contents while it is locked; saved when changed, and on demand before that."""

    era: str
    values: dict[str, SavedTunable] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    pilot: str = ""
    """The mark of the newest autopilot, running or not; empty where there never was one."""
    save: Callable[[], None] = lambda: None
    """Returns when it survives a death and a power cut. Raises StateError."""

    def has_set(self, name: str, live: int | None) -> bool:
        """Whether a live value is one that we set.

        Mostly it is the one kept. But that is written before the kernel gets it: set from 3000 to
        4000, then to 5000 and killed in between, the file says 5000 (of 3000) and the kernel has
        4000, to which the newest change was. A death before the very first write leaves the
        original there, which nobody set.
        """
        entry = self.values.get(name)
        if entry is None or live == entry.value:
            return entry is not None
        written = next((c.after for c in reversed(self.changes) if c.name == name), None)
        return live is not None and live == written and live != entry.original

    def copy(self) -> SavedTunables:
        """Return a copy that can be changed by itself."""
        return SavedTunables(self.era, dict(self.values), list(self.changes), self.pilot)


class TunableStore:
    """The file in the state directory, locked while it is read and changed.

    A directory that doesn't answer is given up: then the contents are those that were read last.
    """

    def __init__(self, directory: Path | None, pilot: str = "", shared: int | None = None) -> None:
        """Without a directory, all is kept in memory: for a simulated kernel.

        ``pilot`` is the mark of its autopilot. ``shared`` is an open file in memory, by which a
        process knows what another one knew last: the keeper's parent what its child had set.
        """
        path = directory and directory / NAME
        self._file = LockedRecord(_File("", {}, ()), path, f"{NAME}.lock", PATIENCE)
        self._store = LockedStore(directory)
        self._shared = shared
        self._last = SavedTunables("", pilot=pilot) if shared is None else _recalled(shared)

    @contextlib.contextmanager
    def open(self, era: str, patience: float = PATIENCE) -> Iterator[SavedTunables]:
        """What was set in this era, to read and change by one at a time; written back if changed.

        ``patience`` is the seconds to wait for one's turn. What was set in another era counts no
        more. Raises StateError when the directory is not ours to write or doesn't answer, when
        another process keeps the lock, or as `read`: what can't be read is not written over.
        """
        with self._file.open(patience) as write:
            found = self.read(era)
            saved = _file(found)

            def _save() -> None:
                nonlocal saved
                if (changed := _file(found)) != saved:
                    write(changed)
                    saved = changed
                    self._remember(found.copy())

            found.save = _save
            try:
                yield found
            finally:
                _save()

    def peek(self, era: str, must_know: bool = False) -> SavedTunables:
        """What was set in this era, only to be read; without a lock.

        As it was read last where it cannot be read now, and empty where nothing was set.
        ``must_know``: raises StateError, OSError where it was never read.
        """
        try:
            return self.read(era)
        except (OSError, StateError):
            if must_know and not self._last.era:
                raise
        return self._last_in(era)

    def read(self, era: str) -> SavedTunables:
        """As `peek`. Raises StateError where it can't be read now: it hangs, or is damaged."""
        file, pilot = self._file.read(), self._newest_pilot()
        self._remember(SavedTunables(file.era, dict(file.values), list(file.changes), pilot))
        return self._last_in(era)

    def _last_in(self, era: str) -> SavedTunables:
        same = self._last.era == era
        return self._last.copy() if same else SavedTunables(era, pilot=self._last.pilot)

    def _remember(self, found: SavedTunables) -> None:
        self._last = found
        if self._shared is not None:
            newest = {c.name: c for c in found.changes if c.name in found.values}
            file = _File(found.era, found.values, tuple(newest.values()))
            os.pwrite(self._shared, json.dumps(asdict(file)).encode("ascii") + b"\n", 0)

    def _newest_pilot(self) -> str:
        if self._store.directory is None:
            return self._last.pilot
        try:
            return self._store.read_file(PILOT, lambda _, data: data.decode("ascii").strip(), 100)
        except (OSError, StateError):
            return ""


@dataclass(frozen=True, slots=True)
class _File:
    """The file's contents."""

    era: str
    values: Mapping[str, SavedTunable]
    changes: tuple[Change, ...]
    version: int = 1


def _recalled(shared: int) -> SavedTunables:
    """What was remembered there last; nothing where a process died as it wrote the first."""
    line = os.pread(shared, MOST_BYTES, 0).partition(b"\n")[0]
    try:
        file = from_json(_File, parse_json(line))
    except ValueError:
        return SavedTunables("")
    return SavedTunables(file.era, dict(file.values), list(file.changes))


def _file(saved: SavedTunables) -> _File:
    return _File(saved.era, dict(saved.values), tuple(saved.changes[-KEPT_CHANGES:]))
