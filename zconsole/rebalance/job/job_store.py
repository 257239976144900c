"""Where jobs are kept: one record a job in the state directory, locked while the job runs."""

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
"""For a job's lock: a reader of its status holds it for a moment."""
ASK_SECONDS = 5.0
"""For another operator's request to be on the disk."""
MOST_BYTES = 1 << 16
NAME = re.compile(r"[0-9a-f]{6}")
"""A job's id; it becomes the name of files, so nothing else is taken for one."""


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


def locked(record: Record) -> AbstractContextManager[None]:
    """For the process that runs a job; the kernel drops the lock when the process dies.

    Raises ZconsoleError when the job runs already.
    """
    busy = ZconsoleError(f"job {record.job} is running already")
    return state.locked(record.file, LOCK_SECONDS, busy)


def asking(record: Record) -> AbstractContextManager[None]:
    """For whoever changes what is asked of a job. Raises StateError where another is too slow."""
    path = record.file.with_suffix(".lock")
    busy = state.StateError(state.held_by_another(path, ASK_SECONDS))
    return state.locked(path, ASK_SECONDS, busy)


def add(journal: Path | None, name: str | None = None) -> Record:
    """A new job's record, with its journal at ``journal`` or beside the record.

    ``name`` is the id of a job that had one already. Raises StateError, OSError.
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
    """Forget a job that never began."""
    for suffix in (".json", ".lock"):
        state.remove(record.file.with_suffix(suffix))


def records() -> Iterator[Record]:
    """Every job known, oldest first; where it may be read, the system's as well."""
    aged: list[tuple[float, Record]] = []
    for file in files():
        with contextlib.suppress(FileNotFoundError):  # of a job that never began, just forgotten
            record = Record(file.stem, _journal_of(file), file)
            aged.append((file.stat().st_mtime, record))
    yield from (record for _, record in sorted(aged, key=lambda pair: pair[0]))


def files() -> list[Path]:
    """The files of all records; ``$ZCONSOLE_STATE`` overrides: then there are no others.

    Raises StateError where somebody else could have put them there.
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
    """The journal a record names; the one beside it where the record was damaged."""
    try:
        return Path(parse_json(state.read_private(file, MOST_BYTES))["journal"])
    except FileNotFoundError:
        raise
    except (state.StateError, OSError, ValueError, KeyError, TypeError):
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
    """Whether a process runs this job now. Raises StateError."""
    try:
        fd = state.open_private(record.file)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
