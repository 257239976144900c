"""The job's end of the process that makes copies beside it: see ``copyist``."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from zconsole.rebalance.engine import copyist
from zconsole.rebalance.engine.content import SMALL
from zconsole.rebalance.engine.copyist import MOST_FILES
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.making import Copied

COPYIST = copyist.__name__
WORTH = 256
"""Files of a batch from which on another process is worth its start."""
AT_ONCE = 4
"""Portions it has: one to work on, and some to go on with while the job waits for a disk."""
DEADLINE = 30.0
"""Seconds for a portion, which takes a slow disk one or two."""
LEAST = 8
"""Files left from which on it is given some."""
PORTION_BYTES = 1 << 20
"""Content of a portion at most: what it has been handed is copied, whatever a limit says then."""


class Beside(Protocol):
    """A process that ends when its socket is closed."""

    def leave(self) -> None:
        """Let go of it; it is killed where it does not end by itself."""


Start = Callable[[socket.socket], Beside]
"""Starts the process with its end of a socket. Raises OSError."""


def fits(item: Item) -> bool:
    """Whether a file is one for the other process: small, without holes or attributes."""
    whole = item.status.st_blocks * 512 >= item.size
    return whole and item.size <= SMALL and not item.meta.xattrs


@dataclass(slots=True)
class Aside:
    """Hands out portions of a batch and takes back the copies; fails silently, and for good."""

    start: Start | None = None
    """None: there is no processor for it."""
    worth: int = WORTH
    """Files of a batch that it is started for."""
    clock: Callable[[], float] = time.monotonic
    failed: bool = False
    _process: Beside | None = None
    _channel: socket.socket | None = None
    _answers: select.poll = field(default_factory=select.poll)
    """Where it is told that something has come back."""
    _heard_at: float = 0.0
    """When it last said something, or was given something to do while it had nothing."""
    _out: deque[list[Item]] = field(default_factory=deque)

    @property
    def able(self) -> bool:
        """Whether there is such a process, or would be."""
        return self.start is not None and not self.failed

    @property
    def processes(self) -> frozenset[str]:
        """The number of the process, which has files open for this one."""
        number = getattr(self._process, "number", None)
        return frozenset() if number is None else frozenset({str(number)})

    @property
    def running(self) -> bool:
        """Whether it was started, and has not been let go of."""
        return self._channel is not None

    @property
    def wants(self) -> bool:
        """Whether it can do with one more portion."""
        return self.running and not self.failed and len(self._out) < AT_ONCE

    @property
    def busy(self) -> bool:
        """Whether anything handed out has not come back."""
        return bool(self._out)

    def begin(self) -> None:
        """Have the process started, before any file is open: it gets none but its own."""
        if self.start is None or self.failed or self.running:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = self.start(theirs)
            except OSError:
                ours.close()
                self.failed = True
                return
        self._channel = ours
        self._answers.register(ours, select.POLLIN)

    def hand_out(self, waiting: deque[Item], length: int) -> None:
        """Give it the last of these files that fit, for which digests have ``length`` bytes.

        No more than half of them: whoever is done first takes what is left.
        """
        while self.wants and len(waiting) >= LEAST:
            self.give(portion(waiting, min(MOST_FILES, len(waiting) // 2)), length)

    def give(self, items: list[Item], length: int) -> None:
        """Give it files, MOST_FILES and PORTION_BYTES at most, if any."""
        if not items:
            return
        places = [item.places[0] for item in items]
        directories = {place.row.directory: place.directory.fd for place in places}
        at = {number: place for place, number in enumerate(directories)}
        files = [
            (tuple(item.meta._replace(xattrs={})), at[place.row.directory], place.row.directory)
            for item, place in zip(items, places, strict=True)
        ]
        if not self._out:
            self._heard_at = self.clock()
        self._out.append(items)
        for item in items:
            item.handed = True
        fds = [*(item.source for item in items), *directories.values()]
        try:
            copyist.send(self._open, (length, files), fds)
        except OSError:
            self.failed = True

    def take(self, seconds: float) -> list[tuple[Item, Copied | None]]:
        """What has come back by then, all of it at once when it failed; None: not made."""
        if self.failed:
            return self._lost()
        if not self._out:
            return []
        if not self._answers.poll(1000 * seconds):
            return self._overdue()
        try:
            return self._heard(copyist.receive(self._open))
        except (OSError, ValueError):
            return self._lost()

    def leave(self) -> None:
        """Let go of the process, and of what it has not handed back."""
        self._out.clear()
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            self._answers.unregister(channel)
            channel.close()
        if process is not None:
            process.leave()

    @property
    def _open(self) -> socket.socket:
        if self._channel is None:
            raise OSError("no process")
        return self._channel

    def _overdue(self) -> list[tuple[Item, Copied | None]]:
        """Nothing, or after DEADLINE all that is out: the job can do it as well."""
        if self.clock() - self._heard_at < DEADLINE:
            return []
        return self._lost()

    def _lost(self) -> list[tuple[Item, Copied | None]]:
        self.failed = True
        lost: list[tuple[Item, Copied | None]] = [(i, None) for items in self._out for i in items]
        self.leave()
        return lost

    def _heard(self, message: tuple[object, list[int]] | None) -> list[tuple[Item, Copied | None]]:
        """Raises ValueError where that is no answer to the portion."""
        if message is None:
            raise ValueError("the end")
        answers, fds = message
        items, left = self._out[0], iter(fds)
        if (
            not isinstance(answers, list)
            or len(answers) != len(items)
            or len(fds) != sum(answer is not None for answer in answers)
        ):
            copyist.close(fds)
            raise ValueError("another portion")
        self._out.popleft()
        self._heard_at = self.clock()
        copies = [answer and Copied(next(left), *answer) for answer in answers]
        return list(zip(items, copies, strict=True))


def portion(waiting: deque[Item], most: int = MOST_FILES) -> list[Item]:
    """The last files, taken off: so many and PORTION_BYTES at most, less those given up by now."""
    files: list[Item] = []
    room = PORTION_BYTES
    for _ in range(min(most, len(waiting))):
        if files and waiting[-1].size > room:
            break
        item = waiting.pop()
        if not item.done:
            files.append(item)
            room -= item.size
    return files
