"""The latency to hold, and others for times of the day: ``20ms 22:00-06:00=100ms``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.errors import UsageError
from zconsole.units import latency

LEAST, MOST = 0.0005, 10.0
"""Seconds that may be held."""
DAY = 24 * 60
FORM = "a latency such as 20ms or 0.02"

_LATENCY = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?", re.ASCII)
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)=(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """A target for a part of each day, by the clock on the wall."""

    start: int
    """Minute of the day, which is the first of them."""
    end: int
    """Minute of the day after the last; before ``start`` where midnight is between."""
    target: float
    """Seconds."""

    def minutes(self) -> frozenset[int]:
        """The minutes of the day that it is for."""
        length = (self.end - self.start) % DAY
        return frozenset((self.start + i) % DAY for i in range(length))

    def __str__(self) -> str:
        """As it is typed, apart from the latency."""
        times = (f"{minute // 60:02d}:{minute % 60:02d}" for minute in (self.start, self.end))
        return "-".join(times)


@dataclass(frozen=True, slots=True)
class Targets:
    """What to hold, at any time of the day."""

    usual: float
    """Seconds."""
    hours: tuple[Hours, ...] = ()

    def at(self, t: float, local: Callable[[float], time.struct_time] = time.localtime) -> float:
        """The target at ``t`` (epoch seconds), in seconds."""
        now = local(t)
        minute = now.tm_hour * 60 + now.tm_min
        return next((h.target for h in self.hours if minute in h.minutes()), self.usual)

    @property
    def words(self) -> tuple[str, ...]:
        """What ``targets`` reads."""
        return (f"{self.usual:g}", *(f"{h}={h.target:g}" for h in self.hours))

    def __str__(self) -> str:
        """For people: ``20ms, 22:00-06:00 100ms``."""
        return ", ".join([latency(self.usual), *(f"{h} {latency(h.target)}" for h in self.hours)])


def targets(words: Sequence[str]) -> Targets:
    """The targets that these words name. Raises UsageError for other words."""
    if not words:
        raise UsageError(f"hold-latency needs {FORM}")
    hours = tuple(map(_hours, words[1:]))
    taken: set[int] = set()
    for each in hours:
        if each.start == each.end or taken & each.minutes():
            raise UsageError(f"{each}: no time, or in another's time")
        taken |= each.minutes()
    return Targets(_seconds(words[0]), hours)


def _hours(word: str) -> Hours:
    found = _HOURS.fullmatch(word)
    if found is None:
        raise UsageError(f"{word!r} is not HH:MM-HH:MM=LATENCY, such as 22:00-06:00=100ms")
    first, second, third, fourth = map(int, found.groups()[:4])
    return Hours(first * 60 + second, third * 60 + fourth, _seconds(found[5]))


def _seconds(word: str) -> float:
    found = _LATENCY.fullmatch(word)
    if found is None:
        raise UsageError(f"{word!r} is not {FORM}")
    value = float(found[1]) / (1000.0 if found[2] == "ms" else 1.0)
    if not LEAST <= value <= MOST:
        raise UsageError(f"{word} is out of range: {latency(LEAST)} to {MOST:g}s")
    return value
