"""The pace of a scan over the day: nights are fast where days bring load.

Learned from a scan that has run for days, and believed as far as one day was like the other. Time
then counts by its pace: an hour at night may be worth three at noon.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

HOUR, DAY = 3600.0, 86400.0
HOURS = 24
FEWEST_DAYS = 2
LEAST_SWING = 0.15
"""Deviation from the mean, as a share of it, below which a day is even."""
LEAST_ALIKE = 0.5
"""Correlation of the even days with the odd ones, below which they have no pattern."""
SLOWEST = 0.1
"""An hour counts for at least this much: nothing stands still for a whole hour every day."""


class Daily(NamedTuple):
    """How much each hour of the day (UTC) is worth, 1 on average."""

    factors: tuple[float, ...] = (1.0,) * HOURS

    def worth(self, t: float, seconds: float) -> float:
        """What so many seconds from epoch ``t`` on are worth, in mean seconds."""
        if self.factors == EVEN.factors:
            return max(0.0, seconds)
        days, rest = divmod(max(0.0, seconds), DAY)
        total, at = days * DAY * sum(self.factors) / HOURS, t % DAY
        while rest > 0:
            step = min(rest, HOUR - at % HOUR)
            total += step * self.factors[int(at // HOUR) % HOURS]
            at, rest = at + step, rest - step
        return total

    def until(self, t: float, worth: float) -> float:
        """Seconds from epoch ``t`` on that are worth so much: what ``worth`` turns round."""
        if self.factors == EVEN.factors:
            return max(0.0, worth)
        whole = DAY * sum(self.factors) / HOURS
        days, rest = divmod(max(0.0, worth), whole)
        seconds, at = days * DAY, t % DAY
        while rest > 1e-9:
            factor = self.factors[int(at // HOUR) % HOURS]
            step = min(rest / factor, HOUR - at % HOUR)
            seconds, at, rest = seconds + step, at + step, rest - step * factor
        return seconds


EVEN = Daily()


def worths(ts: Sequence[float], xs: Sequence[float], daily: Daily) -> list[float]:
    """Running seconds ``xs`` at epochs ``ts`` as they are worth."""
    if daily == EVEN:
        return list(xs)
    found = [xs[0]]
    for n in range(1, len(xs)):
        found.append(found[-1] + daily.worth(ts[n] - (xs[n] - xs[n - 1]), xs[n] - xs[n - 1]))
    return found


def learned(ts: Sequence[float], xs: Sequence[float], done: Sequence[float]) -> Daily:
    """The pace over the day, from what was done at each epoch; even while that is not known.

    Only whole days count, the last ones: then a scan that slows down looks the same at all hours.
    """
    days = int((xs[-1] - xs[0]) // DAY) if xs else 0
    if days < FEWEST_DAYS:
        return EVEN
    moved, spent = _hourly(ts, xs, done, ts[-1] - days * DAY)
    every = _rates([_sum(moved, n) for n in range(HOURS)], [_sum(spent, n) for n in range(HOURS)])
    halves = [_rates(moved[k], spent[k]) for k in (0, 1)]
    if every is None or halves[0] is None or halves[1] is None:
        return EVEN
    alike, swing = _correlation(halves[0], halves[1]), sqrt(_variance(every))
    if swing < LEAST_SWING or alike < LEAST_ALIKE:
        return EVEN
    factors = [max(SLOWEST, 1 + alike * (rate - 1)) for rate in every]
    return Daily(tuple(factor * HOURS / sum(factors) for factor in factors))


_Hours = tuple[list[float], list[float]]
"""A value for each hour, of the even days and of the odd ones."""


def _hourly(
    ts: Sequence[float], xs: Sequence[float], done: Sequence[float], since: float
) -> tuple[_Hours, _Hours]:
    """What was done in each hour of the day since an epoch, and the running seconds in it."""
    moved: _Hours = ([0.0] * HOURS, [0.0] * HOURS)
    spent: _Hours = ([0.0] * HOURS, [0.0] * HOURS)
    for (t, x, a), (_, y, b) in pairwise(zip(ts, xs, done, strict=True)):
        if t < since or y <= x:
            continue
        parts = max(1, round((y - x) / HOUR))
        for part in range(min(parts, HOURS)):
            at = t + (part + 0.5) * (y - x) / parts
            half, hour = int((at - since) // DAY) % 2, int(at % DAY // HOUR)
            moved[half][hour] += (b - a) / parts
            spent[half][hour] += (y - x) / parts
    return moved, spent


def _sum(values: _Hours, hour: int) -> float:
    return values[0][hour] + values[1][hour]


def _rates(moved: Sequence[float], spent: Sequence[float]) -> list[float] | None:
    """The pace of each hour, smoothed, 1 on average; None where an hour is missing."""
    if min(spent) <= 0 or sum(moved) <= 0:
        return None
    rates = [m / s for m, s in zip(moved, spent, strict=True)]
    smooth = [rates[n - 1] / 4 + rates[n] / 2 + rates[(n + 1) % HOURS] / 4 for n in range(HOURS)]
    return [rate * HOURS / sum(smooth) for rate in smooth]


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values)


def _correlation(a: Sequence[float], b: Sequence[float]) -> float:
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    both = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / len(a)
    apart = sqrt(_variance(a) * _variance(b))
    return both / apart if apart > 0 else 0.0
