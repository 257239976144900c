"""What the commands that sample share: rounds of frames, and an event loop to run them in."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

from zconsole.monitor.device_prober import DeviceProber
from zconsole.monitor.frame import Frame
from zconsole.monitor.session import Session
from zconsole.units import clean
from zconsole.zfs.sources.base import Source
from zconsole.zfs.sources.recording_gaps import Gaps

Result = TypeVar("Result")


async def rounds(
    source: Source, session: Session, interval: float, signs: DeviceProber | None = None
) -> AsyncGenerator[list[Frame], None]:
    """Frames of each sample of ``source``, ``interval`` seconds from start to start.

    With ``signs`` the devices in trouble are asked about beside it.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    try:
        while (raws := await source.sample()) is not None:
            frames = session.advance(raws)
            complain(session.take_notes())
            yield list(signs.look(frames) if signs is not None else frames)
            due = max(due + interval, loop.time()) if interval else loop.time()
            await asyncio.sleep(max(0.0, due - loop.time()))
        session.end()
    finally:
        session.close()
        if signs is not None:
            await signs.aclose()
        await source.aclose()


def complain(notes: Iterable[str]) -> None:
    """Tell on stderr what went wrong beside the work."""
    for note in notes:
        print(f"zconsole: {clean(note)}", file=sys.stderr, flush=True)


def tell_gaps(gaps: Gaps) -> None:
    """Tell on stderr what of a recording is missing."""
    complain([gaps.words] if gaps.count else [])


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """What a command's coroutine returns, run in an event loop of its own.

    Told to end, it ends as if interrupted: connections and histories are closed.
    """
    return asyncio.run(_in_order(main))


def end_when_told() -> None:
    """Cancel the current task on SIGTERM, and on SIGHUP where nohup does not ignore it."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if task is not None and signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, task.cancel)


async def _in_order(main: Coroutine[Any, Any, Result]) -> Result:
    end_when_told()
    try:
        return await main
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
