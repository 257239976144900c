"""Letting go of originals whose last name is gone, beside the work.

Each such close frees blocks and may wait for the disk (with ``discard``, once a freed extent);
several wait together. Neighbours are closed by one call: a thread that comes back from the kernel
after every file holds the work up more than the closing takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from zconsole.rebalance.engine.ranges import ranges
from zconsole.rebalance.engine.syscalls import Sys

TOGETHER = 128
"""Files that one thread closes one after the other."""


@dataclass(slots=True)
class Closer:
    """Closes files in threads, without any in ``settle``."""

    sys: Sys
    threads: Executor | None = None
    _waiting: list[int] = field(default_factory=list)
    _running: list[Future[None]] = field(default_factory=list)

    def close(self, fd: int) -> None:
        """Close this descriptor soon."""
        self._waiting.append(fd)
        if self.threads is not None and len(self._waiting) >= TOGETHER:
            self._running.append(self.threads.submit(self._close, self._waiting))
            self._waiting = []

    def settle(self) -> None:
        """Wait until all of them are closed; their descriptors are needed again."""
        waiting, self._waiting = self._waiting, []
        self._close(waiting)
        for running in self._running:
            running.result()
        self._running.clear()

    def _close(self, fds: Sequence[int]) -> None:
        for first, last in ranges(fds):
            self.sys.close_run(first, last)
