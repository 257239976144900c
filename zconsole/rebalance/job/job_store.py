"""Records of jobs: one file per job in the state directory, locked while the job runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.system import state_dir as state
from zconsole.system.records import parse_json
from zconsole.system.safe_path import directory, make_directory, sync_directory

LOCK_SECONDS = 1.0
"""Seconds to wait for a job's lock, which a reader of its status holds for a moment."""
ASK_SECONDS = 5.0
"""Seconds to wait until another operator's request is on the disk."""
MOST_BYTES = 1 << 16
NAME = re.compile(r"[0-9a-f]{6}")
"""A job's id. It becomes part of file names, so no other string is accepted."""


@dataclass(frozen=True, slots=True)
class Record:
    """Id of a job, and the paths of its journal and its record."""

    job: str
    journal: Path
    file: Path

    @property
    def log(self) -> Path:
        """File with the output of a detached job."""
        return self.file.with_suffix(".log")

    @property
    def given_up(self) -> bool:
        """Whether its journal was deleted from the state directory.

        A journal elsewhere may come back when its filesystem is mounted.
        """
        return self.journal.parent == self.file.parent and not self.journal.exists()


def locked(record: Record) -> AbstractContextManager[None]:
    """Lock a job for the process that runs it; the kernel drops the lock if the process dies.

    Raises ZconsoleError if the job is running already.
    """
    busy = ZconsoleError(f"job {record.job} is running already")
    return state.locked(record.file, LOCK_SECONDS, busy)


def asking(record: Record) -> AbstractContextManager[None]:
    """Lock the request of a job to change it. Raises StateError if another holds it too long."""
    path = record.file.with_suffix(".lock")
    busy = state.StateError(state.held_by_another(path, ASK_SECONDS))
    return state.locked(path, ASK_SECONDS, busy)


def add(journal: Path | None, name: str | None = None) -> Record:
    """Create the record of a job, with its journal at ``journal`` or next to the record.

    ``name`` is the id of a job that already has one. Raises StateError, OSError.
    """
    where = state.state_dir(create=True) / "rebalance"
    make_directory(where)
    while True:
        job = name or secrets.token_hex(3)
        name = None
        record = Record(job, _real(journal or where / f"{job}.db"), where / f"{job}.json")
        content = json.dumps({"journal": os.fspath(record.journal)})
        try:
            state.create_private(record.file, content.encode())
        except FileExistsError:
            continue
        sync_directory(where)
        return record


def remove(record: Record) -> None:
    """Delete the record of a job that never began."""
    for suffix in (".json", ".lock"):
        state.remove(record.file.with_suffix(suffix))


def records() -> Iterator[Record]:
    """Yield every known job, oldest first, including those of the system if readable."""
    aged: dict[Record, float] = {}
    for file in files():
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile: a job that never began
            aged[Record(file.stem, _journal_of(file), file)] = file.stat().st_mtime
    yield from sorted(aged, key=aged.__getitem__)


def files() -> list[Path]:
    """List the files of all records; with ``$ZCONSOLE_STATE`` only those in that directory.

    Raises StateError if another user could have put them there.
    """
    if "ZCONSOLE_STATE" in os.environ:
        where: tuple[Path, ...] = (state.state_dir(create=False),)
    else:
        where = state.state_dirs()
    found: list[Path] = []
    for path in (each / "rebalance" for each in where):
        with contextlib.suppress(FileNotFoundError), directory(path):
            found += path.glob("*.json")
    return [file for file in found if NAME.fullmatch(file.stem)]


def _journal_of(file: Path) -> Path:
    """Return the journal that a record names, or the one next to it if the record is damaged."""
    try:
        return Path(parse_json(state.read_private(file, MOST_BYTES))["journal"])
    except FileNotFoundError:
        raise
    except (state.StateError, OSError, ValueError, KeyError, TypeError):
        return file.with_suffix(".db")


def find(job: str) -> Record:
    """Return the record of a job. Raises NotFoundError."""
    for record in records():
        if record.job == job:
            return record
    raise NotFoundError(f"no job {job}")


def by_journal(journal: Path) -> Record | None:
    """Return the job that a journal belongs to; None if no record names it."""
    wanted = _real(journal)
    return next((record for record in records() if _real(record.journal) == wanted), None)


def _real(path: Path) -> Path:
    """Resolve links, so that two jobs can't share a journal under different names."""
    return Path(os.path.realpath(path))


def is_alive(record: Record) -> bool:
    """Whether a process is running this job. Raises StateError."""
    try:
        fd = state.open_private(record.file)
    except FileNotFoundError:
        return False
    try:
        # A shared lock: two readers must not take each other for the job.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
