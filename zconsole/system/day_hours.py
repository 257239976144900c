"""Hours of the day, such as ``22:00-06:00``, in the machine's local time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

DAY = 24 * 60
"""Minutes of a day."""

_TIME = r"\s*(\d{1,2}):(\d{1,2})\s*"
_HOURS = re.compile(f"{_TIME}-{_TIME}", re.ASCII)


def local_time(at: float) -> datetime:
    """Return the machine's local time at ``at``, in epoch seconds."""
    return datetime.fromtimestamp(at, UTC).astimezone()


@dataclass(frozen=True, slots=True)
class DayHours:
    """A part of each day; the whole day if ``start`` and ``end`` are the same."""

    start: int
    """First minute, counted from midnight."""
    end: int
    """Minute after the last one; less than ``start`` if midnight is between them."""

    def has(self, hour: int, minute: int) -> bool:
        """Return whether a time of day is within these hours."""
        return (hour * 60 + minute - self.start) % DAY < self._length

    def includes(self, local: datetime) -> bool:
        """Return whether a moment, in the machine's local time, is within these hours."""
        return self.has(local.hour, local.minute)

    def until_worked(self, seconds: float, local: datetime) -> float:
        """Return the seconds from ``local`` until ``seconds`` within these hours have passed."""
        length, day = self._length * 60.0, DAY * 60.0
        minute = local.hour * 60 + local.minute - self.start
        since = (minute * 60 + local.second) % day  # seconds since these hours last began
        today = max(0.0, length - since)
        if seconds <= today:
            return seconds
        left = seconds - today
        whole = ceil(left / length) - 1  # further days on which all of these hours are used
        return day - since + whole * day + left - whole * length

    def minutes(self) -> frozenset[int]:
        """Return the minutes of these hours, counted from midnight."""
        return frozenset((self.start + i) % DAY for i in range(self._length))

    def __str__(self) -> str:
        """Return the hours as people type them: ``22:00-06:00``."""
        return f"{_shown(self.start)}-{_shown(self.end)}"

    @property
    def _length(self) -> int:
        return (self.end - self.start) % DAY or DAY


def day_hours(text: str) -> DayHours:
    """Parse hours such as ``22:00-06:00``; 24:00 is 00:00. Raises ValueError for anything else."""
    found = _HOURS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not HH:MM-HH:MM")
    numbers = [int(number) for number in found.groups()]
    return DayHours(_minute(*numbers[:2]), _minute(*numbers[2:]))


def _minute(hour: int, minute: int) -> int:
    if minute > 59 or hour * 60 + minute > DAY:
        raise ValueError(f"{hour}:{minute} is not a time of the day")
    return (hour * 60 + minute) % DAY


def _shown(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
