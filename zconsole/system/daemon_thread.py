"""Work beside the event loop that nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from zconsole.system.process import DeadlineError

_T = TypeVar("_T")


async def in_daemon_thread(job: Callable[..., _T], *args: Any) -> _T:
    """What ``job`` returns or raises, run in a daemon thread of its own.

    The threads of ``asyncio.to_thread`` are joined when the loop ends: one that reads a dying disk
    would keep the program from leaving.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_T] = loop.create_future()
    work = partial(_work, partial(job, *args), loop, result)
    threading.Thread(target=work, daemon=True, name="beside").start()
    return await result


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
        """Run the job in its thread; whoever still waits for it or not, the next may begin."""
        try:
            return job()
        finally:
            self._busy = False


def _work(
    job: Callable[[], _T], loop: asyncio.AbstractEventLoop, result: asyncio.Future[_T]
) -> None:
    try:
        settle = partial(_settle, result, job(), None)
    except Exception as error:
        settle = partial(_settle, result, None, error)
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(settle)


def _settle(result: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if result.done():
        return
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(value)
