"""Blocking work in daemon threads for an event loop; the program can end without waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from zconsole.system.patient import NotAskedError, Worker, begun
from zconsole.system.process import DeadlineError

_T = TypeVar("_T")

LINGER = 5.0
"""Seconds that a thread waits for the next read before it ends."""


async def in_daemon_thread(job: Callable[..., _T], *args: Any) -> _T:
    """Run ``job`` in a new daemon thread; return or raise what it does.

    Raises NotAskedError if no thread can be started.

    ``asyncio.to_thread`` is no use here: its threads are joined when the loop ends, so that one
    that reads a dying disk would keep the program from exiting.
    """
    return await asyncio.wrap_future(begun(partial(job, *args)))


class FileThread:
    """Runs cheap reads of /proc and /sys in a thread of its own, one at a time.

    While a read is stuck, no other is started. The thread stays for the next read, as starting one
    costs more than most reads do, and ends when none comes for LINGER seconds.
    """

    def __init__(self) -> None:
        self._worker = Worker("files", LINGER)
        self._newest: Future[Any] | None = None

    async def run(self, job: Callable[[], _T], deadline: float) -> _T:
        """Run ``job`` in the thread; return or raise what it does.

        Raises DeadlineError after ``deadline`` seconds, or at once while an earlier job is stuck or
        if no thread can be started.
        """
        if self._is_busy():
            raise DeadlineError("reading /proc and /sys does not end", self._is_busy)
        try:
            attempt = self._newest = self._worker.ask(job)
        except NotAskedError as error:
            raise DeadlineError(str(error)) from None
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.wrap_future(attempt)
        except TimeoutError:
            text = f"reading /proc and /sys took over {deadline:g} s"
            raise DeadlineError(text, self._is_busy) from None

    def _is_busy(self) -> bool:
        return self._newest is not None and not self._newest.done()
