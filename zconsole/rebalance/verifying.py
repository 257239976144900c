"""Whether a copy on the disks has what the original had: read back and compared."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass

from zconsole.rebalance import content
from zconsole.rebalance.item import Item, SkipError
from zconsole.rebalance.syscalls import Sys

READING = os.O_RDONLY | os.O_NOATIME
LEASE_TRIES, LEASE_PAUSE = 200, 0.005
"""How often, and after how many seconds, a lease on a copy of our own is asked for."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Reads copies back: ``reopen``, once a sync has ended ``forget``, then ``verify``."""

    sys: Sys
    make: content.Maker
    direct: content.Buffers | None
    """To read past the cache with; None where the filesystem has no O_DIRECT worth the name."""
    sleep: Callable[[float], None]

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

    def verify(self, item: Item, tick: content.Tick) -> None:
        """Raises OSError (EIO) when the copy differs, ChangedError, and what ``tick`` raises."""
        if not self._is_same(item, tick):
            raise OSError(errno.EIO, "the copy read back differs")
        item.kept = None

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

    def _is_same(self, item: Item, tick: content.Tick) -> bool:
        try:
            return self._compare(item, item.copy, tick, self.direct)
        except OSError as error:
            if error.errno != errno.EINVAL or self.direct is None:
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
