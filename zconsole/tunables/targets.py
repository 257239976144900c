"""The latency to hold, and others for times of the day: ``20ms 22:00-06:00=100ms``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.errors import UsageError
from zconsole.system.day_hours import DayHours, day_hours
from zconsole.units import latency

LEAST, MOST = 0.0005, 10.0
"""Seconds that may be held."""
FORM = "a latency such as 20ms or 0.02s"

_BARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_LATENCY = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """A target for a part of each day."""

    time: DayHours
    target: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What to hold, at any time of the day."""

    usual: float
    """Seconds."""
    hours: tuple[Hours, ...] = ()

    def at(self, t: float, local: Callable[[float], time.struct_time] = time.localtime) -> float:
        """The target at ``t`` (epoch seconds), in seconds."""
        now = local(t)
        found = (h.target for h in self.hours if h.time.has(now.tm_hour, now.tm_min))
        return next(found, self.usual)

    @property
    def words(self) -> tuple[str, ...]:
        """What ``targets`` reads."""
        return (f"{self.usual:g}", *(f"{h.time}={h.target:g}" for h in self.hours))

    def __str__(self) -> str:
        """For people: ``20ms, 22:00-06:00 100ms``."""
        hours = (f"{h.time} {latency(h.target)}" for h in self.hours)
        return ", ".join([latency(self.usual), *hours])


def targets(words: Sequence[str]) -> Targets:
    """The targets that these words name. Raises UsageError for other words."""
    if not words:
        raise UsageError(f"hold-latency needs {FORM}")
    hours = tuple(map(_hours, words[1:]))
    taken: set[int] = set()
    for each in hours:
        if each.time.start == each.time.end or taken & each.time.minutes():
            raise UsageError(f"{each.time}: the whole day, or in another's time")
        taken |= each.time.minutes()
    return Targets(_seconds(words[0]), hours)


def without_unit(words: Sequence[str]) -> str:
    """Which latency of these words is a bare number, read as seconds; empty where none is."""
    numbers = (word.rpartition("=")[2] for word in words)
    return next((number for number in numbers if _BARE.fullmatch(number)), "")


def _hours(word: str) -> Hours:
    time_of_day, _, rest = word.partition("=")
    try:
        found = day_hours(time_of_day)
    except ValueError:
        raise UsageError(
            f"{word!r} is not HH:MM-HH:MM=LATENCY, such as 22:00-06:00=100ms"
        ) from None
    return Hours(found, _seconds(rest))


def _seconds(word: str) -> float:
    found = _LATENCY.fullmatch(word)
    if found is None:
        raise UsageError(f"{word!r} is not {FORM}")
    value = float(found[1]) / (1000.0 if found[2] == "ms" else 1.0)
    if not LEAST <= value <= MOST:
        raise UsageError(f"{word} is out of range: {latency(LEAST)} to {MOST:g}s")
    return value
