"""An estimate that follows a change of speed whose cause is known: tunables that were changed.

Of a rate that changed by itself nobody knows whether it stays, so the estimate waits. One that
changed as tunables did stays with them: once it is steady, what was before says nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import log
from typing import NamedTuple

from zconsole import units
from zconsole.eta.bursts import levelled
from zconsole.eta.daily import EVEN
from zconsole.eta.estimate import Estimate, Forecast, Work, forecast
from zconsole.eta.progress_curve import CurvePoint, ProgressCurve
from zconsole.history.rate_lag import CAUGHT_UP, LAGGING
from zconsole.tunables.effect import ENOUGH, SETTLE

MOST = 40
"""Changes that are kept; an autopilot makes one every few minutes."""
RECENT = 1800.0
"""Seconds after a change in which a new level of the rate is put down to it."""
STEADY_SECONDS = 240.0
STEADY = 1.15
"""By what factor the two halves of a steady stretch may differ: a minute beside applications is
up to a fifth faster or slower than the next."""

SAME = 1.03
"""By what factor two estimates differ that are one: until then a change is followed."""


class Followed(NamedTuple):
    """That an estimate is based on what came after a change of tunables."""

    ago: float
    """Seconds since the change."""

    @property
    def words(self) -> str:
        """``ETA by the rate since tunables changed 6m00s ago``."""
        return f"ETA by the rate since tunables changed {units.duration(self.ago)} ago"


class KnownChange:
    """The changes of tunables during a scan, and the one its estimate has followed."""

    def __init__(self) -> None:
        self._changes: deque[float] = deque(maxlen=MOST)
        """Epoch seconds, oldest first."""
        self._at: float | None = None
        """The change that is followed."""
        self.followed: Followed | None = None

    def add(self, t: float) -> None:
        """Tunables changed by the sample at ``t`` (epoch seconds)."""
        self._changes.append(t)

    def follow(self, usual: Forecast, course: ProgressCurve, work: Work | None) -> Forecast:
        """The forecast by what came after a change, or ``usual`` where none is to be followed."""
        self.followed = None
        points, eta = course.points, usual.estimate.eta
        if not self._changes or eta is None or work is None or work.by_turns:
            return usual
        found = None if self._at is None else _since(points, self._at, work, usual)
        at, found = self._newer(found or usual, points, work) or (self._at, found)
        if found is None or at is None or not _differ(found.estimate, eta, SAME):
            self._at = None
            return usual
        self._at = at
        if _differ(found.estimate, eta, CAUGHT_UP):
            self.followed = Followed(points[-1].t - at)
        return found._replace(estimate=_covering(found.estimate, eta))

    def _newer(
        self, shown: Forecast, points: Sequence[CurvePoint], work: Work
    ) -> tuple[float, Forecast] | None:
        """The first later change after which the rate is steady and contradicts ``shown``."""
        eta, least = shown.estimate.eta or 0.0, max(self._at or 0.0, points[-1].t - RECENT)
        recent = [t for t in self._changes if t > least]
        for n, t in enumerate(recent):
            if not _is_steady(_after(points, t)):
                continue
            found = _since(points, t, work, shown)
            if found is None or not _differ(found.estimate, eta, LAGGING):
                continue
            if any(
                _explains(points, begin, t, eta / (found.estimate.eta or eta))
                for begin in recent[: n + 1]
            ):
                return t, found
        return None


def _explains(points: Sequence[CurvePoint], begin: float, end: float, times: float) -> bool:
    """Whether changes between ``begin`` and ``end`` made the rate about ``times`` as fast.

    What the hour or the place on the disk bring is no news to an estimate.
    """
    before = _rate([p for p in points if begin - STEADY_SECONDS <= p.t <= begin])
    after = _rate(_after(points, end))
    if not before or not after:
        return False
    change, wanted = log(after / before), log(times)
    slack = log(STEADY)
    return change * wanted > 0 and abs(change) >= max(slack, abs(wanted) - slack)


def _after(points: Sequence[CurvePoint], changed: float) -> list[CurvePoint]:
    """The points once a change has settled."""
    return [p for p in points if p.t >= changed + SETTLE]


def _since(
    points: Sequence[CurvePoint], changed: float, work: Work, usual: Forecast
) -> Forecast | None:
    """The forecast by the points after a change; None where they have no speed of their own."""
    found = forecast(ProgressCurve(_after(points, changed)), work, usual.daily or EVEN)
    return None if found.window is None or found.estimate.eta is None else found


def _is_steady(points: Sequence[CurvePoint]) -> bool:
    if len(points) < ENOUGH or points[-1].x - points[0].x < STEADY_SECONDS:
        return False
    middle = (points[0].x + points[-1].x) / 2
    early = _rate([p for p in points if p.x <= middle])
    late = _rate([p for p in points if p.x >= middle])
    return bool(early and late) and abs(log(late / early)) <= log(STEADY)


def _rate(points: Sequence[CurvePoint]) -> float:
    """Bytes/s, bursts evened out; 0 where nothing moved."""
    if len(points) < 2:
        return 0.0
    xs, issued = [p.x for p in points], [p.issued for p in points]
    done = levelled(xs, issued) or issued
    return (done[-1] - done[0]) / (xs[-1] - xs[0])


def _differ(estimate: Estimate, eta: float, factor: float) -> bool:
    own = estimate.eta
    return own is not None and min(own, eta) > 0 and abs(log(own / eta)) >= log(factor)


def _covering(estimate: Estimate, eta: float) -> Estimate:
    """With a range in which another estimate lies, too."""
    low, high = estimate.low or 0.0, estimate.high or 0.0
    return estimate._replace(low=min(low, eta), high=max(high, eta))
