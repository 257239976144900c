"""Background work that the program need not wait for at its end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from zconsole.system.patient import begun
from zconsole.system.process import DeadlineError

_T = TypeVar("_T")
_Read = Callable[[], None]

LINGER = 5.0
"""Seconds that a thread waits for the next read."""


async def in_daemon_thread(job: Callable[..., _T], *args: Any) -> _T:
    """What ``job`` returns or raises, run in a daemon thread of its own.

    The threads of ``asyncio.to_thread`` are joined when the loop ends: one that reads a dying disk
    would keep the program from leaving.
    """
    return await asyncio.wrap_future(begun(partial(job, *args)))


class FileThread:
    """Runs cheap reads of /proc and /sys beside the event loop, one at a time.

    While one is stuck, no other is begun. The thread stays for the next one, as starting one costs
    more than most reads, and ends when none has come for a while.
    """

    def __init__(self) -> None:
        self._busy = False
        self._waiting: SimpleQueue[_Read] = SimpleQueue()
        self._changing = threading.Lock()
        self._serving = False

    async def run(self, job: Callable[[], _T], deadline: float) -> _T:
        """What ``job`` returns or raises. Raises DeadlineError after ``deadline`` seconds."""
        if self._busy:
            raise DeadlineError("reading /proc and /sys does not end", lambda: self._busy)
        self._busy = True
        loop = asyncio.get_running_loop()
        attempt: asyncio.Future[_T] = loop.create_future()
        self._put(partial(self._read, job, loop, attempt))
        try:
            async with asyncio.timeout(deadline):
                return await attempt
        except TimeoutError:
            text = f"reading /proc and /sys took over {deadline:g} s"
            raise DeadlineError(text, lambda: self._busy) from None

    def _put(self, read: _Read) -> None:
        with self._changing:
            self._waiting.put(read)
            if not self._serving:
                self._serving = True
                threading.Thread(target=self._serve, daemon=True, name="files").start()

    def _serve(self) -> None:
        """Read what is waiting, until nothing has come for a while."""
        while (read := self._next()) is not None:
            read()

    def _next(self) -> _Read | None:
        try:
            return self._waiting.get(timeout=LINGER)
        except Empty:
            with self._changing:
                self._serving = not self._waiting.empty()
                return self._waiting.get() if self._serving else None

    def _read(
        self, job: Callable[[], _T], loop: asyncio.AbstractEventLoop, attempt: asyncio.Future[_T]
    ) -> None:
        """Run the job, whether or not its caller still waits; then the next may begin."""
        try:
            settle = partial(attempt.set_result, job())
        except Exception as error:  # handed to whoever waits
            settle = partial(attempt.set_exception, error)
        finally:
            self._busy = False

        def _settle_if_awaited() -> None:
            if not attempt.done():
                settle()

        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_settle_if_awaited)
