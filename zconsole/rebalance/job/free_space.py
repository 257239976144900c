"""The free space of a job: what it may write, where that is going, and files that found none."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.job.job import Job
from zconsole.units import duration, size

WINDOW = 900.0
"""Seconds looked back."""
STEP = 15.0
"""Seconds between two figures that are kept."""
TREND_SECONDS = 120.0
"""Seconds of figures that make a trend."""
FAR = 86400.0
"""Seconds from which on the floor is too far to be spoken of."""
SPACE_INTERVAL = 0.5
LEAST_ROOM = 16 << 20
"""Bytes free above the floor with which a portion is begun: two of the smallest. With a few KB one
file after the other would be skipped as too large while somebody else fills the pool."""
AT_FLOOR = "free space is at the floor"
NO_SPACE = "No space left on device"
QUOTA = "Disk quota exceeded"
NO_WRITING = "Read-only file system"
READ_ONLY = "mounted read-only"
MOST = 3
"""Batches in a row without space before the job stops."""


@dataclass(slots=True)
class Trend:
    """How fast the room above the floor falls. Times are of a clock that never jumps.

    Copies take room until their originals are gone: what counts is the most there was in the
    earlier and in the later half of the figures.
    """

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, room: int) -> None:
        """Take in the bytes that may be written now; within a STEP, the most there were."""
        if self._seen and now - self._seen[-1][0] < STEP:
            self._seen[-1] = (self._seen[-1][0], max(room, self._seen[-1][1]))
            return
        self._seen.append((now, room))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def forget(self) -> None:
        """The floor has been moved: what was seen is of another."""
        self._seen.clear()

    def outlook(self) -> str | None:
        """When the floor will be reached if it goes on like that; None when not within a day."""
        seen = list(self._seen)
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < TREND_SECONDS:
            return None
        half = len(seen) // 2
        halves = seen[:half], seen[half:]
        (before, then), (after, now) = (max(part, key=lambda seen: seen[1]) for part in halves)
        falls = (then - now) / (after - before) if after > before else 0.0
        left = now / falls if falls > 0 else FAR
        if left >= FAR:
            return None
        return f"free space falls by {size(falls * 60)} a minute: at the floor in {duration(left)}"


@dataclass(slots=True)
class FreeSpace:
    """How much a job may write now; holds it up while free space is at the floor."""

    job: Job
    """Its directories may be on filesystems, or datasets with quotas, of which one is full long
    before another."""
    _reserves: Mapping[bytes, int] = field(default_factory=dict)
    _looked: float | None = None
    is_tight: bool = False
    """Whether there is hardly any room where the plan saw more: no portion is begun then."""
    _rooms: Mapping[int, int] = field(default_factory=dict)
    """By device."""
    _full: int = 0
    """Batches in a row that met a full filesystem."""
    trend: Trend = field(default_factory=Trend)

    def room(self, device: int | None = None, fresh: bool = False) -> int:
        """Bytes that may be written before the floor is reached, as of half a second ago.

        On the filesystem of ``device``, or on each. Raises StopJobError when all of the job's
        directories are gone.
        """
        now = self.job.clocks.monotonic()
        if fresh or self._looked is None or now - self._looked >= SPACE_INTERVAL:
            self._looked = now
            self._rooms = self._look(self.job.reserves)
            self.trend.note(now, min(self._rooms.values()))
        least = min(self._rooms.values())
        return max(0, least if device is None else self._rooms.get(device, least))

    def _look(self, reserves: Mapping[bytes, int]) -> Mapping[int, int]:
        if reserves != self._reserves:
            self._reserves = reserves
            self.trend.forget()
        rooms: dict[int, int] = {}
        self.is_tight = False
        for root, reserve in reserves.items():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                device, status = Path(os.fsdecode(root)).stat().st_dev, os.statvfs(root)
                room = status.f_bavail * status.f_frsize - reserve
                rooms[device] = min(room, rooms.get(device, room))
                self.is_tight |= room <= min(LEAST_ROOM, self.job.terms.rooms.get(root, 0) // 4)
        if not rooms:
            raise StopJobError("its directories are gone")
        return rooms

    def why(self, between: bool) -> str | None:
        """Why the job must not write now; ``between`` two portions, hardly above the floor, too.

        Not in the midst of a portion: what is in flight may be what took the room.
        """
        return AT_FLOOR if self.room() <= 0 or (between and self.is_tight) else None

    def judge(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take in what became of a batch: after MOST in a row without space the job stops.

        A quota of one user, group or project is none: the files of others still have room. Raises
        StopJobError.
        """
        if any(NO_WRITING in (done.reason or "") for done in outcomes):
            raise StopJobError(READ_ONLY)
        over = [done.row.size for done in outcomes if done.reason == QUOTA]
        full = any(done.reason == NO_SPACE for done in outcomes)
        if full or (over and self.room(fresh=True) < max(over)):
            self._full += 1
            if self._full >= MOST:
                raise StopJobError("no space left")
        elif outcomes:
            self._full = 0
