"""Work beside the event loop that nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

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


def outcome(job: Callable[[], _T], result: asyncio.Future[_T]) -> Callable[[], None]:
    """Run ``job``; returns what settles ``result`` with it, to be called in the loop."""
    try:
        return partial(_settle, result, job(), None)
    except Exception as error:
        return partial(_settle, result, None, error)


def post(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    """Have ``settle`` called in the loop, unless that was closed meanwhile."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)


def _work(
    job: Callable[[], _T], loop: asyncio.AbstractEventLoop, result: asyncio.Future[_T]
) -> None:
    post(loop, outcome(job, result))


def _settle(result: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if result.done():
        return
    if error is not None:
        result.set_exception(error)
    else:
        result.set_result(value)
