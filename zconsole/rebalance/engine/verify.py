"""Verification of copies: read back from the disks and compared with the original's content."""

from __future__ import annotations

import errno
import fcntl
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from itertools import cycle

from zconsole.rebalance.engine import content
from zconsole.rebalance.engine.content import ChangedError
from zconsole.rebalance.engine.item import Item, SkipError
from zconsole.rebalance.engine.syscalls import Sys

READING = os.O_RDONLY | os.O_NOATIME
LEASE_TRIES, LEASE_PAUSE = 200, 0.005
"""Attempts to lease a copy of our own, and seconds between two of them."""
READERS = 8
"""Groups of small copies that are read in parallel, each in a thread.

A read past the cache waits for its disk; one after another they would keep only one disk of a pool
busy.
"""
TOGETHER = 16
"""Copies of a group: handing over each by itself takes longer than a fast disk needs to read it."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Reads copies back and compares them.

    For all items of a batch: call ``reopen``; after the sync, ``forget``; then ``verify`` each that
    ``ahead`` yields.
    """

    sys: Sys
    make: content.Maker
    direct: content.Buffers | None
    """Memory for reading past the cache; None if O_DIRECT does not do that on the filesystem."""
    sleep: Callable[[float], None]
    threads: Executor | None = None

    def reopen(self, item: Item) -> None:
        """Reopen the copy read-only, and lease it if the original is leased.

        Raises OSError, SkipError.
        """
        past_cache = 0 if self.direct is None else os.O_DIRECT
        writable, item.copy = item.copy, self.sys.reopen(item.copy, READING | past_cache)
        # Close before leasing: a read lease is refused while the file is open for writing.
        self.sys.close(writable)
        if item.leased:
            self._lease(item.copy)
            item.copy_leased = True

    def forget(self, item: Item) -> None:
        """Drop the copy from the page cache and prefetch it, so that it comes from the disk.

        On ZFS the ARC may have it still. Not needed with O_DIRECT. Raises OSError.
        """
        if self.direct is None:
            self.sys.fadvise(item.copy, 0, 0, os.POSIX_FADV_DONTNEED)
            self.sys.fadvise(item.copy, 0, content.WINDOW, os.POSIX_FADV_WILLNEED)

    def ahead(self, items: Sequence[Item], service: Callable[[], None]) -> Generator[Item]:
        """Yield all items in order; with O_DIRECT, small copies are read in threads before.

        ``service`` is called often during a wait. Close the generator if you leave it early, so
        that no thread still reads a copy.
        """
        if self.threads is None or self.direct is None:
            yield from items
            return
        running = deque[tuple[Sequence[Item], Future[None]]]()
        coming = (items[at : at + TOGETHER] for at in range(0, len(items), TOGETHER))
        buffers = cycle([content.Buffers() for _ in range(READERS)])
        try:
            while True:
                while len(running) < READERS and (portion := next(coming, None)):
                    reading = self.threads.submit(self._read_back, portion, next(buffers))
                    running.append((portion, reading))
                if not running:
                    return
                while wait([running[0][1]], 0.05).not_done:
                    service()
                yield from running.popleft()[0]
        finally:
            wait([reading for _, reading in running])

    def verify(self, item: Item, tick: content.Tick) -> None:
        """Check a copy: raise OSError (EIO) if it differs from what was copied.

        Also raises ChangedError, and what ``tick`` raises.
        """
        if item.verdict is None:
            item.verdict = self._is_same(item, tick, self.direct)
        else:
            tick(item.size)
        if isinstance(item.verdict, Exception):
            raise item.verdict
        if not item.verdict:
            raise OSError(errno.EIO, "the copy read back differs")
        item.kept = None

    def _read_back(self, items: Sequence[Item], buffers: content.Buffers) -> None:
        for item in items:
            if item.size > content.SMALL:
                continue
            try:
                item.verdict = self._is_same(item, lambda _: None, buffers)
            except (OSError, ChangedError) as error:
                item.verdict = error

    def _lease(self, fd: int) -> None:
        """Take a read lease on a copy; raise SkipError if somebody keeps it open for writing.

        We may be that ourselves for a moment: a child process being started has all our
        descriptors until it executes its program.
        """
        for _ in range(LEASE_TRIES):
            try:
                return self.sys.lease(fd, fcntl.F_RDLCK)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
            self.sleep(LEASE_PAUSE)
        raise SkipError("open for writing")

    def _is_same(self, item: Item, tick: content.Tick, direct: content.Buffers | None) -> bool:
        try:
            return self._compare(item, item.copy, tick, direct)
        except OSError as error:
            if error.errno != errno.EINVAL or direct is None:
                raise
        fd = self.sys.reopen(item.copy, READING)  # EINVAL: no O_DIRECT for this file
        try:
            return self._compare(item, fd, tick, None)
        finally:
            self.sys.close(fd)

    def _compare(
        self, item: Item, fd: int, tick: content.Tick, direct: content.Buffers | None
    ) -> bool:
        if item.kept is not None:
            return content.same(self.sys, fd, item.kept, tick, direct)
        digest = content.digest(self.sys, fd, item.size, tick, self.make, direct)
        return digest == item.digest
