"""Requests the content of the next files early, so that several disks work at once.

Files read one after the other keep one disk of a pool busy at a time, and that one seeking.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from zconsole.rebalance.engine.content import WINDOW
from zconsole.rebalance.engine.directories import MovedError

AHEAD_FILES = 64
AHEAD_BYTES = 16 << 20
"""What has been asked for and was not due yet: ZFS itself sets no limit (openzfs/zfs#15776)."""

File = TypeVar("File")


@dataclass(slots=True)
class ReadAhead(Generic[File]):
    """Stays ahead of the work, by at most AHEAD_FILES and AHEAD_BYTES."""

    coming: Iterator[File]
    size_of: Callable[[File], int]
    """Bytes that are going to be read of a file."""
    ask: Callable[[File, int], None]
    """Asks for so many bytes; what the filesystem answers makes no difference."""
    _asked: deque[int] = field(default_factory=deque)
    _bytes: int = 0

    def step(self) -> None:
        """The next file is due: request the beginnings of those that follow."""
        while len(self._asked) < AHEAD_FILES and self._bytes < AHEAD_BYTES:
            file = next(self.coming, None)
            if file is None:
                break
            count = min(self.size_of(file), WINDOW)
            if count:
                with contextlib.suppress(OSError, MovedError):
                    self.ask(file, count)
            self._asked.append(count)
            self._bytes += count
        if self._asked:
            self._bytes -= self._asked.popleft()
