"""Shared by the commands that sample: rounds of a feed, and the event loop for them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from zconsole.cli.output import say
from zconsole.timeline.feed import Feed, Update

Result = TypeVar("Result")


async def rounds(feed: Feed, count: int | None = None) -> AsyncGenerator[Update, None]:
    """The rounds of a feed, ``count`` at most; it is closed at the end.

    Problems beside the sampling are reported on stderr.
    """
    taken = 0
    try:
        while taken != count and (update := await feed.next()) is not None:
            for note in update.notes:
                say(note)
            yield update
            taken += 1
            await asyncio.sleep(0)  # a recording never waits, and signals must come through
    finally:
        await feed.aclose()
        for note in feed.alerts.take_notes() if feed.alerts else ():
            say(note)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """What a command's coroutine returns, run in an event loop of its own.

    On SIGTERM, or SIGHUP where nohup does not ignore that, it ends as if interrupted: connections
    and histories are closed.
    """

    async def _in_order() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if task is not None and signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, task.cancel)
        try:
            return await main
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    return asyncio.run(_in_order())
