"""Where jobs are kept: one record a job in the state directory, locked while the job runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.state import state_dir, state_dirs

_LOCK_TRIES = 40


@dataclass(frozen=True, slots=True)
class Record:
    """A job's id and its journal."""

    job: str
    journal: Path
    file: Path

    @property
    def log(self) -> Path:
        """What a detached job prints."""
        return self.file.with_suffix(".log")

    @property
    def given_up(self) -> bool:
        """Whether its journal was deleted here; elsewhere it may come back with its filesystem."""
        return self.journal.parent == self.file.parent and not self.journal.exists()


class JobLock:
    """Held by the process that runs a job; the kernel drops it when the process dies."""

    def __init__(self, record: Record) -> None:
        """Raises ZconsoleError when the job runs already."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(record.file, flags, 0o600)
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.025)  # a reader of the status holds it for a moment
            else:
                return
        os.close(self._fd)
        raise ZconsoleError(f"job {record.job} is running already")

    def close(self) -> None:
        """Drop the lock."""
        os.close(self._fd)


def directory() -> Path:
    """The directory of our own records, made if need be. Raises ZconsoleError if not safe."""
    path = state_dir(create=True) / "rebalance"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def add(journal: Path | None, name: str | None = None) -> Record:
    """A new job's record, with its journal at ``journal`` or beside the record.

    ``name`` is the id of a job that had one already.
    """
    where = directory()
    while True:
        job = name or secrets.token_hex(3)
        name = None
        file = where / f"{job}.json"
        record = Record(job, _real(journal or where / f"{job}.db"), file)
        try:
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(fd, "w") as stream:
            json.dump({"journal": os.fspath(record.journal)}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        make_names_durable(where)
        return record


def make_names_durable(directory: Path) -> None:
    """Return when the names in a directory survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove(record: Record) -> None:
    """Forget a job that never began."""
    record.file.unlink(missing_ok=True)


def records() -> Iterator[Record]:
    """Every job known, oldest first; where it may be read, the system's as well."""
    aged: list[tuple[float, Record]] = []
    for file in files():
        with contextlib.suppress(FileNotFoundError):  # of a job that never began, just forgotten
            record = Record(file.stem, _journal_of(file), file)
            aged.append((file.stat().st_mtime, record))
    yield from (record for _, record in sorted(aged, key=lambda pair: pair[0]))


def files() -> list[Path]:
    """The files of all records; ``$ZCONSOLE_STATE`` overrides: then there are no others."""
    where = (state_dir(create=False),) if "ZCONSOLE_STATE" in os.environ else state_dirs()
    return [file for path in where for file in (path / "rebalance").glob("*.json")]


def _journal_of(file: Path) -> Path:
    """The journal a record names; the one beside it where the record was damaged."""
    try:
        return Path(json.loads(file.read_text())["journal"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return file.with_suffix(".db")


def find(job: str) -> Record:
    """One job. Raises NotFoundError."""
    for record in records():
        if record.job == job:
            return record
    raise NotFoundError(f"no job {job}")


def by_journal(journal: Path) -> Record | None:
    """The job that a journal belongs to."""
    wanted = _real(journal)
    return next((record for record in records() if _real(record.journal) == wanted), None)


def _real(path: Path) -> Path:
    """The one name of a file that may be reached by links; two jobs must not share a journal."""
    return Path(os.path.realpath(path))


def is_alive(record: Record) -> bool:
    """Whether a process runs this job now."""
    try:
        fd = os.open(record.file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
