"""How the speed of a long scan changes with how far it is.

Inner tracks are slower than outer ones. A scan at its memory limit becomes faster: the less is
left, the more of it is in memory, and so in longer runs. Both are slopes of the logarithm of the
speed, known roughly beforehand and better with every hour.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import expm1, log, sqrt
from typing import NamedTuple

LEAST_SECONDS = 3600.0
"""A scan that was watched for less changes for other reasons."""
CHUNKS = 24
SETTLING = 2
"""The first chunks, in which the walk ends and queues fill, say nothing of the trend."""
INDEPENDENT = 3.0
"""Chunks that tell as much as one would that has nothing to do with its neighbours."""
NOISE, NOISE_FACTOR = 0.02, 1.5
TRACKS = (-0.15, 0.2)
"""What the logarithm of the speed gains from the first byte to the last, and its deviation."""
SORTED = (0.3, 0.3)
"""The power of what is left by which the speed of a scan at its memory limit falls with it."""
ENOUGH = 0.4
"""Share of what is left from which on having more of it in memory sorts no better."""
FARTHEST = 0.98
"""Share beyond which what is left says no more of the speed."""


class SpeedTrend(NamedTuple):
    """A slope, over the share done or, ``by_turns``, over the logarithm of the share left."""

    slope: float
    by_turns: bool

    def work(self, share: float) -> float:
        """The work until a share is done, in units of the speed at the start."""
        if self.by_turns:
            power = 1 + self.slope
            left: float = max(0.0, 1 - share) ** power
            return (1 - left) / power
        return share if abs(self.slope) < 1e-6 else -expm1(-self.slope * share) / self.slope


def fitted(
    xs: Sequence[float], shares: Sequence[float], by_turns: bool, in_memory: float = 0.0
) -> SpeedTrend | None:
    """The slope that a scan shows, as far as that outweighs what is usual; None for a short one.

    ``in_memory``: the share of what is left that was walked, and so is sorted already.
    """
    if xs[-1] - xs[0] < LEAST_SECONDS or not 0 <= shares[0] < shares[-1] <= 1:
        return None
    step = (xs[-1] - xs[0]) / CHUNKS
    ends = [_at(xs, shares, xs[0] + n * step) for n in range(CHUNKS + 1)]
    usual, deviation = SORTED if by_turns else TRACKS
    usual *= max(0.0, 1 - in_memory / ENOUGH) if by_turns else 1.0
    seen = [
        (_place((a + b) / 2, by_turns), log(b - a)) for a, b in pairwise(ends[SETTLING:]) if b > a
    ]
    if len(seen) < CHUNKS / 2:
        return SpeedTrend(usual, by_turns)
    middle = sum(place for place, _ in seen) / len(seen)
    level = sum(speed for _, speed in seen) / len(seen)
    across = sum((place - middle) ** 2 for place, _ in seen)
    if across <= 0:
        return SpeedTrend(usual, by_turns)
    slope = sum((place - middle) * (speed - level) for place, speed in seen) / across
    rest = sum((speed - level - slope * (place - middle)) ** 2 for place, speed in seen)
    noise = NOISE + NOISE_FACTOR * sqrt(rest / len(seen))
    sure, before = across / INDEPENDENT / noise**2, 1 / deviation**2
    found = (sure * slope + before * usual) / (sure + before)
    return SpeedTrend(min(usual + 2 * deviation, max(usual - 2 * deviation, found)), by_turns)


def _place(share: float, by_turns: bool) -> float:
    return -log(1 - min(FARTHEST, share)) if by_turns else share


def _at(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The value at ``x`` on the line through points."""
    n = min(max(1, bisect_right(xs, x)), len(xs) - 1)
    span = xs[n] - xs[n - 1]
    return ys[n - 1] + (ys[n] - ys[n - 1]) * min(1.0, (x - xs[n - 1]) / span)
