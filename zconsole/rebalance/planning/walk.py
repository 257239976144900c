"""Walking directories by descriptor, with lstat only, in bounded memory.

Never leaves a filesystem, never follows a link, never enters ``.zfs`` or a mount point: what is
bound there belongs to another place of the filesystem. What it yields is grouped
by directory in portions, so that a directory of a million files costs no more than one of a
thousand.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import getfilesystemencodeerrors, getfilesystemencoding

from zconsole.rebalance.engine.directories import DirectoryRow, open_path
from zconsole.rebalance.engine.syscalls import DIRECTORY, Sys
from zconsole.system.mounts import has_mounts_below, mount_number

PORTION = 1000
"""Names handed over at a time."""
CONTROL = b".zfs"
_CODING = (getfilesystemencoding(), getfilesystemencodeerrors())
"""What ``os.fsencode`` takes, at a third of its time."""
_REGULAR, _DIRECTORY = stat.S_IFREG, stat.S_IFDIR

Found = tuple[bytes, os.stat_result]


@dataclass(slots=True)
class Portion:
    """Some of the names of one directory; ``fd`` is open while the portion is handled."""

    directory: DirectoryRow
    fd: int
    files: list[Found] = field(default_factory=list)
    skipped: list[tuple[bytes, str]] = field(default_factory=list)
    """Names that are no regular files or could not be looked at, with the reason."""


@dataclass(slots=True)
class _Level:
    row: DirectoryRow
    fd: int
    pending: list[bytes]


class Walk:
    """One pass over several roots; directories are numbered from 1 in the order met."""

    def __init__(self, sys: Sys, roots: list[bytes], number: int = 0) -> None:
        self._sys = sys
        self._roots = roots
        self.number = number
        """Of the last directory met; the first gets the one after ``number``."""
        self._mount: int | None = None
        """The mount of the root; None when nothing is mounted below it."""

    def __iter__(self) -> Iterator[Portion]:
        for root in self._roots:
            fd = open_path(self._sys, root)
            self._mount = mount_number(fd) if has_mounts_below(root) else None
            yield from self._tree(self._row(None, root, fd), fd)

    def _row(self, parent: int | None, name: bytes, fd: int) -> DirectoryRow:
        self.number += 1
        status = self._sys.fstat(fd)
        return DirectoryRow(self.number, parent, name, status.st_dev, status.st_ino)

    def _tree(self, root: DirectoryRow, fd: int) -> Iterator[Portion]:
        """Depth first, one open descriptor a level of depth."""
        stack = [_Level(root, fd, [])]
        try:
            yield from self._names(stack[0])
            while stack:
                level = stack[-1]
                if not level.pending:
                    self._sys.close(stack.pop().fd)
                    continue
                below = self._enter(level, level.pending.pop())
                if isinstance(below, Portion):
                    yield below
                else:
                    stack.append(below)
                    yield from self._names(below)
        finally:
            for level in stack:
                self._sys.close(level.fd)

    def _enter(self, level: _Level, name: bytes) -> _Level | Portion:
        try:
            fd = self._sys.open(name, DIRECTORY, dir_fd=level.fd)
        except OSError as error:
            return Portion(level.row, level.fd, skipped=[(name, f"directory: {error.strerror}")])
        if reason := self._elsewhere(level, fd):
            self._sys.close(fd)
            return Portion(level.row, level.fd, skipped=[(name, reason)])
        return _Level(self._row(level.row.number, name, fd), fd, [])

    def _elsewhere(self, level: _Level, fd: int) -> str | None:
        if self._sys.fstat(fd).st_dev != level.row.dev:
            return "other dataset"
        if self._mount is not None and mount_number(fd) != self._mount:
            return "mount point"
        return None

    def _names(self, level: _Level) -> Iterator[Portion]:
        """What a directory holds; one that cannot be read is skipped. Raises OSError for a root."""
        name = level.row.name
        try:
            yield from self._entries(level)
        except OSError as error:
            if level.row.parent is None:
                raise OSError(error.errno, error.strerror, os.fsdecode(name)) from error
            yield Portion(level.row, level.fd, skipped=[(name, f"directory: {error.strerror}")])

    def _entries(self, level: _Level) -> Iterator[Portion]:
        portion = Portion(level.row, level.fd)
        top = level.row.parent is None
        with os.scandir(level.fd) as entries:
            for entry in entries:
                name = entry.name.encode(*_CODING)
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    portion.skipped.append((name, "changed"))
                    continue
                kind = status.st_mode & 0o170000
                if kind == _REGULAR:
                    portion.files.append((name, status))
                    if len(portion.files) >= PORTION:
                        yield portion
                        portion = Portion(level.row, level.fd)
                elif kind == _DIRECTORY:
                    if not (top and name == CONTROL):
                        level.pending.append(name)
                else:
                    portion.skipped.append((name, special(status.st_mode)))
        yield portion


def special(mode: int) -> str:
    """Why a name that is neither file nor directory is skipped."""
    return "symbolic link" if stat.S_ISLNK(mode) else "special file"


def resolve(directory: str) -> bytes:
    """The real path of a directory the operator named. Raises NotADirectoryError, OSError."""
    path = Path(directory).resolve(strict=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    return os.fsencode(path)
