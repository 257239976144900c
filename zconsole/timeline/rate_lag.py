"""Where an estimate lags the rate beside it: since when, and what that rate would give.

After a change of speed an estimate waits to see whether that lasts. Whoever divides what is left
by the rate shown meanwhile finds another time, and is told why.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.past_rates import HOLE, STEADY, PastRates

LAGGING, CAUGHT_UP = 1.2, 1.1
"""By what factor both differ to be told of, and below which that ends: nothing flickers."""
LEAST_SECONDS = 300.0
"""To the end; before that the last bytes and the queues are what differs."""


class RateLag(NamedTuple):
    """What the present rate would give, in seconds to go."""

    eta: float
    changed: str
    """``rose`` or ``fell``."""
    ago: float | None
    """Seconds since it changed; None where that was not seen, or it was so all along."""

    @property
    def words(self) -> str:
        """``rate rose 4m10s ago, ETA follows: 6h48m if it stays``."""
        told = f"{units.duration(self.eta)} if it stays"
        if self.ago is None:
            return f"at the rate of now {told}"
        return f"rate {self.changed} {units.duration(self.ago)} ago, ETA follows: {told}"


def rate_lag(
    rate: float | None, left: float, eta: float | None, past: PastRates, is_told: bool
) -> RateLag | None:
    """Whether ``eta`` seconds for ``left`` bytes contradict ``rate`` (bytes/s).

    ``is_told``: whether they did a sample ago.
    """
    if not rate or rate <= 0 or eta is None or min(left / rate, eta) < LEAST_SECONDS:
        return None
    expected = left / eta
    if abs(log(rate / expected)) < log(CAUGHT_UP if is_told else LAGGING):
        return None
    changed, trend = "rose" if rate > expected else "fell", past.trend or 0.0
    if (trend < -STEADY) if rate > expected else (trend > STEADY):
        return None  # it is on its way back: "if it stays" would be said of what does not
    return RateLag(left / rate, changed, _since(rate > expected, sqrt(rate * expected), past))


def _since(above: bool, level: float, past: PastRates) -> float | None:
    """Seconds for which the rate has been on this side of a level; None if it went unseen."""
    rates = past.rates[::-1]
    before = (n for n, rate in enumerate(rates) if rate is not None and (rate > level) != above)
    found = next(before, None)
    if found is None or rates[:found].count(None) * past.step > HOLE:
        return None
    return found * past.step
