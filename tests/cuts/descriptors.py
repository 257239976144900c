"""Descriptors of the model: open files, their status and leases, and inotify queues."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from tests.cuts.disk import PAGE

DEVICE = 0x7A63
FIRST = 1_000_000
"""First descriptor number; too large to be a real one, if it ever reached a real system call."""
_EVENT = struct.Struct("=iIII")
IN_EVENTS = {"from": 0x40, "to": 0x80, "create": 0x100, "delete": 0x200}
"""Inotify events about names (linux/inotify.h)."""


def refuse(code: int) -> NoReturn:
    """Raise the OSError with an error number."""
    raise OSError(code, os.strerror(code))


class Status(NamedTuple):
    """The fields of a file's status that the engines read."""

    st_mode: int
    st_ino: int
    st_nlink: int
    st_uid: int
    st_gid: int
    st_size: int
    st_atime_ns: int
    st_mtime_ns: int
    st_ctime_ns: int
    st_blocks: int
    st_dev: int = DEVICE
    st_blksize: int = PAGE


@dataclass(slots=True)
class OpenFile:
    """One open file description."""

    identity: int
    flags: int
    leased: bool = False
    broken: bool = False
    """Whether another process waits for the lease to end."""

    @property
    def writable(self) -> bool:
        """Return whether the file was opened for writing."""
        return self.flags & os.O_ACCMODE != os.O_RDONLY


@dataclass(slots=True)
class Queue:
    """An inotify queue."""

    watches: dict[int, int] = field(default_factory=dict)
    """Watch descriptors by the identity of the directory."""
    waiting: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Descriptors:
    """All open files and queues of one process."""

    files: dict[int, OpenFile] = field(default_factory=dict)
    queues: dict[int, Queue] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    """Identities of inodes that another process waits to open for writing."""
    _next: int = FIRST
    _cookie: int = 0

    def add(self, identity: int, flags: int) -> int:
        """Add an open file; returns its descriptor."""
        self._next += 1
        self.files[self._next] = OpenFile(identity, flags)
        return self._next

    def add_queue(self) -> int:
        """Add an inotify queue; returns its descriptor."""
        self._next += 1
        self.queues[self._next] = Queue()
        return self._next

    def of(self, fd: int) -> OpenFile:
        """Return the open file of a descriptor. Raises OSError."""
        if fd not in self.files:
            refuse(errno.EBADF)
        return self.files[fd]

    def close(self, fd: int) -> None:
        """Close a file or a queue. Raises OSError."""
        if self.queues.pop(fd, None) is None and self.files.pop(fd, None) is None:
            refuse(errno.EBADF)

    def lease(self, fd: int, kind: int) -> None:
        """Take or drop a read lease (fcntl_setlease, fs/locks.c). Raises OSError."""
        file = self.of(fd)
        if kind == fcntl.F_UNLCK:
            file.leased = file.broken = False
            return
        writers = any(f.writable for f in self.files.values() if f.identity == file.identity)
        if writers or file.identity in self.waiting:
            refuse(errno.EAGAIN)
        file.leased = True

    def break_leases(self, identity: int) -> bool:
        """Break leases on an inode opened for writing; returns True if there were none."""
        leases = [f for f in self.files.values() if f.identity == identity and f.leased]
        for lease in leases:
            lease.broken = True
        if leases:
            self.waiting.add(identity)
        else:
            self.waiting.discard(identity)
        return not leases

    def tell(self, directory: int, events: Iterable[tuple[str, bytes, int]]) -> None:
        """Queue the events of a directory: kind, name, and cookie of the pair or 0."""
        for queue in self.queues.values():
            watch = queue.watches.get(directory)
            for kind, name, pair in events if watch is not None else ():
                padded = name.ljust(-(-(len(name) + 1) // 16) * 16, b"\0")
                cookie = self._cookie + pair if pair else 0
                head = _EVENT.pack(watch or 0, IN_EVENTS[kind], cookie, len(padded))
                queue.waiting.append(head + padded)
        self._cookie += 2

    def take(self, queue: int) -> bytes:
        """Return and remove all events waiting in a queue."""
        found = b"".join(self.queues[queue].waiting)
        self.queues[queue].waiting.clear()
        return found
