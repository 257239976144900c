"""Detection of changes of names by other processes in the directories we work in (inotify(7)).

Modification times do not show them all: two changes within one tick of the kernel's clock leave the
same time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from zconsole.rebalance.engine.syscalls import IN_Q_OVERFLOW, Sys

_HEAD = struct.Struct("=iIII")
"""Watch, mask, cookie, length of the name: begin of struct inotify_event (linux/inotify.h)."""


class FileChange(NamedTuple):
    """One inotify event; the two events of a rename share a cookie."""

    watch: int
    mask: int
    cookie: int
    name: bytes


class Watching:
    """Watches directories until ``close``."""

    def __init__(self, sys: Sys) -> None:
        self._sys = sys
        self._own: set[bytes] = set()
        self._queue = -1
        self._numbers: dict[int, set[int]] = {}
        """Numbers of the directories by watch: two numbers may lead to one inode."""
        self._watched: set[int] = set()

    def own(self, prefix: bytes) -> None:
        """Treat names with this prefix as ours, and their changes as our own."""
        self._own.add(prefix)

    def add(self, number: int, fd: int) -> None:
        """Watch an open directory if the kernel allows it; ``watches`` tells whether it does."""
        if self.watches(number):
            return
        try:
            if self._queue < 0:
                self._queue = self._sys.watcher()
            watch = self._sys.watch(self._queue, fd)
        except OSError:
            return  # fs.inotify.max_user_watches is reached, or there is no inotify
        self._numbers.setdefault(watch, set()).add(number)
        self._watched.add(number)

    def watches(self, number: int) -> bool:
        """Whether a directory is watched."""
        return number in self._watched

    def changed(self) -> set[int]:
        """Return the directories (numbers) in which others changed names since the last call.

        All of them if the kernel dropped events. All of them, too, if the queue can't be read;
        then none is watched any more.
        """
        if self._queue < 0:
            return set()
        try:
            changes = list(_parsed(self._sys.changes(self._queue)))
        except OSError:
            watched = set(self._watched)
            self.close()
            return watched
        if any(change.mask & IN_Q_OVERFLOW for change in changes):
            return set(self._watched)
        # A rename or exchange of ours has our temporary name on one side only.
        ours = {c.cookie for c in changes if c.cookie and self._is_own(c.name)}
        foreign = (c for c in changes if not self._is_own(c.name) and c.cookie not in ours)
        return {number for c in foreign if c.name for number in self._numbers.get(c.watch, ())}

    def close(self) -> None:
        """Stop watching."""
        self._numbers.clear()
        self._watched.clear()
        queue, self._queue = self._queue, -1
        if queue >= 0:
            self._sys.close(queue)

    def _is_own(self, name: bytes) -> bool:
        return any(name.startswith(prefix) for prefix in self._own)


def _parsed(data: bytes) -> Iterator[FileChange]:
    at = 0
    while at < len(data):
        watch, mask, cookie, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield FileChange(watch, mask, cookie, data[at : at + length].rstrip(b"\0"))
        at += length
