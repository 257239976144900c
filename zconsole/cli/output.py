"""What commands print of frames; imports no event loop, which saved output needs none of."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from zconsole.monitor.frame import Frame


def report(frames: Sequence[Frame], as_json: bool) -> None:
    """Print each pool in full, or as a JSON line."""
    if as_json:
        _show_json(frames)
        return
    from zconsole.output import text

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
    from zconsole.output import json

    for frame in frames:
        print(json.line(json.sample_object(frame)))


def _show_lines(frames: Sequence[Frame], zone: tzinfo | None) -> None:
    from zconsole.output import text

    for frame in frames:
        print(text.watch_line(frame, zone))


def local_zone() -> tzinfo:
    """The user's time zone (``TZ``, else the machine's), following its changes of offset."""
    named = os.environ.get("TZ")
    try:
        if named is None:
            return _zone_in(Path("/etc/localtime"))
        name = named.removeprefix(":")
        return _zone_in(Path(name)) if name.startswith("/") else ZoneInfo(name or "UTC")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        # A rule (``JST-9``), or a machine without the time zone files: today's offset.
        return timezone(timedelta(seconds=time.localtime().tm_gmtoff))


def _zone_in(path: Path) -> tzinfo:
    with path.open("rb") as zone_file:
        return ZoneInfo.from_file(zone_file, key="localtime")
