"""Asking for the content of the files to come, so that the disks work side by side.

Files read one after the other keep one disk of a pool busy at a time, and that one seeking.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator

from zconsole.rebalance.content import WINDOW
from zconsole.rebalance.item import Item
from zconsole.rebalance.syscalls import Sys

AHEAD_FILES = 64
AHEAD_BYTES = 16 << 20
"""What has been asked for and is not copied yet: ZFS itself sets no limit (openzfs/zfs#15776)."""


def ahead(sys: Sys, items: Iterable[Item]) -> Iterator[Item]:
    """All items in order, the beginning of those that follow asked for before each is given.

    Never more than AHEAD_FILES and AHEAD_BYTES; what the filesystem answers makes no difference.
    """
    coming, asked, size = iter(items), deque[tuple[Item, int]](), 0
    while True:
        while len(asked) < AHEAD_FILES and size < AHEAD_BYTES and (item := next(coming, None)):
            count = 0 if item.done else min(item.size, WINDOW)
            _ask(sys, item.source, count)
            asked.append((item, count))
            size += count
        if not asked:
            return
        item, count = asked.popleft()
        size -= count
        yield item


def _ask(sys: Sys, fd: int, count: int) -> None:
    if count:
        with contextlib.suppress(OSError):
            sys.fadvise(fd, 0, count, os.POSIX_FADV_WILLNEED)
