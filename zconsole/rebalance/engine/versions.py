"""The two versions of a file after a crash, original and copy: opened, leased, read, compared."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zconsole.rebalance.engine import content, file_locks, metadata
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

PATIENCE, PAUSE = 10.0, 0.05
"""Seconds to wait for leases of other processes: in a whole recovery, and at a time."""


@dataclass(slots=True)
class Version:
    """The original or the copy of a file, found at some name; open, and leased if possible."""

    fd: int
    directory: int
    """Descriptor of the directory that has the name."""
    digest: bytes
    meta: metadata.Metadata
    leased: bool
    """False if another process has it open for writing."""


class LeasedError(Exception):
    """Another process has leased a file and does not release it."""


@dataclass(slots=True)
class Versions:
    """Opens versions of files, and detects their use by others. ``tick`` gets the bytes read."""

    sys: Sys
    users: Users
    tick: Callable[[int], None]
    sleep: Callable[[float], None]
    patience: float = PATIENCE
    """Seconds left to wait for leases of other processes."""

    @contextlib.contextmanager
    def version(self, fd: int, row: FileRow, name: bytes) -> Iterator[Version]:
        """Open and read the version of a journal's file at a name, for the time of the context.

        Raises LeasedError, OSError.
        """
        with self.opened(fd, name) as file:
            leased = self.lease(file)
            maker = content.MAKERS[len(row.digest or bytes(32))]
            meta, status = metadata.read(self.sys, file, Abilities())
            digest = content.digest(self.sys, file, status.st_size, self.tick, maker)
            yield Version(file, fd, digest, meta, leased)

    @contextlib.contextmanager
    def opened(self, fd: int, name: bytes) -> Iterator[int]:
        """Open a file for the time of the context. Raises LeasedError, OSError."""
        file = self._open_unleased(fd, name)
        try:
            yield file
        finally:
            self.sys.close(file)

    def _open_unleased(self, directory: int, name: bytes) -> int:
        """Open a file, waiting until other processes have released their write leases.

        Each attempt makes the kernel notify them, and fails until they have (O_NONBLOCK, in
        SOURCE). Raises LeasedError once ``patience``, which all files share, is used up; OSError.
        """
        while True:
            try:
                return self.sys.open(name, SOURCE | os.O_NOATIME, dir_fd=directory)
            except BlockingIOError:
                if self.patience <= 0:
                    raise LeasedError from None
            self.patience -= PAUSE
            self.sleep(PAUSE)
            self.tick(0)  # a job that is stopped ends here

    def lease(self, fd: int) -> bool:
        """Take a read lease; return False only if somebody has the file open for writing.

        Returns True also where there are no leases: the job was accepted on those terms.
        """
        try:
            self.sys.lease(fd, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno != errno.EAGAIN
        return True

    def quiet(self, version: Version) -> bool:
        """Whether nobody has opened a version for writing or changed it since it was read."""
        if not version.leased or not self.lease(version.fd):
            return False
        return metadata.read(self.sys, version.fd, Abilities())[0].same(version.meta)

    def in_use(self, version: Version, directory: int | None = None) -> bool:
        """Whether others have a version open, locked or mounted.

        With ``directory``, an overlay with a layer there counts as well.
        """
        look = self.users.recent()
        look.add_unreached(version.directory)
        status = self.sys.fstat(version.fd)
        used = look.user(status.st_dev, status.st_ino)
        if used is None and directory is not None:
            used = look.inside_overlay(directory)
        if used is not None:
            return True
        locks = file_locks.locked_inodes()
        return look.may_be_locked(locks, version.directory, status.st_dev, status.st_ino)


def is_as_copied(version: Version, row: FileRow) -> bool:
    """Whether a version has the content and metadata that the original had when it was copied."""
    return version.digest == row.digest and row.meta == version.meta.digest()


def is_doubtful(copy: Version, original: Version, row: FileRow) -> bool:
    """Whether a copy has other content than was copied, yet the size and time of its original.

    A disk that loses what it called durable leaves that, and so does a power cut after a write. Its
    owner and mode say nothing: somebody may have changed them since.
    """
    unwritten = (copy.meta.size, copy.meta.mtime_ns) == (original.meta.size, original.meta.mtime_ns)
    unwritten = unwritten or row.meta == copy.meta.digest()
    return unwritten and copy.digest != row.digest


def is_copy(sys: Sys, fd: int, row: FileRow) -> bool:
    """Whether an open file is our copy, not another file that got its inode number."""
    return sys.fstat(fd).st_ino == row.new and row.handle in (b"", sys.handle(fd))


def replaceable(version: Version, by: Version, row: FileRow) -> bool:
    """Whether nothing would be lost without ``version``, if ``by`` stays.

    Its content must be what was copied, and its metadata as copied or equal to those of ``by``.
    """
    copied = version.digest == row.digest and version.leased
    return copied and (version.meta.same(by.meta) or is_as_copied(version, row))
