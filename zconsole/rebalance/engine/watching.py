"""Detection of changes of names by other processes in the directories we work in (inotify(7)).

Modification times do not show them all: two changes within one tick of the kernel's clock leave the
same time.
"""

from __future__ import annotations

import struct

from zconsole.rebalance.engine.syscalls import IN_Q_OVERFLOW, Sys

_HEAD = struct.Struct("=iIII")
"""Watch, mask, cookie, length of the name that follows: struct inotify_event (linux/inotify.h)."""


class Watching:
    """Watches directories until ``close``."""

    def __init__(self, sys: Sys) -> None:
        self._sys = sys
        self._own: tuple[bytes, ...] = ()
        self._queue = -1
        self._numbers: dict[int, set[int]] = {}
        """Numbers of the directories by watch: two numbers may lead to one inode."""
        self._watched: set[int] = set()

    def own(self, prefix: bytes) -> None:
        """Treat names with this prefix as ours, and their changes as our own."""
        self._own += (prefix,)

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
            events = self._sys.changes(self._queue)
        except OSError:
            watched = set(self._watched)
            self.close()
            return watched
        ours, foreign, at = set[int](), list[tuple[int, int]](), 0
        while at < len(events):
            watch, mask, cookie, length = _HEAD.unpack_from(events, at)
            at += _HEAD.size
            if mask & IN_Q_OVERFLOW:
                return set(self._watched)
            if events.startswith(self._own, at, at + length):
                ours.add(cookie)
            elif length:
                foreign.append((watch, cookie))
            at += length
        # The two events of a rename or exchange share a cookie, and our temporary name is on one
        # side only. Other events have the cookie 0.
        ours.discard(0)
        by_others = {watch for watch, cookie in foreign if cookie not in ours}
        return {number for watch in by_others for number in self._numbers.get(watch, ())}

    def close(self) -> None:
        """Stop watching."""
        self._numbers.clear()
        self._watched.clear()
        queue, self._queue = self._queue, -1
        if queue >= 0:
            self._sys.close(queue)
