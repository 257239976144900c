"""Files of the state directory that one process at a time changes, and all may read.

A file is written while a lock file is held. The disk may hang, as it may be in the pool that is
watched, so every call has a deadline; a write that completes after it still holds the lock.
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
from zconsole.system.patient import NoAnswerError, NotAskedError, Patient, Worker
from zconsole.system.records import from_json, parse_json
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import (
    StateError,
    held_by_another,
    lock_within,
    read_private,
    write_private,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_BYTES = 1 << 20
ANSWER = 2.0
"""Seconds for reading from disk."""
WRITTEN = 10.0
"""Seconds for writing durably: a resilvering pool may take some."""

_T = TypeVar("_T")
_D = TypeVar("_D", bound="DataclassInstance")

Load = Callable[[Path, bytes], _T]
"""Decodes a file; raises ValueError, LookupError, TypeError, AttributeError if it is damaged."""


class DamagedError(StateError):
    """A file is damaged, or of a version that this one can't read; the cause says why."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is damaged, or of another version: {why}. Move it away")
        self.path = path


@dataclass(slots=True)
class LockedStore:
    """Files of one directory, each written only by the process that holds its lock.

    If ``directory`` is None, nothing is written.
    """

    directory: Path | None
    readable: Sequence[Path] = ()
    """Directories to read from, of which the first that has a file counts; else ``directory``."""
    writer: AsyncWriter | None = None
    """Writes files in the background; without it, ``put`` returns when the file is on disk."""
    problems: dict[Path, str] = field(default_factory=dict, init=False)
    """Files that the last ``read_files`` left out, with the reasons."""
    _locks: dict[str, int] = field(default_factory=dict, init=False)
    _patient: Patient = field(default_factory=Patient, init=False)

    def __post_init__(self) -> None:
        self.readable = tuple(self.readable) or ((self.directory,) if self.directory else ())

    def read_file(
        self,
        name: str,
        load: Load[_T],
        most: int = MOST_BYTES,
        places: Sequence[Path] | None = None,
    ) -> _T:
        """Read a file of at most ``most`` bytes, from the first directory that has it.

        ``places`` are directories to search instead of ``readable``. Raises FileNotFoundError if
        none has it, DamagedError if it is damaged or of another version, StateError if it is not
        private or the disk doesn't answer.
        """
        for place in self.readable if places is None else places:
            with contextlib.suppress(FileNotFoundError):
                return self.in_time(partial(_read, place / name, load, most), ANSWER)
        raise FileNotFoundError(name)

    def read_files(
        self, name: re.Pattern[str], load: Load[_T], most: int, seconds: float
    ) -> list[_T]:
        """Read every file whose name matches, each of at most ``most`` bytes.

        Of files with the same name in several directories, the first that ``load`` accepts counts.
        ``problems`` then has those that were left out. Raises StateError if it takes over
        ``seconds``.
        """

        def read() -> tuple[list[_T], dict[Path, str]]:
            found: dict[str, _T] = {}
            problems: dict[Path, str] = {}
            for path in (path for place in self.readable for path in files_in(place, name)):
                if path.name in found:
                    continue
                try:
                    found[path.name] = _read(path, load, most)
                except FileNotFoundError:
                    pass  # removed since the directory was listed
                except ZconsoleError as error:
                    if not isinstance(error.__cause__, PermissionError):  # not for this user to see
                        problems[path] = str(error)
            return list(found.values()), problems

        found, self.problems = self.in_time(read, seconds)
        return found

    def lock(self, name: str, seconds: float = 0.0) -> int | None:
        """Lock a lock file, waiting at most ``seconds``; return the descriptor that holds it.

        None if another process holds it, or nothing is written. Raises StateError if the directory
        isn't safe to write to, or its disk doesn't answer.
        """
        if self.directory is None:
            return None
        take = partial(_locked, self.directory / name, seconds)
        return self.in_time(take, seconds + ANSWER, late=_let_go)

    def mine(self, name: str) -> bool:
        """Lock a lock file until ``close`` unless done; return whether this process holds it.

        Raises StateError as ``lock``.
        """
        if name not in self._locks and (lock := self.lock(name)) is not None:
            self._locks[name] = lock
        return name in self._locks

    def put(self, name: str, data: bytes, lock: str | int) -> None:
        """Replace a file while holding ``lock``: the name of one that is ``mine``, or a descriptor.

        Without a ``writer`` the file is on disk when this returns. Raises StateError.
        """
        if self.directory is None:
            return
        path, held = self.directory / name, self._locks[lock] if isinstance(lock, str) else lock
        if self.writer is not None:
            self.writer.write(path, data, held)
        else:
            self._write(path, data, os.dup(held))

    def in_time(
        self,
        job: Callable[[], _T],
        seconds: float = ANSWER,
        late: Callable[[_T], object] = lambda _: None,
    ) -> _T:
        """Run a job that accesses the directory, as ``Patient.call`` does; errors name it.

        Raises NoAnswerError after ``seconds``.
        """
        try:
            return self._patient.call(job, seconds, late)
        except NoAnswerError as error:
            place = self.directory or next(iter(self.readable), "state directory")
            raise NoAnswerError(f"{place}: {error}. Check its disk") from None

    def _write(self, path: Path, data: bytes, lock: int) -> None:
        """Write a file, and close ``lock``, a descriptor of its own, when that is done.

        That may be long after the deadline, at which the caller closes its descriptor. Without the
        lock, a late write could then overwrite what another process has written.
        """

        def write() -> None:
            try:
                write_private(path, data)
            finally:
                os.close(lock)

        try:
            self.in_time(write, WRITTEN)
        except NotAskedError:
            os.close(lock)
            raise

    def close(self) -> None:
        """Release every lock that is ``mine``; a pending write holds on to its lock until done."""
        while self._locks:
            os.close(self._locks.popitem()[1])


class LockedRecord(Generic[_D]):
    """A dataclass stored in a file, which is locked for each change.

    Without a path it is in memory, for a simulated machine.
    """

    def __init__(self, empty: _D, path: Path | None, lock: str, patience: float) -> None:
        """Store in ``path``, with ``empty`` as the value if that is missing.

        ``lock`` is the name of the lock file; ``patience``: seconds to wait while another process
        holds it.
        """
        self._path = path
        self._empty = empty
        self.last = empty
        """Value that was read or stored last, whatever became of the file since."""
        self._lock = lock
        self._patience = patience
        self._store = LockedStore(path and path.parent)

    def read(self, missing: _D | None = None) -> _D:
        """Return the current value, without locking; ``missing`` instead of the empty one.

        Raises StateError, DamagedError.
        """
        if self._path is not None:
            try:
                self.last = self._store.read_file(self._path.name, record(type(self._empty)))
            except FileNotFoundError:
                return self._empty if missing is None else missing
        return self.last

    @contextlib.contextmanager
    def open(self, patience: float | None = None) -> Iterator[Callable[[_D], None]]:
        """Hold the lock in a ``with`` block, and give a function that stores a new value.

        The value is on disk when that function returns. ``patience``: seconds to wait for the lock,
        instead of the usual ones. Both raise StateError if the directory can't be made, isn't safe
        to write to or doesn't answer; entering the block, also if another process keeps the lock.
        """
        seconds = self._patience if patience is None else patience
        lock = self._store.lock(self._lock, seconds)
        if lock is None and self._path is not None:
            raise StateError(held_by_another(self._path.with_name(self._lock), seconds))

        def put(new: _D) -> None:
            if self._path is not None and lock is not None:
                self._store.put(self._path.name, encoded(new), lock)
            self.last = new

        try:
            yield put
        finally:
            _let_go(lock)


class AsyncWriter:
    """A thread that writes files; of each, only the newest content."""

    def __init__(self) -> None:
        self._worker = Worker("writer")
        self._waiting: dict[Path, tuple[bytes, int | None]] = {}
        self._failed: dict[Path, StateError] = {}

    def write(self, path: Path, data: bytes, lock: int | None = None) -> None:
        """Write a file soon, and hold the lock until that is done.

        Raises StateError if an earlier write of this file failed.
        """
        held = None if lock is None else os.dup(lock)
        _, older = self._waiting.pop(path, (b"", None))
        _let_go(older)
        self._waiting[path] = data, held
        self._worker.put(partial(self._write_newest, path))
        if (failed := self._failed.pop(path, None)) is not None:
            raise failed

    def settle(self, patience: float) -> bool:
        """Wait at most ``patience`` seconds for all files; return whether they are written."""
        return self._worker.settle(patience)

    def _write_newest(self, path: Path) -> None:
        data, lock = self._waiting.pop(path, (None, None))
        if data is not None:  # else an earlier job has written this content
            try:
                write_private(path, data)
            except StateError as error:
                self._failed[path] = error
            finally:
                _let_go(lock)


def files_in(directory: Path, name: re.Pattern[str]) -> list[Path]:
    """Return the files of a directory whose name matches; none if it can't be read."""
    try:
        return [path for path in directory.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return []


def record(cls: type[_T]) -> Load[_T]:
    """Return a function that decodes a dataclass from the JSON that ``encoded`` produces."""
    return lambda _, data: from_json(cls, parse_json(data))


def encoded(record: DataclassInstance) -> bytes:
    """Encode a dataclass as JSON."""
    return json.dumps(asdict(record)).encode("ascii")


def _read(path: Path, load: Load[_T], most: int) -> _T:
    try:
        return load(path, read_private(path, most))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        why = error if isinstance(error, ValueError) else type(error).__name__
        raise DamagedError(path, why) from error


def _locked(path: Path, seconds: float) -> int | None:
    make_directory(path.parent)
    return lock_within(path, seconds)


def _let_go(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)
