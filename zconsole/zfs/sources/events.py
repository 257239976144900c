"""Follow ``zpool events -Hvf``, the kernel's event log, where that is permitted (root).

Format: zpool_do_events_nvprint in cmd/zpool/zpool_main.c (2.3.9): a line with date and class,
indented ``key = value`` lines, an empty line. Classes: include/sys/sysevent/eventdefs.h,
include/sys/fm/fs/zfs.h.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zconsole.system.async_process import LineProcess, Spawner
from zconsole.system.host import Clocks
from zconsole.zfs.decode.values import VDEV_STATES, state_word

COMMAND = ("zpool", "events", "-Hvf")
KEPT = 200
"""Number of distinct events, the newest, that are kept for a pool that is not watched."""

BURST = 50
"""Number of events of one class that are read between two samples."""

LEAST_LEAP = 1.0
"""Seconds by which the clock is set back at least; adjustments take less."""

RESTART_AFTER = 10.0
"""Seconds before the command is restarted after it ended, which it normally never does, or could
not be started."""

_LEVELS = {
    "warning": (
        "statechange removed checksum authentication delay dio_verify_rd dio_verify_wr sitout"
    ),
    "error": (
        "io data deadman io_failure probe_failure log_replay vdev.open_failed "
        "vdev.no_replicas vdev.bad_label vdev.corrupt_data zpool"
    ),
    "notice": (
        "resilver_start resilver_finish scrub_start scrub_finish scrub_abort scrub_paused "
        "scrub_resume vdev_attach vdev_remove vdev_spare autoreplace"
    ),
}
SEVERITIES = {name: level for level, names in _LEVELS.items() for name in names.split()}
"""Severity by event class; classes not listed here are informational."""
NOISE = frozenset({"config_sync", "history_event"})
SCAN_HISTORY = ("scan aborted", "starting deferred resilver", "scan setup", "scan done")
"""Internal history records that explain the course of a scan (module/zfs/dsl_scan.c)."""

_PREFIX = re.compile(r"^(?:sysevent|ereport|resource)\.fs\.zfs\.")
_PARTITION = re.compile(r"-part1$")
_PAIR = re.compile(r"\s+(\w+) = (.*)")


def parse_event(lines: Iterable[str]) -> dict[str, str]:
    """Return the payload of one event as ``zpool events -v`` prints it, without quotation marks."""
    pairs = (_PAIR.fullmatch(line) for line in lines)
    return {pair[1]: pair[2].strip().strip('"') for pair in pairs if pair is not None}


def describe_event(payload: Mapping[str, str]) -> dict[str, Any] | None:
    """Return an event with the raw form's keys; None for noise and events without class or time."""
    name = _PREFIX.sub("", payload.get("class", ""))
    t = _time(payload.get("time", ""))
    if not name or t is None:
        return None
    text = name.replace("_", " ").replace(".", " ")
    if name in NOISE:
        record = payload.get("history_internal_name", "")
        if not record.startswith(SCAN_HISTORY):
            return None
        text = f"{record} {payload.get('history_internal_str', '')}".strip()
    vdev = _device(payload.get("vdev_path", ""))
    old, new = (_state(payload.get(f"vdev_{key}", "")) for key in ("laststate", "state"))
    severity = SEVERITIES.get(name, "info")
    if name == "statechange":
        text = f"{vdev or 'a vdev'} went from {old or 'unknown'} to {new or 'unknown'}"
        severity = "notice" if new == "ONLINE" else severity
    else:
        text = " ".join(filter(None, (text, vdev and f"on {vdev}", *_details(payload))))
    return {"t": t, "name": name, "text": text, "severity": severity, "vdev": vdev}


def _details(payload: Mapping[str, str]) -> Iterator[str]:
    if kind := payload.get("resilver_type"):
        yield f"({kind})"
    if seconds := round((_number(payload.get("zio_delay", "")) or 0) / 1e9):
        yield f"({seconds} s)"


def _state(value: str) -> str:
    """Convert ``"ONLINE" (0x7)`` or ``0x7`` to a state word."""
    number = _number(value.rpartition("(")[2].rstrip(")"))
    known = number is not None and number < len(VDEV_STATES)
    return state_word(VDEV_STATES[number or 0]) if known else ""


def _device(path: str) -> str | None:
    """Return the last part of a leaf's path, without zpool's own partition suffix."""
    return _PARTITION.sub("", path.rpartition("/")[2]) or None


def _time(value: str) -> float | None:
    """Convert ``0xSECONDS 0xNANOSECONDS`` to epoch seconds; None if it is not in that format."""
    numbers = [_number(word) for word in value.split()]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0] + numbers[1] / 1e9


def _number(word: str) -> int | None:
    """Parse an unsigned number of at most 64 bits, as the kernel prints it, or return None."""
    try:
        number = int(word, 0)
    except ValueError:
        return None
    return number if 0 <= number < 1 << 64 else None


class EventFollower:
    """Follows ``zpool events`` from now on.

    A failing device can report hundreds of errors a second. Repeated events are therefore reported
    once, with a count, and after BURST events of a class between two calls of ``collect`` further
    ones are skipped unparsed.
    """

    def __init__(self, spawner: Spawner, clocks: Clocks) -> None:
        self._spawner = spawner
        self._clocks = clocks
        self._since = clocks.wall()
        """Epoch seconds, by the present clock, before which events are old."""
        self._newest = self._since
        self._ahead = self._since - clocks.steady()
        """Seconds that the wall clock is ahead of the steady one."""
        self._process: LineProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[str, dict[tuple[str, str | None], tuple[dict[str, Any], int]]] = {}
        self._read: Counter[str] = Counter()

    def start(self) -> None:
        """Start following. A command that is missing or not permitted gives no events."""
        self._task = asyncio.create_task(self._follow())

    def collect(self, pool: str) -> list[dict[str, Any]]:
        """Return the pool's events since the last call, oldest first."""
        self._read.clear()
        return [_counted(*each) for each in self._waiting.pop(pool, {}).values()]

    def close(self) -> None:
        """Stop following, without waiting for the command to end."""
        if self._task is not None:
            self._task.cancel()
        if self._process is not None:
            self._process.abandon()

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self._process = await self._spawner.spawn(COMMAND)
                await self._read_all(self._process)
            await asyncio.sleep(RESTART_AFTER)
            # A new process starts with all events that the kernel still holds: skip those seen.
            self._since = max(self._since, math.nextafter(self._newest, math.inf))

    async def _read_all(self, process: LineProcess) -> None:
        lines: list[str] = []
        wanted = False
        while (line := await process.readline()) is not None:
            # Not indented: the date and class of the next event, with a TAB between them.
            if line[:1].strip():
                name = line.rpartition("\t")[2]
                self._read[name] += 1
                wanted = self._read[name] <= BURST
            elif wanted and line:
                lines.append(line)
            elif lines:
                self._keep(parse_event(lines))
                lines.clear()

    def _keep(self, payload: Mapping[str, str]) -> None:
        self._follow_clock()
        event = describe_event(payload)
        if event is None or event["t"] < self._since:
            return
        self._newest = max(self._newest, event["t"])
        waiting = self._waiting.setdefault(payload.get("pool", ""), {})
        key = (event["text"], event["vdev"])
        first, count = waiting.get(key, (event, 0))
        waiting[key] = first, count + 1
        # Drop the oldest.
        if len(waiting) > KEPT:
            del waiting[next(iter(waiting))]

    def _follow_clock(self) -> None:
        """Shift remembered times if the clock was set back."""
        leap = self._clocks.wall() - self._clocks.steady() - self._ahead
        if leap <= -LEAST_LEAP:
            self._ahead += leap
            self._since += leap
            self._newest += leap


def _counted(event: dict[str, Any], count: int) -> dict[str, Any]:
    """Return the event, with a count in its text if it occurred more than once."""
    if count == 1:
        return event
    times = f"{count} times" if count < BURST else f"{count} times or more"
    return {**event, "text": f"{event['text']} ({times})"}
