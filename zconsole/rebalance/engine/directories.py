"""Directories by descriptor: opened component by component, never through a symbolic link."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.metadata import Abilities, Metadata
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys


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
class Directory:
    """An open directory, and the modification time that users know it by."""

    fd: int
    dev: int
    mtime_ns: int
    """What it has to be again when our work in it is done."""
    last_ns: int
    """When we last changed it; anything later is another process's doing."""
    fixed: bool = False
    """Immutable or append-only: names can be added at most, never replaced or removed."""
    touched: bool = False
    born: Metadata | None = None
    """What a file created in it begins with, as far as was seen."""


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
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._sys = sys
        self._now_ns = now_ns
        self._row_of = row_of
        self._open: dict[int, Directory] = {}

    def get(self, number: int) -> Directory:
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

    def touch(self, directory: Directory) -> None:
        """Call before changing names in it: notes a modification by somebody else."""
        now = self._sys.fstat(directory.fd).st_mtime_ns
        if now > directory.last_ns:
            directory.mtime_ns = directory.last_ns = now

    def touched(self, directory: Directory) -> None:
        """Call after changing names in it."""
        directory.last_ns = self._now_ns()
        directory.touched = True

    def restore_times(self) -> None:
        """Give every touched directory the modification time it had before us."""
        for directory in self._open.values():
            if not directory.touched:
                continue
            self.touch(directory)
            status = self._sys.fstat(directory.fd)
            try:
                self._sys.set_times(directory.fd, status.st_atime_ns, directory.mtime_ns)
            except OSError as error:
                # Somebody else's directory, and we are not root: its time cannot be set.
                if error.errno != errno.EPERM:
                    raise
            directory.last_ns = directory.mtime_ns
            directory.touched = False

    def close(self) -> None:
        """Close every descriptor."""
        while self._open:
            self._sys.close(self._open.popitem()[1].fd)

    def __len__(self) -> int:
        return len(self._open)

    def _verified(self, row: DirectoryRow) -> Directory:
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
        return Directory(fd, status.st_dev, status.st_mtime_ns, status.st_mtime_ns, fixed)

    def _open_row(self, row: DirectoryRow) -> int:
        if row.parent is None:
            return open_path(self._sys, row.name)
        return self._sys.open(row.name, DIRECTORY, dir_fd=self._open[row.parent].fd)
