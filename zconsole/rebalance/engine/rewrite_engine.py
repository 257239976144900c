"""The rewrite engine: has ZFS (2.3.4+) rewrite a file's blocks in place, one chunk at a time.

The kernel locks the range for the duration of a call, so chunks are sized by the time they take.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.backend import REPLACED
from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.content import SMALL
from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.item import FileOutcome, SkipError, StopJobError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.read_ahead import ReadAhead
from zconsole.rebalance.engine.results import Results
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

CHUNK_SECONDS = 0.05
"""Seconds that one call should take: applications wait for a locked range that long."""
SMALLEST = 1 << 20
LARGEST = 256 << 20
"""Limits of a chunk, in bytes."""
OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags to open a file with; the ioctl needs one that is open for writing."""
CHECKPOINT = 1.0
"""Seconds between two notes in the journal of the offset reached in a file."""
_SKIPPED = {
    errno.ETXTBSY: "running executable",
    errno.ENOENT: "changed",
    errno.ELOOP: "changed",
    errno.ENXIO: "changed",
    errno.EISDIR: "changed",
    errno.EPERM: "immutable or append-only",
    errno.EACCES: "not permitted",
    errno.EAGAIN: "leased by another process",
}


@dataclass(slots=True)
class Rewriter:
    """Rewrites one file after another. ``tick`` may wait or raise StopJobError."""

    sys: Sys
    directories: Directories
    results: Results
    tick: Callable[[int], None]
    clock: Callable[[], float]
    flags: int = 0
    """Flags of ZFS_IOC_REWRITE, for every file."""
    chunk: int = 8 << 20
    """Bytes of the next call."""
    _noted: float = 0.0
    """When the journal got the last offset (steady seconds)."""
    _front: ReadAhead[FileRow] = field(init=False)

    def __post_init__(self) -> None:
        self.begin(())

    def begin(self, rows: Sequence[FileRow]) -> None:
        """Announce the files to rewrite next, in order, for read-ahead; some may be left out."""
        self._front = ReadAhead(iter(rows), lambda row: row.size - row.offset, self._ask)

    def run(self, row: FileRow) -> list[FileOutcome]:
        """Rewrite one inode; return the outcome of each of its names.

        Raises StopJobError (the journal has the offset reached), UnsupportedError, sqlite3.Error.
        """
        self._front.step()
        names = self.results.journal.names_of(row)
        size, outcome, reason = 0, "moved", None
        try:
            size = self._rewrite(row)
        except (SkipError, MovedError) as error:
            outcome, reason = "skipped", str(error)
        except OSError as error:
            reason = _SKIPPED.get(error.errno or 0)
            outcome = "skipped" if reason else "failed"
            reason = reason or error.strerror or str(error)
        self.results.outcomes = []
        self.results.add(names, outcome, reason, size)
        return self.results.outcomes

    def _ask(self, row: FileRow, count: int) -> None:
        """Have the beginning of a file read into the ARC, without opening it for writing yet."""
        directory = self.directories.get(row.directory)
        fd = self.sys.open(row.name, SOURCE, dir_fd=directory.fd)
        try:
            self.sys.fadvise(fd, row.offset, count, os.POSIX_FADV_WILLNEED)
        finally:
            self.sys.close(fd)

    def _rewrite(self, row: FileRow) -> int:
        directory = self.directories.get(row.directory)
        fd = self.sys.open(row.name, OPEN, dir_fd=directory.fd)
        try:
            status = self.sys.fstat(fd)
            self._admit(fd, status, row, directory.dev)
            self._rewrite_range(fd, row, status.st_size)
        finally:
            self.sys.close(fd)
        return status.st_size

    def _admit(self, fd: int, status: os.stat_result, row: FileRow, device: int) -> None:
        if not stat.S_ISREG(status.st_mode) or status.st_dev != device:
            raise SkipError("changed")
        if status.st_ino != row.ino:
            raise SkipError(REPLACED)
        meta, _ = metadata.read(self.sys, fd, Abilities(project=False, dos=False))
        if meta.flags & metadata.IMMUTABLE:
            raise SkipError("immutable or append-only")

    def _rewrite_range(self, fd: int, row: FileRow, size: int) -> None:
        offset = row.offset
        while offset < size:
            length = min(self.chunk, size - offset)
            began = self.clock()
            try:
                self.sys.rewrite(fd, offset, length, self.flags)
            except InterruptedError:  # by a signal: blocks rewritten already are done once more
                continue
            except OSError as error:
                if error.errno in self._unsupported:
                    why = "not all of its options" if self.flags else "no rewrite (2.3.4)"
                    raise UnsupportedError(f"this OpenZFS has {why}") from error
                raise
            self._resize(length, self.clock() - began)
            offset += length
            self._note(row, offset)
            self._pace(row, offset, length)

    @property
    def _unsupported(self) -> tuple[int, ...]:
        """Errors that mean no support; EINVAL means that the kernel does not know a flag."""
        return (errno.ENOTTY, errno.EOPNOTSUPP, *((errno.EINVAL,) if self.flags else ()))

    def _resize(self, length: int, seconds: float) -> None:
        """Size the next chunk for CHUNK_SECONDS, at most doubling or halving it."""
        if length < self.chunk and seconds < CHUNK_SECONDS:
            return  # the end of a file: its time says nothing about a whole chunk
        wanted = self.chunk * min(2.0, max(0.5, CHUNK_SECONDS / max(seconds, 1e-6)))
        self.chunk = int(min(LARGEST, max(SMALLEST, wanted))) // SMALLEST * SMALLEST

    def _note(self, row: FileRow, offset: int) -> None:
        now = self.clock()
        if row.size > SMALL and now - self._noted >= CHECKPOINT:
            self._noted = now
            self.results.journal.set_offset(row.number, offset)

    def _pace(self, row: FileRow, offset: int, length: int) -> None:
        try:
            self.tick(length)
        except StopJobError:  # a resumed job goes on from here
            self.results.journal.set_offset(row.number, offset)
            raise
