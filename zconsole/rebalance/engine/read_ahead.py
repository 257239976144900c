"""Read-ahead across files: the content of the next ones is requested early.

Files read one after another would keep only one disk of a pool busy at a time, and that seeking.
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
"""Most files and bytes requested before they are due: ZFS sets no limit (openzfs/zfs#15776)."""

File = TypeVar("File")


@dataclass(slots=True)
class ReadAhead(Generic[File]):
    """Requests files ahead of the work, at most AHEAD_FILES and about AHEAD_BYTES."""

    coming: Iterator[File]
    size_of: Callable[[File], int]
    """Returns the bytes that will be read of a file."""
    ask: Callable[[File, int], None]
    """Requests the first bytes of a file; errors are ignored."""
    _asked: deque[int] = field(default_factory=deque)
    _bytes: int = 0

    def step(self) -> None:
        """Request the beginnings of the files that follow, as the next one is due now."""
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
