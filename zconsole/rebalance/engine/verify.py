"""Whether a copy on the disks has what the original had: read back and compared."""

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
"""How often, and after how many seconds, a lease on a copy of our own is asked for."""
READERS = 8
"""Portions of small copies that are read side by side, each by a thread: a copy read past the cache
waits for its disk, and one after the other they would keep one disk of a pool busy."""
TOGETHER = 16
"""Copies of a portion: to hand each over by itself takes longer than a quick disk."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Reads copies back.

    ``reopen`` them; once a sync has ended ``forget`` them; then ``verify`` all of ``ahead``.
    """

    sys: Sys
    make: content.Maker
    direct: content.Buffers | None
    """To read past the cache with; None where the filesystem has no O_DIRECT worth the name."""
    sleep: Callable[[float], None]
    threads: Executor | None = None

    def reopen(self, item: Item) -> None:
        """Close the copy for writing, lease it as the original is. Raises OSError, SkipError."""
        past_cache = 0 if self.direct is None else os.O_DIRECT
        writable, item.copy = item.copy, self.sys.reopen(item.copy, READING | past_cache)
        self.sys.close(writable)
        if item.leased:
            self._lease(item.copy)
            item.copy_leased = True

    def forget(self, item: Item) -> None:
        """Have the copy read from the disk: drop it from the cache, ask for it. Raises OSError."""
        if self.direct is None:
            self.sys.fadvise(item.copy, 0, 0, os.POSIX_FADV_DONTNEED)
            self.sys.fadvise(item.copy, 0, content.WINDOW, os.POSIX_FADV_WILLNEED)

    def ahead(self, items: Sequence[Item], service: Callable[[], None]) -> Generator[Item]:
        """All items in order; where reading waits for disks, small ones have been read in threads.

        ``service`` is called often while one is waited for. Close it when its end is not reached.
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
        """Raises OSError (EIO) when the copy differs, ChangedError, and what ``tick`` raises."""
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
        """A child being started has every descriptor of ours until it becomes its program."""
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
        fd = self.sys.reopen(item.copy, READING)  # this file cannot be read past the cache
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
