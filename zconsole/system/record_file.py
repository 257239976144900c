"""Files of the state directory that one process changes at a time, and all read.

Each is written under a lock file. The disk may hang, perhaps on the very pool that is watched:
every call is given up in time, and what then comes late still has the lock.
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
from zconsole.system.patient import NoAnswerError, Patient, Worker
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
"""Seconds for the disk to answer."""
WRITTEN = 10.0
"""Seconds for the disk to have what was written: a pool that resilvers may take some."""

_T = TypeVar("_T")
_D = TypeVar("_D", bound="DataclassInstance")

Load = Callable[[Path, bytes], _T]
"""The contents of a file; raises ValueError, LookupError, TypeError, AttributeError if damaged."""


class DamagedError(StateError):
    """A file holds nothing that this version can read; the cause says why."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is damaged, or of another version: {why}. Move it away")
        self.path = path


@dataclass(slots=True)
class LockedStore:
    """Files of one directory. The process that has the lock of some of them writes those.

    With ``directory`` None, none are written.
    """

    directory: Path | None
    readable: Sequence[Path] = ()
    """Directories they are read from, the first that has one; that one alone when empty."""
    writer: AsyncWriter | None = None
    """Writes in the background; without one, what is put is on the disk."""
    problems: dict[Path, str] = field(default_factory=dict, init=False)
    """The files that ``read_files`` left out when it last looked, and why."""
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
        """The contents of a file of at most ``most`` bytes, in the first directory that has it.

        ``places``: directories to look in instead of the readable ones. Raises FileNotFoundError
        where none has, DamagedError where it is damaged or of another version, StateError where it
        is not private or the disk doesn't answer.
        """
        for place in self.readable if places is None else places:
            with contextlib.suppress(FileNotFoundError):
                return self.in_time(partial(_read, place / name, load, most), ANSWER)
        raise FileNotFoundError(name)

    def read_files(
        self, name: re.Pattern[str], load: Load[_T], most: int, seconds: float
    ) -> list[_T]:
        """The contents of every file of such a name, which may have ``most`` bytes.

        Of files of one name the first counts that ``load`` understands; ``problems`` then names
        those that were left out. Raises StateError where that takes over ``seconds``.
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
                    pass  # removed just now
                except ZconsoleError as error:
                    if not isinstance(error.__cause__, PermissionError):  # not for this user to see
                        problems[path] = str(error)
            return list(found.values()), problems

        found, self.problems = self.in_time(read, seconds)
        return found

    def lock(self, name: str, seconds: float = 0.0) -> int | None:
        """A descriptor that holds a lock file; None where another process has it for so long.

        Raises StateError where the directory is not ours to write, or doesn't answer.
        """
        if self.directory is None:
            return None
        take = partial(_locked, self.directory / name, seconds)
        return self.in_time(take, seconds + ANSWER, late=_let_go)

    def mine(self, name: str) -> bool:
        """Whether this process holds a lock file, or got it now, until ``close``; as ``lock``."""
        if name not in self._locks and (lock := self.lock(name)) is not None:
            self._locks[name] = lock
        return name in self._locks

    def put(self, name: str, data: bytes, lock: str | int) -> None:
        """Replace a file under a lock that is ``mine``, or a descriptor of ``lock``.

        Without a ``writer`` it is on the disk when this returns. Raises StateError.
        """
        if self.directory is None:
            return
        path, held = self.directory / name, self._locks[lock] if isinstance(lock, str) else lock
        if self.writer is not None:
            self.writer.write(path, data, held)
        else:
            self.in_time(partial(_write, path, data, held), WRITTEN)

    def in_time(
        self,
        job: Callable[[], _T],
        seconds: float = ANSWER,
        late: Callable[[_T], object] = lambda _: None,
    ) -> _T:
        """``Patient.call`` of what asks the disk; a NoAnswerError names the directory."""
        try:
            return self._patient.call(job, seconds, late)
        except NoAnswerError as error:
            place = self.directory or next(iter(self.readable), "state directory")
            raise NoAnswerError(f"{place}: {error}. Check its disk") from None

    def close(self) -> None:
        """Release every lock that is ``mine``, once what was put is written."""
        while self._locks:
            os.close(self._locks.popitem()[1])


class LockedRecord(Generic[_D]):
    """A dataclass in one file, locked for each change.

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
        self._store = LockedStore(path and path.parent)

    def read(self) -> _D:
        """The contents now, without the lock. Raises StateError as ``LockedStore.read_file``."""
        if self._path is None:
            return self._kept
        try:
            return self._store.read_file(self._path.name, record(type(self._kept)))
        except FileNotFoundError:
            return self._kept

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
        name, seconds = self._path.name, self._patience if patience is None else patience
        lock = self._store.lock(self._lock, seconds)
        if lock is None:
            raise StateError(held_by_another(self._path.with_name(self._lock), seconds))
        try:
            yield lambda new: self._store.put(name, encoded(new), lock)
        finally:
            os.close(lock)

    def _keep(self, new: _D) -> None:
        self._kept = new


class AsyncWriter:
    """Writes files in the background: of each, only the newest content."""

    def __init__(self) -> None:
        self._worker = Worker("writer")
        self._waiting: dict[Path, tuple[bytes, int | None]] = {}
        self._failed: dict[Path, StateError] = {}

    def write(self, path: Path, data: bytes, lock: int | None = None) -> None:
        """Write it soon, and hold a lock until then. Raises StateError if the last write failed."""
        held = None if lock is None else os.dup(lock)
        _, older = self._waiting.pop(path, (b"", None))
        _let_go(older)
        self._waiting[path] = data, held
        self._worker.put(partial(self._write_newest, path))
        if (failed := self._failed.pop(path, None)) is not None:
            raise failed

    def settle(self, patience: float) -> bool:
        """Wait at most so many seconds until all is written; returns whether it is."""
        return self._worker.settle(patience)

    def _write_newest(self, path: Path) -> None:
        data, lock = self._waiting.pop(path, (None, None))
        if data is not None:  # else an earlier job wrote it
            try:
                write_private(path, data)
            except StateError as error:
                self._failed[path] = error
            finally:
                _let_go(lock)


def files_in(directory: Path, name: re.Pattern[str]) -> list[Path]:
    """The files of a directory that have such a name; none where it can't be read."""
    try:
        return [path for path in directory.iterdir() if name.fullmatch(path.name)]
    except OSError:
        return []


def record(cls: type[_T]) -> Load[_T]:
    """What loads a dataclass from the JSON that ``encoded`` makes of it."""
    return lambda _, data: from_json(cls, parse_json(data))


def encoded(record: DataclassInstance) -> bytes:
    """A dataclass as JSON."""
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


def _write(path: Path, data: bytes, lock: int) -> None:
    """Write the file under the lock, however long that takes.

    A write that comes late must not undo what another process wrote meanwhile.
    """
    kept = os.dup(lock)
    try:
        write_private(path, data)
    finally:
        os.close(kept)


def _let_go(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)
