"""``zpool history -i``: which scrubs of a pool finished, also before zconsole ran. Root only.

Neither a pool's config nor ``zpool status`` tells a scrub of everything from one that goes on from
the last (``-C``) or of a range of dates (``-S``, ``-E``); the record of its start does. The first
record, of the pool's creation, is never overwritten (module/zfs/spa_history.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any, TypedDict

from zconsole.system.async_process import CommandRunner
from zconsole.zfs.decode.scan_extent import SCRUB, is_full
from zconsole.zfs.raw import numbers
from zconsole.zfs.sources.occasional import AT_MOST_EVERY, OccasionalCommand
from zconsole.zfs.sources.reader import Commands

DEADLINE = 60.0
"""Seconds: a log may have grown to 1 GB."""
LINES = re.compile(
    rb"^History for .*\n.*|^\S+ \[txg:\d+\] scan (?:setup|done|cancelled|aborted)\b.*", re.MULTILINE
)
"""Of the output, all that is needed: the first record, and those of scans."""

_DATE = r"(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d)"
_FIRST = re.compile(rf"^History for .*\n{_DATE}", re.MULTILINE | re.ASCII)
_SCAN = re.compile(
    rf"^{_DATE} \[txg:(\d+)\] scan (setup|done|cancelled|aborted)\b(.*)$", re.MULTILINE | re.ASCII
)
"""``spa_history_log_internal`` in module/zfs/dsl_scan.c; error scrubs have other names."""
_SETUP = re.compile(r" func=(?P<func>\d+) mintxg=(?P<mintxg>\d+) maxtxg=(?P<maxtxg>\d+)", re.ASCII)
_TEXT_SCAN = re.compile(r"^[ \t]*scan: (.*)$", re.MULTILINE)


class PastScrub(TypedDict):
    """A scrub in a pool's history. Epoch seconds."""

    start: float
    end: float | None
    """When it was done; None while it runs, and of one that was canceled."""
    full: bool
    """Whether it was to read everything."""


class PastScrubs(TypedDict):
    """What a pool's history tells."""

    created: float | None
    scrubs: list[PastScrub]
    """The newest one, and the newest full one that finished."""


class HistoryReader(OccasionalCommand):
    """The scrubs of one pool; asked for once, and again whenever a scan starts or ends."""

    def __init__(self, runner: CommandRunner, pool: str) -> None:
        """``runner`` may leave out everything but ``LINES``."""
        super().__init__(runner, DEADLINE)
        self._pool = pool
        self._found: PastScrubs | None = None
        self._scan: object = None

    def newest(self, form: Mapping[str, Any]) -> PastScrubs | None:
        """What is known now; starts to ask again where the form shows another scan."""
        scan = _scan(form)
        if self._scan is None or (scan != self._scan and self._again(AT_MOST_EVERY)):
            self._scan = scan
        return self._found

    async def _ask(self, commands: Commands) -> None:
        self._found = past_scrubs(await commands.output("zpool", "history", "-i", self._pool))

    def _failed(self) -> None:
        """What was told stays true."""


def past_scrubs(text: str, zone: tzinfo | None = None) -> PastScrubs:
    """What the output tells; ``zone`` is that of its dates, None the machine's."""
    first = _FIRST.search(text)
    newest: PastScrub | None = None
    full: PastScrub | None = None
    for scrub in _scrubs(text, zone):
        newest = scrub
        if scrub["full"] and scrub["end"] is not None:
            full = scrub
    found = [scrub for scrub in (newest, full) if scrub is not None]
    return {
        "created": _time(first[1], zone) if first else None,
        "scrubs": found[:1] if newest is full else found,
    }


def _scrubs(text: str, zone: tzinfo | None) -> Iterator[PastScrub]:
    """Every scrub, oldest first."""
    running: PastScrub | None = None
    for date, txg, what, rest in _SCAN.findall(text):
        t = _time(date, zone)
        if t is None:
            continue
        if running is not None:
            yield {**running, "end": t if what == "done" else None}
            running = None
        setup = _SETUP.match(rest) if what == "setup" else None
        if setup is not None and int(setup["func"]) == SCRUB:
            full = is_full({**setup.groupdict(), "txg": txg})
            running = {"start": t, "end": None, "full": full}
    if running is not None:
        yield running


def _time(date: str, zone: tzinfo | None) -> float | None:
    """Epoch seconds; None for a date that does not exist."""
    try:
        return datetime.strptime(date, "%Y-%m-%d.%H:%M:%S").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _scan(form: Mapping[str, Any]) -> object:
    """What tells one state of a pool's scan from another: not its progress."""
    if "libzfs" in form:
        return tuple(numbers(form["libzfs"].get("vdev_tree", {}).get("scan_stats", ()))[:4])
    if "status" in form:
        pools = form["status"].get("pools", {})
        stats = [pool.get("scan_stats", {}) for pool in pools.values()]
        keys = ("function", "state", "start_time", "end_time")
        return [tuple(scan.get(key) for key in keys) for scan in stats]
    return _TEXT_SCAN.findall(form.get("text", ""))
