"""A process that makes copies of small files beside the job's own: on a quick filesystem a job
waits for its one processor, not for disks.

It is handed open originals and directories, and hands back open files of no name. Whatever it
cannot do it leaves to the job; when it dies, what it made is gone as if it had never been.

A portion is one message each way, marshalled: in, the length of the digests wanted and for each
original its metadata, the place of its directory among the descriptors and a number that stands
for that directory; descriptors of the originals, then of the directories. Out, for each original
the copy's inode and digest, or None; the descriptors of the copies, open for reading.
"""

from __future__ import annotations

import array
import contextlib
import marshal
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.content import MAKERS, ChangedError
from zconsole.rebalance.engine.making import Copied, Copyist, Original
from zconsole.rebalance.engine.metadata import Abilities, Metadata
from zconsole.rebalance.engine.syscalls import Sys

MOST_FILES = 64
"""Files of a portion: a message carries 253 descriptors at most (SCM_MAX_FD, net/scm.h)."""
MOST_BYTES = 1 << 16
"""Of a message; a file takes some hundred."""
READING = os.O_RDONLY | os.O_NOATIME


class Wanted(NamedTuple):
    """One file of a portion."""

    meta: Metadata
    directory: int
    """Among the descriptors of the portion's directories."""
    number: int
    """The same directory has the same number in every portion."""


def send(channel: socket.socket, content: Any, fds: Sequence[int]) -> None:
    """One message. Raises OSError."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([marshal.dumps(content)], rights)


def receive(channel: socket.socket) -> tuple[Any, list[int]] | None:
    """The next message, None at the end. Raises OSError, ValueError where it is damaged."""
    data, fds, flags, _ = socket.recv_fds(
        channel, MOST_BYTES, 2 * MOST_FILES, socket.MSG_CMSG_CLOEXEC
    )
    if not data:
        return None
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        close(fds)
        raise ValueError("a message that is too long")
    try:
        return marshal.loads(data), fds
    except (EOFError, TypeError, ValueError) as error:
        close(fds)
        raise ValueError(f"no message: {error}") from error


def close(fds: Sequence[int]) -> None:
    """Close all of them."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


class Copying:
    """Makes the copies of portions."""

    def __init__(self, system: Sys) -> None:
        self._sys = system
        self._abilities: dict[int, Abilities] = {}
        self._born: dict[int, Metadata] = {}
        self._copyists: dict[int, Copyist] = {}

    def serve(self, channel: socket.socket) -> None:
        """Answer portion after portion. Raises OSError, ValueError."""
        while message := receive(channel):
            (length, files), fds = message
            try:
                made = self._portion(length, [Wanted(Metadata(*m), d, n) for m, d, n in files], fds)
            finally:
                close(fds)  # before the answer: what the job lets go of then is free for others
            copies = [each.fd for each in made if each]
            try:
                send(channel, [each and each[1:] for each in made], copies)
            finally:
                close(copies)

    def _portion(
        self, length: int, files: Sequence[Wanted], fds: Sequence[int]
    ) -> list[Copied | None]:
        if length not in self._copyists:
            self._copyists[length] = Copyist(self._sys, MAKERS[length])
        copyist, directories = self._copyists[length], fds[len(files) :]
        for fd in fds[: len(files)]:
            self._sys.fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
        made: list[Copied | None] = []
        for fd, wanted in zip(fds, files, strict=False):
            try:
                made.append(self._copied(copyist, fd, wanted, directories[wanted.directory]))
            except (OSError, ChangedError):
                made.append(None)
        return made

    def _copied(self, copyist: Copyist, fd: int, wanted: Wanted, directory: int) -> Copied | None:
        """Raises OSError, ChangedError."""
        status, born = self._sys.fstat(fd), self._born.get(wanted.number)
        abilities = self._abilities.setdefault(status.st_dev, Abilities())
        copy = self._sys.open_unnamed(directory, metadata.first_mode(wanted.meta, born))
        try:
            original = Original(fd, status, wanted.meta)
            made = copyist.fill(copy, original, born, abilities, lambda count: None)
            self._born[wanted.number] = made.born
            if made.different:
                return None
            return Copied(self._sys.reopen(copy, READING), made.inode, made.written.digest)
        finally:
            self._sys.close(copy)


def main() -> None:
    """Serve the socket whose descriptor is the first argument, until the job has closed it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the job hears them, and ends
    channel = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(OSError, ValueError):
        Copying(Sys()).serve(channel)


if __name__ == "__main__":
    main()
