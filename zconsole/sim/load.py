"""Foreground load: what applications read and write, as a function of time.

Its variation is seeded and repeatable, so that the size of steps does not matter.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

DAY = 86400.0
_SIZE = 256


def rng(seed: int, *names: object) -> random.Random:
    """A generator of its own for one component, the same for the same seed and names."""
    return random.Random("/".join(str(part) for part in (seed, *names)))


class Wobble:
    """Smooth noise in 0…1: random values on a grid of ``period`` seconds, eased between."""

    __slots__ = ("_period", "_table")

    def __init__(self, source: random.Random, period: float) -> None:
        """Draws the table from ``source``; one value every ``period`` seconds."""
        self._table = tuple(source.random() for _ in range(_SIZE))
        self._period = period

    def at(self, t: float) -> float:
        """The value at ``t`` seconds of simulated time."""
        x = t / self._period
        i = math.floor(x)
        f = x - i
        a = self._table[i % _SIZE]
        return a + (self._table[(i + 1) % _SIZE] - a) * f * f * (3 - 2 * f)


@dataclass(slots=True)
class ForegroundLoad:
    """Rates in bytes/s of data (parity and copies come on top), sizes in bytes a request."""

    wobble: Wobble
    read: float = 0.0
    write: float = 0.0
    size: float = 65536.0
    sequential: float = 1.0
    """Requests that follow each other on disk before the heads move."""
    daily: float = 0.0
    """Swing over a day: 0 none … 1 from nothing to double; highest at ``peak``."""
    peak: float = 0.0
    """Simulated seconds of the daily maximum."""
    bursty: float = 0.3
    """Share of the rate that comes and goes."""
    sync: float = 0.0
    """Share of writes somebody waits for (they end txgs early and go to log vdevs)."""
    kept: float = 0.0
    """Share of written bytes that stays allocated; the rest overwrites or is freed."""
    begin: float = 0.0
    end: float = math.inf
    """Simulated seconds between which it runs."""

    def factor(self, t: float) -> float:
        """How much of the mean is wanted at ``t``."""
        if not self.begin <= t < self.end:
            return 0.0
        day = 1.0 + self.daily * math.cos((t - self.peak) * 2 * math.pi / DAY)
        return day * (1.0 + self.bursty * (2.0 * self.wobble.at(t) - 1.0))

    def at(self, t: float) -> tuple[float, float]:
        """(read, write) bytes/s wanted at ``t``."""
        factor = self.factor(t)
        return self.read * factor, self.write * factor
