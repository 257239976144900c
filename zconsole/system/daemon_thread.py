"""Background work that the program need not wait for at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from zconsole.system.patient import begun
from zconsole.system.process import DeadlineError

_T = TypeVar("_T")


async def in_daemon_thread(job: Callable[..., _T], *args: Any) -> _T:
    """What ``job`` returns or raises, run in a daemon thread of its own.

    The threads of ``asyncio.to_thread`` are joined when the loop ends: one that reads a dying disk
    would keep the program from leaving.
    """
    _, result = begun(partial(job, *args))
    return await asyncio.wrap_future(result)


class FileThread:
    """Runs cheap reads of /proc and /sys beside the event loop, one at a time.

    While one is stuck, no other is begun.
    """

    def __init__(self) -> None:
        self._busy = False

    async def run(self, job: Callable[[], _T], deadline: float) -> _T:
        """What ``job`` returns or raises. Raises DeadlineError after ``deadline`` seconds."""
        if self._busy:
            raise DeadlineError("reading /proc and /sys does not end", lambda: self._busy)
        self._busy = True
        try:
            async with asyncio.timeout(deadline):
                return await in_daemon_thread(self._freed, job)
        except TimeoutError:
            text = f"reading /proc and /sys took over {deadline:g} s"
            raise DeadlineError(text, lambda: self._busy) from None

    def _freed(self, job: Callable[[], _T]) -> _T:
        """Run the job in its thread; afterwards the next may begin."""
        try:
            return job()
        finally:
            self._busy = False
