"""The event loop of commands that sample, and the rounds of a feed in it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from zconsole.cli.output import say
from zconsole.timeline.feed import Feed, Update

Result = TypeVar("Result")


async def rounds(feed: Feed, count: int | None = None) -> AsyncGenerator[Update, None]:
    """Yield the rounds of a feed, at most ``count``, and close the feed at the end.

    Problems other than with sampling, such as a history that can't be written, go to stderr.
    """
    taken = 0
    try:
        while taken != count and (update := await feed.next()) is not None:
            for note in update.notes:
                say(note)
            yield update
            taken += 1
            await asyncio.sleep(0)  # let signal handlers run: a recording never waits by itself
    finally:
        await feed.aclose()
        for note in feed.alerts.take_notes() if feed.alerts else ():
            say(note)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine in a new event loop, and return its result.

    SIGTERM ends it as Ctrl-C does, with connections and histories closed; so does SIGHUP, unless
    that is ignored, as nohup makes it. Raises KeyboardInterrupt then.
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
