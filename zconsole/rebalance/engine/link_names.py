"""Hard links in recovery: a file's names in the journal, and whether it has others.

If one name has to keep the copy, all names get it: otherwise one file would become two.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine import swap
from zconsole.rebalance.engine.directories import Directories, MovedError, OpenDirectory
from zconsole.rebalance.engine.item import KEEP_SUFFIX
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.versions import Version, Versions, is_as_copied, is_copy, is_doubtful

Key = tuple[int, int | None]
"""Device and inode of an original."""


@dataclass(slots=True)
class LinkNames:
    """The unfinished names of every inode, and what they hold now."""

    sys: Sys
    journal: Journal
    directories: Directories
    _names: dict[Key, list[FileRow]] = field(default_factory=lambda: defaultdict(list))
    _copies: dict[Key, int] = field(default_factory=dict)
    """Number of names and temporary names that hold the copy, filled on demand."""
    _originals: dict[Key, int] = field(default_factory=dict)
    """Number of our names that keep the original, filled on demand."""
    _moved: dict[Key, bool] = field(default_factory=dict)
    """Cache of ``has_moved``."""

    def add(self, rows: Iterable[FileRow]) -> None:
        """Add the unfinished names."""
        for row in rows:
            self._names[self.key(row)].append(row)

    def key(self, row: FileRow) -> Key:
        """Return the key that all names of an inode share."""
        return self.journal.directory(row.directory).dev, row.old

    def of(self, row: FileRow) -> Sequence[FileRow]:
        """Return all unfinished names of a file's inode, in the order of their replacement."""
        return self._names[self.key(row)]

    def has_original(self, row: FileRow) -> bool:
        """Whether this name is one of several and holds the original."""
        with contextlib.suppress(OSError):
            return row.nlink > 1 and self._count(row, (row.name,), row.old) > 0
        return False

    def ours(self, row: FileRow) -> set[bytes]:
        """Return the names and temporary names of an inode that the journal knows."""
        rows = self.of(row)
        return {name for each in rows for name in (each.name, each.temp or b"")}

    def is_copy_alone(self, copy: int, row: FileRow) -> bool:
        """Whether an open copy has no names besides those of the journal."""
        key = self.key(row)
        if key not in self._copies:
            self._copies[key] = sum(
                self._count(each, (each.name, each.temp or b""), row.new)
                for each in self._names[key]
            )
        return self.sys.fstat(copy).st_nlink <= self._copies[key]

    def copies_changed(self, row: FileRow, by: int) -> None:
        """Note that we added (1) or removed (-1) a name of the copy."""
        if self.key(row) in self._copies:
            self._copies[self.key(row)] += by

    def has_other_names(self, original: int, row: FileRow) -> bool:
        """Whether an open original has names besides those at which we keep it.

        If so, not all of its names were replaced, or somebody renamed one.
        """
        links, key = self.sys.fstat(original).st_nlink, self.key(row)
        if links > 1 and key not in self._originals:
            self._originals[key] = sum(self._kept(each) for each in self._names[key])
        return links > 1 and links > self._originals[key]

    def originals_changed(self, row: FileRow, by: int) -> None:
        """Note that we added (1) or removed (-1) a name at which we keep the original."""
        if self.key(row) in self._originals:
            self._originals[self.key(row)] += by

    def has_moved(self, row: FileRow) -> bool:
        """Whether one of an inode's names has the copy for good, without the original beside it."""
        key = self.key(row)
        if key not in self._moved:
            self._moved[key] = self.moved_name(row) is not None
        return self._moved[key]

    def moved_name(self, row: FileRow) -> FileRow | None:
        """Return another name of the inode that has the copy for good; None if there is none."""
        names = (each for each in self.of(row) if each.number != row.number)
        return next(filter(self._is_moved, names), None)

    def moved(self, row: FileRow) -> None:
        """Note that a name has the copy for good."""
        self._moved[self.key(row)] = True

    def _is_moved(self, row: FileRow) -> bool:
        temp = row.temp or b""
        with contextlib.suppress(MovedError):
            fd = self.directories.get(row.directory).fd
            if self.inode(fd, row.name) == row.new:
                return row.old not in (self.inode(fd, temp), self.inode(fd, temp + KEEP_SUFFIX))
        return False

    def _kept(self, row: FileRow) -> int:
        """Count our names next to this one that hold the original."""
        temp = row.temp or b""
        return self._count(row, (temp, temp + KEEP_SUFFIX), row.old)

    def _count(self, row: FileRow, names: Iterable[bytes], inode: int | None) -> int:
        """Count the names of an inode among ``names`` in this row's directory. Raises OSError."""
        with contextlib.suppress(MovedError):
            fd = self.directories.get(row.directory).fd
            return sum(self.inode(fd, name) == inode for name in names)
        return 0

    def inode(self, fd: int, name: bytes) -> int | None:
        """Return the inode of a name; None if the name does not exist. Raises OSError."""
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None


class ReplacedNowError(Exception):
    """A name of an original was replaced a moment ago: the original must be kept for GRACE."""


@dataclass(slots=True)
class NameJoiner:
    """Gives a copy the names that its original still has, so that they stay one file."""

    sys: Sys
    directories: Directories
    links: LinkNames
    versions: Versions
    settled: set[Key] = field(default_factory=set)
    """Files all of whose names have the copy now, or some of whose names were given back."""
    replaced: set[Key] = field(default_factory=set)
    """Files of which a name got the copy less than GRACE ago."""

    def go_on(self, row: FileRow, copy: Version) -> None:
        """Replace the names that still have the original.

        To be called if somebody uses the copy, changed it or linked it: giving the other names
        back would leave two files.
        """
        if self.links.key(row) in self.settled or not row.handle:
            return  # without a handle it may be another file that got the inode number
        for other in self.links.of(row):
            directory = self.directories.get(other.directory)
            temp, fd = other.temp or b"", directory.fd
            if self.links.inode(fd, other.name) != row.old:
                continue
            with self.directories.changing(directory):
                keep = temp + KEEP_SUFFIX
                if self.links.inode(fd, keep) == row.old:
                    self._unlink(directory, row, keep)  # the original still has this name
                if self.links.inode(fd, temp) is None:
                    self.sys.link_fd(copy.fd, fd, temp)
                    self.links.copies_changed(row, 1)
                if self.links.inode(fd, temp) != row.new:
                    return
                # Before the call: one that fails may have taken effect all the same.
                self.replaced.add(self.links.key(row))
                if not swap.put(self.sys, fd, temp, other.name, row.old, keep):
                    return
                self.links.originals_changed(row, 1)
        self.settled.add(self.links.key(row))

    def join(self, directory: OpenDirectory, row: FileRow) -> None:
        """Give the copy a name that has the original, if another name has the copy for good.

        A power cut may undo the exchange in one directory and keep the removal in another.
        """
        fd, versions = directory.fd, self.versions
        apart = self.links.inode(fd, row.name) == row.old and self.links.has_moved(row)
        other = self.links.moved_name(row) if apart else None
        if other is None:
            return
        place = self.directories.get(other.directory)
        with (
            versions.version(fd, row, row.name) as old,
            versions.version(place.fd, row, other.name) as new,
        ):
            joins = is_as_copied(old, row) and versions.quiet(old)
            joins = joins and not versions.in_use(old, directory=fd)
            joins = joins and not is_doubtful(new, old, row)
            if joins and is_copy(self.sys, new.fd, row):
                self.go_on(row, new)

    def unlink_original(self, directory: OpenDirectory, row: FileRow, name: bytes) -> None:
        """Remove a name at which we keep an original. Raises ReplacedNowError, OSError."""
        if self.links.key(row) in self.replaced:
            raise ReplacedNowError
        self._unlink(directory, row, name)

    def _unlink(self, directory: OpenDirectory, row: FileRow, name: bytes) -> None:
        with self.directories.changing(directory):
            self.sys.unlink(directory.fd, name)
        self.links.originals_changed(row, -1)
