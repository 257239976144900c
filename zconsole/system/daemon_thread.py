"""Background work beside an event loop, which the program need not wait for at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from zconsole.system.patient import Worker, begun
from zconsole.system.process import DeadlineError

_T = TypeVar("_T")

LINGER = 5.0
"""Seconds that a thread waits for the next read."""


async def in_daemon_thread(job: Callable[..., _T], *args: Any) -> _T:
    """What ``job`` returns or raises, run in a daemon thread of its own.

    Raises NotAskedError where none can be started.

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
        self._worker = Worker("files", LINGER)
        self._newest: Future[Any] | None = None

    async def run(self, job: Callable[[], _T], deadline: float) -> _T:
        """What ``job`` returns or raises. Raises DeadlineError after ``deadline`` seconds."""
        if self._is_busy():
            raise DeadlineError("reading /proc and /sys does not end", self._is_busy)
        attempt = self._newest = self._worker.ask(job)
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.wrap_future(attempt)
        except TimeoutError:
            text = f"reading /proc and /sys took over {deadline:g} s"
            raise DeadlineError(text, self._is_busy) from None

    def _is_busy(self) -> bool:
        return self._newest is not None and not self._newest.done()
