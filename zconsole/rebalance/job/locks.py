"""Locks that allow one job per tree: each running job has a lock file with its claims.

A second job on the same tree, on one inside it or on one around it conflicts with a claim, even
through a bind mount. The kernel drops the lock of a process that dies; the next job removes its
file.

The lock files are in the state directory, which other users can't access, so they can't block a
job. In turn, jobs of another user or another state directory aren't seen. Two such jobs on one tree
lose nothing: the one that replaces a name later finds its original changed, and skips that file.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path, PurePosixPath

from zconsole.errors import UsageError, ZconsoleError
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.planning.facts import mount_of
from zconsole.system.mounts import is_inside, mount_number
from zconsole.system.records import from_json, parse_json
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import (
    StateError,
    held_by_another,
    locked,
    read_private,
    remove,
    state_dir,
    try_lock,
)

TURN = "trees.lock"
"""Name of the lock held while claims are compared and a new one is written."""
PATIENCE = 10.0
"""Seconds to wait for that lock."""
MOST_BYTES = 1 << 24
_UP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Claim:
    """A directory and its tree on the same filesystem, which no other job may enter."""

    path: str
    """Resolved path, for messages."""
    device: int
    inode: int
    above: tuple[int, ...]
    """Inode numbers of the parent directories, up to the root of the mount."""
    inside: str | None
    """Path from the root of the filesystem, the same in all bind mounts; None if unknown."""

    def overlaps(self, other: Claim) -> bool:
        """Whether the two have a directory in common."""
        if self.device != other.device:
            return False
        if self.inode in (other.inode, *other.above) or other.inode in self.above:
            return True
        if self.inside is None or other.inside is None:
            return False
        one, two = PurePosixPath(self.inside), PurePosixPath(other.inside)
        return one.is_relative_to(two) or two.is_relative_to(one)


def claim(sys: Sys, path: bytes) -> Claim:
    """Return the claim of a job on a directory; ``path`` has no links. Raises OSError.

    Its path within the filesystem is the root of its mount (the fourth field of
    proc_pid_mountinfo(5)) and the rest of ``path``: the parents of a bind mount are not those of
    its source.
    """
    fd = open_path(sys, path)
    try:
        status, number = sys.fstat(fd), mount_number(fd)
        above = _above(sys, fd, number)
    finally:
        sys.close(fd)
    name, there = os.fsdecode(path), mount_of(number)
    inside = None
    if there is not None and is_inside(path, there.point):
        inside = os.fsdecode(there.spot(path).path)
    return Claim(name, status.st_dev, status.st_ino, above, inside)


def _above(sys: Sys, fd: int, mount: int) -> tuple[int, ...]:
    """Return the inode numbers of a directory's parents within the same mount."""
    found: list[int] = []
    here, last = os.dup(fd), sys.fstat(fd)
    try:
        while True:
            up = sys.open(b"..", _UP, dir_fd=here)
            os.close(here)
            here, status = up, sys.fstat(up)
            # The parent of the root directory is itself.
            if mount_number(here) != mount or os.path.samestat(status, last):
                return tuple(found)
            found.append(status.st_ino)
            last = status
    finally:
        os.close(here)


class BusyTreeError(ZconsoleError):
    """Raised if another job works on the tree, inside it, or around it."""


class TreeLocks:
    """Claims on trees, held until ``close``."""

    def __init__(self, sys: Sys, roots: Sequence[bytes]) -> None:
        """Take the locks. Raises BusyTreeError, UsageError, StateError, OSError."""
        self.roots = tuple(roots)
        claims = [claim(sys, root) for root in roots]
        for one, other in combinations(claims, 2):
            if one.overlaps(other):
                raise UsageError(f"{one.path} and {other.path} overlap. Name only one of them")
        where = state_dir(create=True) / "locks"
        make_directory(where)
        with _turn(where / TURN):
            _refuse_overlap(claims, where)
            self._file = where / f"tree-{os.urandom(8).hex()}.lock"
            self._fd: int | None = _written(self._file, claims)

    def close(self) -> None:
        """Release the claims, and remove their file."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            # Remove the file while it is locked, or another job would take it for a dead one's.
            with contextlib.suppress(OSError, ZconsoleError):  # the next job removes it
                remove(self._file)
            os.close(fd)


def conflicting_job(roots: Sequence[bytes]) -> str | None:
    """Reason why a job on these directories would be refused now; None if none conflicts."""
    where = state_dir(create=False) / "locks"
    # There may have been no job yet, or this user may not read the state directory.
    unseen = OSError, StateError
    try:
        with contextlib.suppress(*unseen):
            claims = [claim(Sys(), root) for root in roots]
            with _turn(where / TURN):
                _refuse_overlap(claims, where)
        with contextlib.suppress(*unseen):
            refuse_interrupted(roots)
    except BusyTreeError as error:
        return str(error)
    return None


def _turn(path: Path) -> AbstractContextManager[None]:
    return locked(path, PATIENCE, BusyTreeError(held_by_another(path, PATIENCE)))


def _refuse_overlap(claims: Sequence[Claim], where: Path) -> None:
    """Raise BusyTreeError if a running job has a claim that overlaps one of these.

    Removes the files of dead jobs.
    """
    for file in where.glob("tree-*.lock"):
        handle = try_lock(file)
        if handle is not None:
            remove(file)
            os.close(handle)
            continue
        with contextlib.suppress(FileNotFoundError):
            try:
                said = parse_json(read_private(file, MOST_BYTES))
                others = [from_json(Claim, each) for each in said["claims"]]
            except (KeyError, TypeError, ValueError) as error:
                unknown = "a job of another version is running. Wait for its end"
                raise BusyTreeError(unknown) from error
            for one, other in product(claims, others):
                if one.overlaps(other):
                    raise BusyTreeError(
                        f"another job works in {other.path}, which overlaps {one.path}."
                        " Wait for its end, or stop it (zconsole rebalance status)"
                    )


def _written(file: Path, claims: Sequence[Claim]) -> int:
    """Create a lock file with these claims; return its descriptor, which holds the lock."""
    handle = try_lock(file)
    if handle is None:
        raise BusyTreeError(f"{file} is locked by another process. Try again")
    try:
        data = json.dumps({"claims": [asdict(each) for each in claims]}).encode()
        while data:
            data = data[os.write(handle, data) :]
    except OSError as error:
        os.close(handle)
        remove(file)
        raise StateError(f"{file}: {error.strerror}") from error
    return handle


def refuse_interrupted(roots: Sequence[bytes]) -> None:
    """Raise BusyTreeError if another job has unfinished work in, below or above these roots.

    A walk would find its temporary files. Call this with the trees locked.
    """
    wanted = [claim(Sys(), root) for root in roots]
    for record in job_store.records():
        path = _unfinished_root(record, wanted)
        if path is not None:
            raise BusyTreeError(
                f"job {record.job} was interrupted in {path}:"
                f" let it go on first (zconsole rebalance resume {record.job}),"
                f" or give up what it left and delete {record.journal}"
            )


def _unfinished_root(record: Record, wanted: Sequence[Claim]) -> str | None:
    """Return a directory that a job left unfinished, if still there, that overlaps ``wanted``."""
    # Ignore a journal that is gone or damaged: its job can't be resumed, either.
    with (
        contextlib.suppress(ZconsoleError, OSError, sqlite3.Error),
        closing(Journal.open(record.journal, write=False)) as journal,
    ):
        for root in journal.roots() if journal.is_interrupted() else ():
            with contextlib.suppress(OSError):
                found = claim(Sys(), root.name)
                if found.inode == root.ino and any(map(found.overlaps, wanted)):
                    return found.path
    return None
