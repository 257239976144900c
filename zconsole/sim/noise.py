"""Seeded, repeatable variation as a function of time, so that step size does not matter."""

from __future__ import annotations

import math
import random

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
