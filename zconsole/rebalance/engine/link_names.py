"""The names of files of several links: those of the journal, and how many others there are."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.item import KEEP_SUFFIX
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.syscalls import Sys

Key = tuple[int, int | None]
"""Device and inode of an original."""


@dataclass(slots=True)
class LinkNames:
    """The unfinished names of every inode."""

    sys: Sys
    journal: Journal
    directories: Directories
    _names: dict[Key, list[FileRow]] = field(default_factory=lambda: defaultdict(list))
    _copies: dict[Key, int] = field(default_factory=dict)
    """How many of its names and temporary names hold the copy; those that were asked for."""
    _moved: dict[Key, bool] = field(default_factory=dict)

    def add(self, rows: Iterable[FileRow]) -> None:
        """These are the unfinished names."""
        for row in rows:
            self._names[self.key(row)].append(row)

    def key(self, row: FileRow) -> Key:
        """What all names of an inode have in common."""
        return self.journal.directory(row.directory).dev, row.old

    def of(self, row: FileRow) -> Sequence[FileRow]:
        """All unfinished names of an inode, in the order in which they were replaced."""
        return self._names[self.key(row)]

    def ours(self, row: FileRow) -> set[bytes]:
        """The names of an inode that the journal knows of."""
        rows = self.of(row)
        return {name for each in rows for name in (each.name, each.temp or b"")}

    def is_copy_alone(self, copy: int, row: FileRow) -> bool:
        """Whether an open copy has no names besides those of the journal."""
        key = self.key(row)
        if key not in self._copies:
            self._copies[key] = sum(self._holds(each, row.new) for each in self._names[key])
        return self.sys.fstat(copy).st_nlink <= self._copies[key]

    def copies_changed(self, row: FileRow, by: int) -> None:
        """We have given the copy a temporary name, or taken one from it."""
        if self.key(row) in self._copies:
            self._copies[self.key(row)] += by

    def has_other_names(self, original: int, row: FileRow) -> bool:
        """Whether an open original has names besides those we keep it by.

        Of several, not all were replaced, or one had been renamed.
        """
        links = self.sys.fstat(original).st_nlink
        names = self.of(row)
        spare = len(names) - links
        for name in reversed(names) if links > 1 else ():  # the last were replaced last
            spare -= not self._keeps(name)
            if spare < 0:
                return True
        return False

    def has_moved(self, row: FileRow) -> bool:
        """Whether one of an inode's names has the copy for good: its original is gone."""
        key = self.key(row)
        if key not in self._moved:
            self._moved[key] = self.moved_name(row) is not None
        return self._moved[key]

    def moved_name(self, row: FileRow) -> FileRow | None:
        """Another name of an inode that has the copy for good."""
        names = (each for each in self.of(row) if each.number != row.number)
        at_name = (each for each in names if self._is_at_name(each, row.new))
        return next((each for each in at_name if not self._keeps(each)), None)

    def waits(self, row: FileRow) -> bool:
        """Whether one of several names has the original."""
        return row.nlink > 1 and self._is_at_name(row, row.old)

    def moved(self, row: FileRow) -> None:
        """Note that a name has the copy for good."""
        self._moved[self.key(row)] = True

    def _is_at_name(self, row: FileRow, inode: int | None) -> bool:
        """Whether a name, not only the temporary one, has an inode."""
        with contextlib.suppress(MovedError, OSError):
            return self.inode(self.directories.get(row.directory).fd, row.name) == inode
        return False

    def _keeps(self, row: FileRow) -> bool:
        """Whether one of our names beside this one holds the original."""
        temp = row.temp or b""
        with contextlib.suppress(MovedError, OSError):
            fd = self.directories.get(row.directory).fd
            return row.old in (self.inode(fd, temp), self.inode(fd, temp + KEEP_SUFFIX))
        return False

    def _holds(self, row: FileRow, inode: int | None) -> int:
        """Of a name and its temporary name, how many an inode has."""
        with contextlib.suppress(MovedError, OSError):
            fd = self.directories.get(row.directory).fd
            return (self.inode(fd, row.name), self.inode(fd, row.temp or b"")).count(inode)
        return 0

    def inode(self, fd: int, name: bytes) -> int | None:
        """What a name has; None where there is none. Raises OSError."""
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None
