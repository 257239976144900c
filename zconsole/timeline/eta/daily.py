"""The pace of a scan over the day: nights are fast where days bring load.

Time counts by its pace (``pace.py`` fits that): an hour at night may be worth three at noon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HOUR, DAY = 3600.0, 86400.0
HOURS = 24
SLOWEST = 0.01
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
