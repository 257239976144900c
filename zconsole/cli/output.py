"""Printing by commands, on stdout and stderr. It imports no event loop: some commands need none."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from zconsole.output import json, text
from zconsole.system.printable import clean
from zconsole.timeline.frame import Frame
from zconsole.zfs.sources.recording import Gaps

if TYPE_CHECKING:
    from zconsole.system.record_file import LockedStore

NO_POOLS = "no pools are imported"


def say(message: str) -> None:
    """Print a message on stderr; stdout is for data only."""
    print(f"zconsole: {clean(message)}", file=sys.stderr, flush=True)


def say_gaps(gaps: Gaps) -> None:
    """Report the samples of a recording that couldn't be read, if any."""
    if gaps.count:
        say(gaps.words)


def say_problems(store: LockedStore) -> None:
    """Report the files of a store that couldn't be read."""
    for problem in store.problems.values():
        say(problem)


def report(frames: Sequence[Frame], as_json: bool) -> None:
    """Print each pool as a full report, or as a line of JSON."""
    for frame in frames:
        print(_object(frame) if as_json else text.status_report(frame))


def show(frames: Sequence[Frame], as_json: bool, zone: tzinfo | None) -> None:
    """Print a round: a JSON object or a line of text per frame, and flush."""
    for frame in frames:
        print(_object(frame) if as_json else text.watch_line(frame, zone))
    sys.stdout.flush()


def _object(frame: Frame) -> str:
    return json.line(json.sample_object(frame))


def print_row(record: Mapping[str, Any], line: str, as_json: bool) -> None:
    """Print one row of a list: the record as JSON, or the line."""
    print(json.line(record) if as_json else clean(line))


def local_zone() -> tzinfo:
    """Return the user's time zone: that of ``TZ``, else the machine's, with daylight saving."""
    named = os.environ.get("TZ")
    try:
        if named is None:
            return _zone_in(Path("/etc/localtime"))
        name = named.removeprefix(":")
        return _zone_in(Path(name)) if name.startswith("/") else ZoneInfo(name or "UTC")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        # TZ is a rule (``JST-9``), or there are no time zone files: use the current offset.
        return timezone(timedelta(seconds=time.localtime().tm_gmtoff))


def _zone_in(path: Path) -> tzinfo:
    with path.open("rb") as zone_file:
        return ZoneInfo.from_file(zone_file, key="localtime")
