"""Hours of the day as people type them: ``22:00-06:00``, by the clock on the wall."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from math import ceil

DAY = 24 * 60
"""Minutes of a day."""

_TIME = r"\s*(\d{1,2}):(\d{1,2})\s*"
_HOURS = re.compile(f"{_TIME}-{_TIME}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DayHours:
    """A part of each day; the same time twice is all of it."""

    start: int
    """Minute of the day, which is the first of them."""
    end: int
    """Minute of the day after the last; before ``start`` where midnight is between."""

    def has(self, hour: int, minute: int) -> bool:
        """Whether a time of the day is in it."""
        return (hour * 60 + minute - self.start) % DAY < self._length

    def includes(self, local: datetime) -> bool:
        """Whether this moment of the machine's own time is in it."""
        return self.has(local.hour, local.minute)

    def until_worked(self, seconds: float, local: datetime) -> float:
        """Seconds from a moment on until so many seconds in these hours have passed."""
        length, day = self._length * 60.0, DAY * 60.0
        minute = local.hour * 60 + local.minute - self.start
        since = (minute * 60 + local.second) % day  # the last beginning of these hours
        today = max(0.0, length - since)
        if seconds <= today:
            return seconds
        left = seconds - today
        whole = ceil(left / length) - 1  # days on which all of these hours are worked
        return day - since + whole * day + left - whole * length

    def minutes(self) -> frozenset[int]:
        """The minutes of the day that are in it."""
        return frozenset((self.start + i) % DAY for i in range(self._length))

    def __str__(self) -> str:
        """``22:00-06:00``."""
        return f"{_shown(self.start)}-{_shown(self.end)}"

    @property
    def _length(self) -> int:
        return (self.end - self.start) % DAY or DAY


def day_hours(text: str) -> DayHours:
    """What such hours mean; 24:00 is 00:00. Raises ValueError for anything else."""
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
