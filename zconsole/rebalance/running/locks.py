"""One job on one tree: advisory locks on the directories themselves.

A job locks its directories exclusively and every directory above them shared, so that a second
job on the same tree, on one inside it or on one around it finds a lock in its way, whoever runs
it and wherever its state is kept. The kernel drops the locks of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.syscalls import Sys


class BusyTreeError(ZconsoleError):
    """Another job works on the tree, inside it, or around it."""


class TreeLocks:
    """Locks held until ``close``."""

    def __init__(self, sys: Sys, roots: Sequence[bytes]) -> None:
        """Take the locks. Raises BusyTreeError, OSError."""
        self._fds: list[int] = []
        self.roots = tuple(roots)
        try:
            shared = {parent for root in roots for parent in _above(root)}
            for path in sorted(shared):
                self._take(sys, path, fcntl.LOCK_SH)
            for path in sorted(roots):
                self._take(sys, path, fcntl.LOCK_EX)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drop the locks."""
        while self._fds:
            os.close(self._fds.pop())

    def _take(self, sys: Sys, path: bytes, kind: int) -> None:
        try:
            fd = open_path(sys, path)
        except PermissionError:
            if kind == fcntl.LOCK_SH:
                return
            raise
        self._fds.append(fd)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            name = os.fsdecode(path)
            raise BusyTreeError(f"another job works in {name} (locked; see /proc/locks)") from error


def _above(path: bytes) -> list[bytes]:
    parts = [part for part in path.split(b"/") if part]
    return [b"/" + b"/".join(parts[:count]) for count in range(len(parts))]
