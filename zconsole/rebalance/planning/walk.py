"""A directory walk by descriptor, with lstat only, in bounded memory.

It never leaves a filesystem, never follows a link, and never enters ``.zfs`` or a mount point: a
bind mount shows files of another directory. Mount points are taken from the kernel's table instead
of lstat, which would hang on a dead server. Files are yielded in portions of one directory, so that
a directory of a million files takes no more memory than one of a thousand.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from sys import getfilesystemencodeerrors, getfilesystemencoding

from zconsole.rebalance.engine.directories import DirectoryRow, open_path
from zconsole.rebalance.engine.item import is_temporary
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys
from zconsole.system.mounts import LOCAL, MountPoint, ancestors, mount_number, mounts_below
from zconsole.system.state_dir import state_dirs

PORTION = 1000
"""Most files in a portion."""
CONTROL = b".zfs"
_CODING = (getfilesystemencoding(), getfilesystemencodeerrors())
"""Encoding and error handler of ``os.fsencode``; encoding directly takes a third of the time."""
_REGULAR, _DIRECTORY = stat.S_IFREG, stat.S_IFDIR

Found = tuple[bytes, os.stat_result]
Inode = tuple[int, int]
"""Device and inode number."""


JOURNAL_ENDS = ("", "-wal", "-shm", ".request")
"""What follows a journal's name in the names of its files: SQLite's, and requests to the job."""


def own_files(journal: Path | None) -> frozenset[Inode]:
    """Return the inodes of zconsole's state directories, and of a journal's files.

    A job must not open its own journal as a file to move: when a process closes any descriptor of a
    database, it loses SQLite's locks on it, and the next process that opens the database deletes
    the log that the job still writes to (sqlite.org/howtocorrupt.html, section 2.2).
    """
    paths = list(state_dirs())
    if journal is not None:
        paths += (journal.with_name(journal.name + end) for end in JOURNAL_ENDS)
    found = set[Inode]()
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)


@dataclass(slots=True)
class Portion:
    """Some of the names in one directory; ``fd`` stays open until the next portion is requested."""

    directory: DirectoryRow
    fd: int
    files: list[Found] = field(default_factory=list)
    skipped: list[tuple[bytes, str]] = field(default_factory=list)
    """Names that are not regular files or could not be examined, with the reason."""


@dataclass(slots=True)
class _Level:
    row: DirectoryRow
    fd: int
    path: bytes | None
    """Path, kept only where something is mounted below; None elsewhere."""
    pending: list[bytes] = field(default_factory=list)


class Walk:
    """One pass over a tree; directories are numbered in the order of the walk."""

    def __init__(self, root: bytes, number: int = 0, own: Set[Inode] = frozenset()) -> None:
        """``own`` are files and directories that are left out (`own_files`)."""
        self._own = own
        self._root = root
        self.number = number
        """Number of the last directory walked; the first one gets the initial value plus 1."""
        self._mounted: dict[bytes, MountPoint | None] = {}
        """Mounts below the root by path; None for the directories above a mount point."""
        self._mount = -1
        """Mount number of the root."""
        self._device = b""
        """Device of the root's filesystem as in the kernel's mount table, ``MAJOR:MINOR``."""

    def __iter__(self) -> Iterator[Portion]:
        fd = open_path(Sys(), self._root)
        self._mounted = _by_path(mounts_below(self._root))
        self._mount = mount_number(fd)
        device = Sys.fstat(fd).st_dev
        self._device = b"%d:%d" % (os.major(device), os.minor(device))
        yield from self._tree(self._level(None, self._root, fd, self._root.rstrip(b"/")))

    def _level(self, parent: int | None, name: bytes, fd: int, path: bytes | None) -> _Level:
        self.number += 1
        status = Sys.fstat(fd)
        row = DirectoryRow(self.number, parent, name, status.st_dev, status.st_ino)
        return _Level(row, fd, path if path in self._mounted else None)

    def _tree(self, root: _Level) -> Iterator[Portion]:
        """Walk depth first, with one open descriptor per level."""
        stack = [root]
        try:
            yield from self._names(root)
            while stack:
                level = stack[-1]
                if not level.pending:
                    Sys.close(stack.pop().fd)
                    continue
                below = self._enter(level, level.pending.pop())
                if isinstance(below, Portion):
                    yield below
                else:
                    stack.append(below)
                    yield from self._names(below)
        finally:
            for level in stack:
                Sys.close(level.fd)

    def _enter(self, level: _Level, name: bytes) -> _Level | Portion:
        try:
            fd = Sys.open(name, DIRECTORY, dir_fd=level.fd)
        except OSError as error:
            return Portion(level.row, level.fd, skipped=[(name, f"directory: {error.strerror}")])
        if Sys.fstat(fd).st_dev != level.row.dev:
            reason = "other dataset"
        elif mount_number(fd) != self._mount:  # a bind mount: same device, perhaps made meanwhile
            reason = "mount point"
        else:
            path = None if level.path is None else level.path + b"/" + name
            return self._level(level.row.number, name, fd, path)
        Sys.close(fd)
        return Portion(level.row, level.fd, skipped=[(name, reason)])

    def _names(self, level: _Level) -> Iterator[Portion]:
        """Yield the names in a directory; skip an unreadable one. Raises OSError for a root."""
        name = level.row.name
        try:
            yield from self._entries(level)
        except OSError as error:
            if level.row.parent is None:
                raise OSError(error.errno, error.strerror, os.fsdecode(name)) from error
            yield Portion(level.row, level.fd, skipped=[(name, f"directory: {error.strerror}")])

    def _entries(self, level: _Level) -> Iterator[Portion]:
        portion = Portion(level.row, level.fd)
        top, path = level.row.parent is None, level.path
        with os.scandir(level.fd) as entries:
            for entry in entries:
                name = entry.name.encode(*_CODING)
                there = None if path is None else self._mounted.get(path + b"/" + name)
                # A regular file as mount point is not skipped, unless a server answers for
                # the mount: the engine will find out who uses it.
                if there and (there.kind not in LOCAL or entry.is_dir(follow_symlinks=False)):
                    same = there.device == self._device
                    portion.skipped.append((name, "mount point" if same else "other dataset"))
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    portion.skipped.append((name, "changed"))
                    continue
                kind = status.st_mode & 0o170000
                if self._own and (status.st_dev, status.st_ino) in self._own:
                    portion.skipped.append((name, "zconsole's own"))
                elif kind == _REGULAR and is_temporary(name):
                    portion.skipped.append((name, "temporary name of a job"))
                elif kind == _REGULAR:
                    portion.files.append((name, status))
                    if len(portion.files) >= PORTION:
                        yield portion
                        portion = Portion(level.row, level.fd)
                elif kind == _DIRECTORY:
                    if not (top and name == CONTROL):
                        level.pending.append(name)
                else:
                    link = stat.S_ISLNK(status.st_mode)
                    portion.skipped.append((name, "symbolic link" if link else "special file"))
        yield portion


def _by_path(mounts: Sequence[MountPoint]) -> dict[bytes, MountPoint | None]:
    """Map mount points to their mounts, and each directory above one to None.

    Of several mounts at the same point, a remote one is kept: it must not be touched.
    """
    found: dict[bytes, MountPoint | None] = {}
    for mount in mounts:
        before = found.get(mount.point)
        if before is None or before.kind in LOCAL:
            found[mount.point] = mount
        for above in ancestors(mount.point):
            found.setdefault(above, None)
    return found
