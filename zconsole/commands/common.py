"""What several commands share: rounds of frames, and printing them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from zconsole.frame import Frame
from zconsole.report import json, text
from zconsole.session import Session
from zconsole.sources.base import Source

Result = TypeVar("Result")


def report(frames: Sequence[Frame], as_json: bool) -> None:
    """Print each pool in full, or as a JSON line."""
    for frame in frames:
        print(json.line(json.sample_object(frame)) if as_json else text.status_report(frame))


def show(frames: Sequence[Frame], as_json: bool, zone: tzinfo | None) -> None:
    """Print a round: a JSON object or a text line a frame, flushed at once."""
    for frame in frames:
        line = json.line(json.sample_object(frame)) if as_json else text.watch_line(frame, zone)
        print(line)
    sys.stdout.flush()


async def rounds(
    source: Source, session: Session, interval: float
) -> AsyncGenerator[list[Frame], None]:
    """Frames of each sample of ``source``, ``interval`` seconds from start to start."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    try:
        while (raws := await source.sample()) is not None:
            yield list(session.advance(raws))
            due = max(due + interval, loop.time()) if interval else loop.time()
            await asyncio.sleep(max(0.0, due - loop.time()))
    finally:
        session.close()
        await source.aclose()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """What a command's coroutine returns, run in an event loop of its own."""
    return asyncio.run(main)


def local_zone() -> tzinfo:
    """The machine's time zone, following its changes of offset."""
    try:
        with Path("/etc/localtime").open("rb") as zone_file:
            return ZoneInfo.from_file(zone_file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
