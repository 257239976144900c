"""Dataclasses kept as JSON in files of the state directory, which only their owner can change.

A record that several processes change has a lock file beside it, and so have files of one writer.
The disk may hang, perhaps on the very pool that is watched: every call of `LockedRecord` is given
up in time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from zconsole.errors import ZconsoleError
from zconsole.system.patient import Patient, Worker
from zconsole.system.records import from_json, parse_json
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import (
    StateError,
    held_by_another,
    lock_within,
    read_private,
    try_lock,
    write_private,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_BYTES = 1 << 20
ANSWER = 2.0
"""Seconds for the disk to answer."""
WRITTEN = 10.0
"""Seconds for the disk to have what was written: a pool that resilvers may take some."""

Write = Callable[[Path, bytes], None]
"""Replaces the content of a file. Raises StateError."""

_T = TypeVar("_T")
_D = TypeVar("_D", bound="DataclassInstance")


class LockedRecord(Generic[_D]):
    """A dataclass in one file, changed by one process at a time and read by all.

    Without a path it is kept in memory: for a simulated machine.
    """

    def __init__(self, empty: _D, path: Path | None, lock: str, patience: float) -> None:
        """``empty`` stands for a file that is not there; ``lock`` is the name of the lock file.

        ``patience``: seconds to wait while another process holds the lock.
        """
        self._path = path
        self._kept = empty
        """What is in memory, and in place of a file that is not there."""
        self._lock = lock
        self._patience = patience
        self._patient = Patient()

    def read(self) -> _D:
        """The contents now, without the lock.

        Raises StateError where the file is damaged, not private, or the disk doesn't answer.
        """
        if self._path is None:
            return self._kept
        try:
            return self._patient.call(partial(read_record, type(self._kept), self._path), ANSWER)
        except FileNotFoundError:
            return self._kept
        except OSError as error:
            raise StateError(f"{self._path}: {error.strerror}") from error

    @contextlib.contextmanager
    def open(self, patience: float | None = None) -> Iterator[Callable[[_D], None]]:
        """Hold the lock, and give a function that puts new contents in place of the old.

        They are on the disk when it returns. Both raise StateError where the directory isn't there
        and can't be made, isn't ours to write or doesn't answer, or where another process keeps the
        lock. ``patience``: seconds to wait for that instead of the usual ones.
        """
        if self._path is None:
            yield self._keep
            return
        path, seconds = self._path, self._patience if patience is None else patience
        take = partial(_locked, path.with_name(self._lock), seconds)
        lock = self._patient.call(take, seconds + ANSWER, late=os.close)
        try:
            yield lambda new: self._patient.call(partial(_write, path, new, lock), WRITTEN)
        finally:
            os.close(lock)

    def _keep(self, new: _D) -> None:
        self._kept = new


def _locked(path: Path, seconds: float) -> int:
    make_directory(path.parent)
    lock = lock_within(path, seconds)
    if lock is None:
        raise StateError(held_by_another(path, seconds))
    return lock


def _write(path: Path, new: DataclassInstance, lock: int) -> None:
    """Write the file under the lock, however long that takes.

    A write that comes late must not undo what another process wrote meanwhile.
    """
    kept = os.dup(lock)
    try:
        write_record(path, new)
    finally:
        os.close(kept)


@dataclass(slots=True)
class LockedStore:
    """Files of which each has one writer, the process that holds its lock; all read them.

    With ``directory`` None, none are written.
    """

    directory: Path | None
    readable: Sequence[Path] = ()
    """Directories they are read from, the first that has one; that one alone when empty."""
    write: Write = write_private
    patient: Patient = field(default_factory=Patient)
    """Asks the disk whatever is waited for."""
    _locks: dict[str, int | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.readable = tuple(self.readable) or ((self.directory,) if self.directory else ())

    def mine(self, lock: str) -> bool:
        """Whether this process holds a lock file, or got it now. Raises StateError."""
        if self._locks.get(lock) is None and self.directory is not None:
            attempt = partial(try_lock, self.directory / lock)
            self._locks[lock] = self.patient.call(attempt, late=_let_go)
        return self._locks.get(lock) is not None

    def kept(
        self, name: re.Pattern[str], load: Callable[[Path, bytes], _T], most: int
    ) -> Iterator[_T]:
        """The contents of every file of such a name, which may have ``most`` bytes.

        Of files of one name the first counts that ``load`` understands; the others are left out.
        """
        found: set[str] = set()
        for path in (path for place in self.readable for path in files_in(place, name)):
            if path.name not in found:
                with contextlib.suppress(OSError, ValueError, ZconsoleError):
                    content = load(path, read_private(path, most))
                    found.add(path.name)
                    yield content

    def close(self) -> None:
        """Release every lock."""
        for handle in self._locks.values():
            _let_go(handle)
        self._locks.clear()


class AsyncWriter:
    """Writes files in the background: of each, only the newest content."""

    def __init__(self) -> None:
        self._worker = Worker("writer")
        self._waiting: dict[Path, bytes] = {}
        self._failed: dict[Path, StateError] = {}

    def write(self, path: Path, data: bytes) -> None:
        """Write it soon. Raises StateError if the last write failed."""
        self._waiting[path] = data
        self._worker.put(partial(self._write_newest, path))
        if (failed := self._failed.pop(path, None)) is not None:
            raise failed

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is written; returns whether it is."""
        return self._worker.settle(patience)

    def _write_newest(self, path: Path) -> None:
        data = self._waiting.pop(path, None)
        if data is not None:  # else an earlier job wrote it
            try:
                write_private(path, data)
            except StateError as error:
                self._failed[path] = error


def _let_go(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def files_in(directory: Path, name: re.Pattern[str]) -> list[Path]:
    """The files of a directory that have such a name; none where it can't be read."""
    try:
        return [path for path in directory.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return []


def read_record(cls: type[_T], path: Path, most: int = MOST_BYTES) -> _T:
    """What the file holds, which may have ``most`` bytes.

    Raises FileNotFoundError where there is none, StateError where it is not private, damaged, or of
    another version.
    """
    try:
        return from_json(cls, parse_json(read_private(path, most)))
    except ValueError as error:
        problem = f"is damaged, or of another version: {error}. Move it away"
        raise StateError(f"{path} {problem}") from error


def write_record(path: Path, record: DataclassInstance) -> None:
    """Put it in the place of the file; on the disk when this returns. Raises StateError."""
    write_private(path, json.dumps(asdict(record)).encode("ascii"))
