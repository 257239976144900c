"""Recovery of a file of several names: all of them get the copy where one has to have it.

Otherwise one file would become two.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zconsole.rebalance.engine import swap
from zconsole.rebalance.engine.directories import Directories, OpenDirectory
from zconsole.rebalance.engine.item import KEEP_SUFFIX
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.link_names import Key, LinkNames
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.versions import Version, Versions, is_as_copied, is_copy


@dataclass(slots=True)
class NameJoiner:
    """Gives a copy the names that its original still has."""

    sys: Sys
    directories: Directories
    links: LinkNames
    versions: Versions
    settled: set[Key] = field(default_factory=set)
    """Files of which all names have the copy now, or some have been given back."""

    def go_on(self, row: FileRow, copy: Version) -> None:
        """Replace the names of an original that still have it.

        Somebody uses or has changed the copy, or made a link to it: it would stay a file of its
        own if the others were given back.
        """
        if self.links.key(row) in self.settled or not row.handle:
            return  # without a handle it may be any file that has got its inode number
        for other in self.links.of(row):
            directory = self.directories.get(other.directory)
            temp, fd = other.temp or b"", directory.fd
            if self.links.inode(fd, other.name) != row.old:
                continue
            with self.directories.changing(directory):
                keep = temp + KEEP_SUFFIX
                if self.links.inode(fd, keep) == row.old:
                    self.unlink_original(directory, row, keep)
                if self.links.inode(fd, temp) is None:
                    self.sys.link_fd(copy.fd, fd, temp)
                    self.links.copies_changed(row, 1)
                if self.links.inode(fd, temp) != row.new:
                    return
                if not swap.put(self.sys, fd, temp, other.name, row.old, keep):
                    return
                self.links.originals_changed(row, 1)
        self.settled.add(self.links.key(row))

    def join(self, directory: OpenDirectory, row: FileRow) -> bool:
        """Give the copy a name that has the original, where another has the copy for good.

        A power cut may take back the exchange in one directory and leave the removal in another.
        """
        other = self.links.moved_name(row) if self.links.has_moved(row) else None
        if other is None:
            return False
        place, fd, versions = self.directories.get(other.directory), directory.fd, self.versions
        with (
            versions.version(fd, row, row.name) as old,
            versions.version(place.fd, row, other.name) as new,
        ):
            joins = is_as_copied(old, row) and versions.quiet(old)
            joins = joins and not versions.in_use(old, directory=fd)
            if joins and is_copy(self.sys, new.fd, row):
                self.go_on(row, new)
        return True

    def unlink_original(self, directory: OpenDirectory, row: FileRow, name: bytes) -> None:
        """Remove a name that we keep an original by. Raises OSError."""
        with self.directories.changing(directory):
            self.sys.unlink(directory.fd, name)
        self.links.originals_changed(row, -1)
