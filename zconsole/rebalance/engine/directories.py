"""Open directories: reached component by component, never through a symbolic link."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.metadata import Abilities, Metadata
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys
from zconsole.rebalance.engine.watching import Watching

OURS = 0.5
"""Seconds for which our changes are announced to the journal in advance.

A directory that another process changed within this time after a job was killed can't be told from
one that the job changed. If a busy machine delays a call for longer, its change is announced when
it ends; if the job is killed before that, the change looks like another process's.
"""


class MovedError(Exception):
    """A directory is no longer the one that was walked."""


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """A walked directory. A root has no parent, and its name is its full path."""

    number: int
    parent: int | None
    name: bytes
    dev: int
    ino: int


@dataclass(slots=True)
class OpenDirectory:
    """An open directory, and the modification time that it is to keep."""

    number: int
    fd: int
    dev: int
    mtime_ns: int
    """Modification time to restore when our work in it is done; that of now before it begins."""
    last_ns: int | None
    """Modification time after our last change, None if unknown; any other is not ours."""
    fixed: bool = False
    """Immutable or append-only: names can be added at most, never replaced or removed."""
    begun: bool = False
    """Whether we work in it, and watch it for changes by others."""
    touched: bool = False
    """Whether this job changed it, before a crash or since."""
    foreign: bool = False
    """Whether another process has changed it since: then its time is left as it is."""
    born: Metadata | None = None
    """Metadata that a new file in it begins with; None until one was seen."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Callbacks that tell the journal about directories; a power cut may undo what they noted.

    Where that fails, as on a full disk, changes go on all the same: copies must be removable then.
    After a crash only the times of directories depend on it.
    """

    until: Callable[[float], None] = lambda _until: None
    """Called with the time (epoch seconds) up to which our changes of directories may be."""
    foreign: Callable[[int], None] = lambda _number: None
    """Called with the number of a directory that another process has changed."""


_NONE = Notes()


def open_path(sys: Sys, path: bytes) -> int:
    """Return a descriptor of an absolute path, no component of which may be a symbolic link.

    Raises OSError (ELOOP or ENOTDIR for a link).
    """
    fd = sys.open(b"/", DIRECTORY)
    for part in path.split(b"/"):
        if part:
            fd = _step(sys, fd, part)
    return fd


def _step(sys: Sys, fd: int, name: bytes) -> int:
    try:
        return sys.open(name, DIRECTORY, dir_fd=fd)
    finally:
        sys.close(fd)


class Directories:
    """The open directories of a job, each verified to be the one that was walked.

    Descriptors stay open until ``close``, which the engine calls between batches.
    """

    def __init__(
        self,
        sys: Sys,
        row_of: Callable[[int], DirectoryRow],
        notes: Notes = _NONE,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._sys = sys
        self._row_of = row_of
        self._notes = notes
        self._now = now
        self._until = 0.0
        self._open: dict[int, OpenDirectory] = {}
        self._watching = Watching(sys)
        self.own = self._watching.own

    def get(self, number: int) -> OpenDirectory:
        """Return an open directory; opens it and those above it if necessary.

        Raises MovedError if one is gone, moved or a link; OSError.
        """
        closed: list[DirectoryRow] = []
        above: int | None = number
        while above is not None and above not in self._open:
            closed.append(self._row_of(above))
            above = closed[-1].parent
        for row in reversed(closed):  # trees may be deeper than the interpreter's stack
            self._open[row.number] = self._verified(row)
        return self._open[number]

    def path(self, number: int) -> bytes:
        """Return the full path that it had when it was walked; for messages only."""
        parts: list[bytes] = []
        row = self._row_of(number)
        while row.parent is not None:
            parts.append(row.name)
            row = self._row_of(row.parent)
        return b"/".join([row.name.rstrip(b"/"), *reversed(parts)])

    def begin(self, directory: OpenDirectory) -> None:
        """Note the time to restore, and watch for changes by other processes from now on.

        Call it before the journal is told of the directory. One that can't be watched keeps the
        time that it has at the end: a change by others during one of ours would go unnoticed.
        Raises OSError.
        """
        if directory.begun:
            return
        self._watching.add(directory.number, directory.fd)
        self._look()
        # A change from here on is reported later, even if this time already includes it.
        directory.mtime_ns = self._sys.fstat(directory.fd).st_mtime_ns
        directory.last_ns = directory.mtime_ns
        directory.begun, directory.foreign = True, False
        if not self._watching.watches(directory.number):
            self._found_changed(directory)

    def take_up(self, directory: OpenDirectory, mtime_ns: int) -> None:
        """Have ``restore_times`` set the time that a directory had before a crashed job began.

        Call it after ``begin``, which has noted the time that it has now.
        """
        has_changed = directory.mtime_ns != mtime_ns
        directory.touched, directory.mtime_ns = has_changed, mtime_ns

    @contextmanager
    def changing(self, directory: OpenDirectory) -> Iterator[None]:
        """Enclose a change of names in a directory: announced before, its time noted after.

        Raises OSError.
        """
        self.begin(directory)
        self._look()
        self._compare(directory)
        self._announce(OURS / 2)
        directory.touched = True
        try:
            yield
        finally:
            self._announce(0.0)
            directory.last_ns = None  # unknown, in case the next call fails
            with contextlib.suppress(OSError):
                directory.last_ns = self._sys.fstat(directory.fd).st_mtime_ns

    def _announce(self, least: float) -> None:
        """Announce changes to the journal, unless ``least`` seconds ahead are announced already."""
        now = self._now()
        # A time much further ahead was announced before the clock was set back.
        if not least <= self._until - now <= 2 * OURS:
            self._until = now + OURS
            with contextlib.suppress(sqlite3.Error):
                self._notes.until(self._until)

    def restore_times(self) -> None:
        """Restore the time of every directory that only we have changed; our work in all is done.

        Raises OSError for the first that could not be, with its path, after all others.
        """
        failed = None
        for directory in self._open.values():
            try:
                if directory.begun and directory.touched:
                    self._restore_time(directory)
            except OSError as error:
                path = os.fsdecode(self.path(directory.number))
                failed = failed or OSError(error.errno, error.strerror, path)
            else:
                directory.begun = directory.touched = False
        if failed is not None:
            raise failed

    def _restore_time(self, directory: OpenDirectory) -> None:
        """Restore the time unless another process changed the directory.

        The kernel queues an event before it unlocks the directory, and it locks the directory to
        set a time. So a change not reported when we set the time either comes later, and sets its
        own, or is found by the second look: then the time is set to now, which is later.
        """
        self._look()
        self._compare(directory)
        if directory.foreign:
            return
        self._set_time(directory, directory.mtime_ns)
        self._look()
        if directory.foreign:
            self._set_time(directory, round(self._now() * 1e9))

    def _set_time(self, directory: OpenDirectory, mtime_ns: int) -> None:
        atime_ns = self._sys.fstat(directory.fd).st_atime_ns
        try:
            self._sys.set_times(directory.fd, atime_ns, mtime_ns)
        except OSError as error:
            # Somebody else's directory, and we are not root: its time cannot be set.
            if error.errno not in (errno.EPERM, errno.EACCES):
                raise

    def _look(self) -> None:
        for number in self._watching.changed():
            self._found_changed(self._open[number])

    def _compare(self, directory: OpenDirectory) -> None:
        """Detect times set by other processes: the watch reports changes of names only."""
        if directory.last_ns not in (None, self._sys.fstat(directory.fd).st_mtime_ns):
            self._found_changed(directory)

    def _found_changed(self, directory: OpenDirectory) -> None:
        if directory.begun and not directory.foreign:
            directory.foreign = True
            with contextlib.suppress(sqlite3.Error):
                self._notes.foreign(directory.number)

    def close(self) -> None:
        """Close every descriptor."""
        self._watching.close()
        while self._open:
            self._sys.close(self._open.popitem()[1].fd)

    def __len__(self) -> int:
        return len(self._open)

    def _verified(self, row: DirectoryRow) -> OpenDirectory:
        try:
            fd = self._open_row(row)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise MovedError("directory moved") from error
            raise
        status = self._sys.fstat(fd)
        if (status.st_dev, status.st_ino) != (row.dev, row.ino):
            self._sys.close(fd)
            raise MovedError("directory moved")
        try:
            flags = metadata.flags_of(self._sys, fd, Abilities())
        except OSError:
            self._sys.close(fd)
            raise
        fixed = bool(flags & metadata.IMMUTABLE)
        mtime_ns = status.st_mtime_ns
        return OpenDirectory(row.number, fd, status.st_dev, mtime_ns, mtime_ns, fixed)

    def _open_row(self, row: DirectoryRow) -> int:
        if row.parent is None:
            return open_path(self._sys, row.name)
        return self._sys.open(row.name, DIRECTORY, dir_fd=self._open[row.parent].fd)
