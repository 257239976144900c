"""What several commands share: rounds of frames, and printing them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from zconsole.errorwatch.signs import SignWatch
from zconsole.frame import Frame
from zconsole.session import Session
from zconsole.sources.base import Source

Result = TypeVar("Result")


def report(frames: Sequence[Frame], as_json: bool) -> None:
    """Print each pool in full, or as a JSON line."""
    if as_json:
        _show_json(frames)
        return
    from zconsole.report import text

    for frame in frames:
        print(text.status_report(frame))


def show(frames: Sequence[Frame], as_json: bool, zone: tzinfo | None) -> None:
    """Print a round: a JSON object or a text line a frame, flushed at once."""
    if as_json:
        _show_json(frames)
    else:
        _show_lines(frames, zone)
    sys.stdout.flush()


# Each is loaded where it is used: the console needs neither, --json only the one.


def _show_json(frames: Sequence[Frame]) -> None:
    from zconsole.report import json

    for frame in frames:
        print(json.line(json.sample_object(frame)))


def _show_lines(frames: Sequence[Frame], zone: tzinfo | None) -> None:
    from zconsole.report import text

    for frame in frames:
        print(text.watch_line(frame, zone))


async def rounds(
    source: Source, session: Session, interval: float, signs: SignWatch | None = None
) -> AsyncGenerator[list[Frame], None]:
    """Frames of each sample of ``source``, ``interval`` seconds from start to start.

    With ``signs`` the devices in trouble are asked about beside it.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    try:
        while (raws := await source.sample()) is not None:
            frames = session.advance(raws)
            yield list(signs.look(frames) if signs is not None else frames)
            due = max(due + interval, loop.time()) if interval else loop.time()
            await asyncio.sleep(max(0.0, due - loop.time()))
    finally:
        session.close()
        if signs is not None:
            await signs.aclose()
        await source.aclose()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """What a command's coroutine returns, run in an event loop of its own.

    Told to end (SIGTERM), it ends as if interrupted: connections and histories are closed.
    """
    return asyncio.run(_in_order(main))


async def _in_order(main: Coroutine[Any, Any, Result]) -> Result:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await main
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def local_zone() -> tzinfo:
    """The machine's time zone, following its changes of offset."""
    try:
        with Path("/etc/localtime").open("rb") as zone_file:
            return ZoneInfo.from_file(zone_file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
