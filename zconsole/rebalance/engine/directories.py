"""Directories by descriptor: opened component by component, never through a symbolic link."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.metadata import Abilities, Metadata
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys
from zconsole.rebalance.engine.watching import Watching

OURS = 0.5
"""Seconds for which our changes are announced to the journal. A directory changed by another
process less than this after a job was killed cannot be told from one the job changed. A call that
a busy machine holds up for longer is told of when it ends; killed before that, it looks foreign."""


class MovedError(Exception):
    """A directory is no longer the one that was walked."""


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """A walked directory: its parent's number (None for a root, whose name is its full path)."""

    number: int
    parent: int | None
    name: bytes
    dev: int
    ino: int


@dataclass(slots=True)
class OpenDirectory:
    """An open directory, and the modification time it is to keep."""

    number: int
    fd: int
    dev: int
    mtime_ns: int
    """What it has to be again when our work in it is done."""
    last_ns: int | None
    """What it was after our last change; anything else is another process's doing."""
    fixed: bool = False
    """Immutable or append-only: names can be added at most, never replaced or removed."""
    begun: bool = False
    """Whether we work in it, and from now on look for others."""
    touched: bool = False
    foreign: bool = False
    """Whether another process has changed it since: its time is left as it is."""
    born: Metadata | None = None
    """What a file created in it begins with, as far as was seen."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What the journal has to know of directories; a power cut may take all of it back."""

    until: Callable[[float], None] = lambda _until: None
    """Our changes of directories have times up to this one (epoch seconds)."""
    foreign: Callable[[int], None] = lambda _number: None
    """Another process has changed this one."""


_NONE = Notes()


def open_path(sys: Sys, path: bytes) -> int:
    """A descriptor of an absolute path, no component of which may be a symbolic link.

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
    """Open directories of a journal, each verified to be the one that was walked.

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
        """An open directory. Raises MovedError when it is gone, moved or a link; OSError."""
        closed: list[DirectoryRow] = []
        above: int | None = number
        while above is not None and above not in self._open:
            closed.append(self._row_of(above))
            above = closed[-1].parent
        for row in reversed(closed):  # trees may be deeper than the interpreter's stack
            self._open[row.number] = self._verified(row)
        return self._open[number]

    def path(self, number: int) -> bytes:
        """The full path it had when it was walked; for messages only."""
        parts: list[bytes] = []
        row = self._row_of(number)
        while row.parent is not None:
            parts.append(row.name)
            row = self._row_of(row.parent)
        return b"/".join([row.name.rstrip(b"/"), *reversed(parts)])

    def begin(self, directory: OpenDirectory) -> None:
        """Note the time to restore, and watch for changes by other processes from now on.

        To be called before the journal is told of it. A directory that cannot be watched is left
        the time it has in the end: a change by others within one of ours would be taken for ours.
        Raises OSError.
        """
        if directory.begun:
            return
        self._watching.add(directory.number, directory.fd)
        self._look()
        # A change from here on is told later, even if this time is already that of the change.
        directory.mtime_ns = self._sys.fstat(directory.fd).st_mtime_ns
        directory.last_ns = directory.mtime_ns
        directory.begun, directory.foreign = True, False
        if not self._watching.watches(directory.number):
            self._found_changed(directory)

    def take_up(self, directory: OpenDirectory, mtime_ns: int) -> None:
        """Restore the time that a directory had before a crashed process changed it."""
        directory.touched = directory.mtime_ns != mtime_ns
        directory.mtime_ns = mtime_ns

    @contextmanager
    def changing(self, directory: OpenDirectory) -> Iterator[None]:
        """Change names in it inside of this. Raises OSError."""
        self.begin(directory)
        self._look()
        self._compare(directory)
        self._announce(OURS / 2)
        directory.touched = True
        try:
            yield
        finally:
            self._announce(0.0)
            directory.last_ns = None
            with contextlib.suppress(OSError):
                directory.last_ns = self._sys.fstat(directory.fd).st_mtime_ns

    def _announce(self, least: float) -> None:
        """Announce changes to the journal, unless ``least`` seconds are announced already."""
        now = self._now()
        if self._until - now < least:
            self._until = now + OURS
            self._notes.until(self._until)

    def restore_times(self) -> None:
        """Give every directory we changed alone the time it had before us. Raises OSError."""
        for directory in self._open.values():
            if directory.begun and directory.touched:
                self._restore_time(directory)
            directory.begun = directory.touched = False

    def _restore_time(self, directory: OpenDirectory) -> None:
        """Put the time back unless another process changed the directory.

        The kernel queues an event before it lets go of the directory, and a time is set with the
        directory locked. So a change we have not heard of by then comes after that, or is heard of
        in the second look: then the time becomes one after that change.
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
        """See what no event tells: times set by others."""
        if directory.last_ns not in (None, self._sys.fstat(directory.fd).st_mtime_ns):
            self._found_changed(directory)

    def _found_changed(self, directory: OpenDirectory) -> None:
        if directory.begun and not directory.foreign:
            directory.foreign = True
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
