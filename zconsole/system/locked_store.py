"""Files of one's own in the state directory: one process writes what all may read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from zconsole.system import state_dir
from zconsole.system.async_writer import Write
from zconsole.system.patient import Patient


@dataclass(slots=True)
class LockedStore:
    """Where such files are; with ``directory`` None none are written."""

    directory: Path | None
    readable: Sequence[Path] = ()
    """Directories they are read from, the first that has one; that one alone when empty."""
    write: Write = state_dir.write_private
    patient: Patient = field(default_factory=Patient)
    """Asks the disk whatever is waited for."""
    _locks: dict[str, int | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.readable = tuple(self.readable) or ((self.directory,) if self.directory else ())

    def mine(self, lock: str) -> bool:
        """Whether this process holds a lock file, or got it now. Raises StateError."""
        if self._locks.get(lock) is None and self.directory is not None:
            attempt = partial(state_dir.try_lock, self.directory / lock)
            self._locks[lock] = self.patient.call(attempt, late=_let_go)
        return self._locks.get(lock) is not None

    def close(self) -> None:
        """Let go of every lock."""
        for handle in self._locks.values():
            _let_go(handle)
        self._locks.clear()


def _let_go(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)
