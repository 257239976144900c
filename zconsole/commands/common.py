"""What several commands share: options, opening sources, printing rounds of frames."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeVar

from zconsole.frame import Frame
from zconsole.history.remember import HistoryStore
from zconsole.report import json, text
from zconsole.scanreport.keeper import ReportKeeper
from zconsole.scanreport.store import ReportStore
from zconsole.session import Session
from zconsole.sources.base import Source
from zconsole.state import StateError, state_dir, state_dirs

Result = TypeVar("Result")


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


def live_session(keep: bool = True) -> Session:
    """A session for samples of this machine: its dates in the machine's zone, its history on disk.

    With ``keep`` the history is written too, where there is a directory of one's own for it.
    """
    readable = state_dirs()
    try:
        directory = state_dir(create=True) if keep else None
    except StateError as error:
        print(f"zconsole: no history kept: {error}", file=sys.stderr)
        directory = None
    reports = ReportKeeper(ReportStore(directory, readable)) if directory else None
    return Session(zone=local_zone(), store=HistoryStore(directory, readable), reports=reports)


def local_zone() -> tzinfo:
    """The machine's time zone, following its changes of offset."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        from pathlib import Path

        with Path("/etc/localtime").open("rb") as zone_file:
            return ZoneInfo.from_file(zone_file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
