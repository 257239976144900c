"""An estimate that follows a change of speed whose cause is known: tunables that were changed.

Of a rate that changed by itself nobody knows whether it stays, so the estimate waits. One that
changed as tunables did stays with them: once it is steady, what was before says nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import inf, log
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.estimate import Estimate, Forecast, forecast, levelled
from zconsole.timeline.eta.pace import EVEN, value_at
from zconsole.timeline.eta.progress import CurvePoint, ProgressCurve, Work
from zconsole.timeline.scan_rate import CAUGHT_UP, LAGGING
from zconsole.tunables.effect import ENOUGH, SETTLE

MOST = 40
"""Changes that are kept; an autopilot makes one every few minutes."""
RECENT = 1800.0
"""Seconds after a change in which a new level of the rate is put down to it."""
FOLLOWED_AFTER = 240.0
"""Seconds for which a rate has to be steady, from ``SETTLE`` after a change on, before that is
followed."""
AGAIN, FEW, LATELY = 900.0, 2, 3600.0
"""Seconds for which it has to be before a further change is followed, where there were more than
``FEW`` in the last ``LATELY`` seconds: who steers may change his mind, and the estimate would jump
to and fro with it."""
SAME_LEVEL = 1.15
"""By what factor the two halves of a steady stretch may differ: a minute beside applications is
up to a fifth faster or slower than the next."""

NEARLY = 1.18
"""By what factor the estimate that was told and what is left by the rate of now have to differ
before a forecast, which takes milliseconds, is worth it: a little below ``LAGGING``."""

SAME_END = 1.03
"""By what factor two estimates differ that are one: until then a change is followed."""


class _Change(NamedTuple):
    """When tunables changed: running seconds, which pauses and a clock that is set leave alone."""

    x: float
    t: float
    """Epoch seconds."""


class KnownChange:
    """The changes of tunables during a scan, and the one its estimate has followed."""

    def __init__(self, times: Iterable[float] = (), points: Sequence[CurvePoint] = ()) -> None:
        """Begin, or go on with those made at these epoch seconds of a course that was kept."""
        ts, xs = [point.t for point in points], [point.x for point in points]
        # Those from before the course are left out.
        within = (t for t in times if len(ts) > 1 and t > ts[0])
        self._changes = deque((_Change(value_at(ts, xs, t), t) for t in within), MOST)
        """Oldest first."""
        self._is_new = False
        """Whether they changed by the newest sample."""
        self._at: _Change | None = None
        """The change that is followed."""
        self._has_followed = False
        self.followed = ""
        """That the estimate is based on what came after a change; empty where it is not."""

    @property
    def newest(self) -> float:
        """Running seconds of the newest change; far back where there was none."""
        return self._changes[-1].x if self._changes else -inf

    def add(self) -> None:
        """Tunables changed by the sample that ``follow`` is given next."""
        self._is_new = True

    def follow(self, usual: Forecast, course: ProgressCurve, work: Work | None) -> Forecast:
        """The forecast by what came after a change, or ``usual`` where none is to be followed."""
        self.followed = ""
        points, eta = course.points, usual.estimate.eta
        if self._is_new and points:
            self._changes.append(_Change(points[-1].x, points[-1].t))
            self._is_new = False
        if not self._changes or eta is None or work is None or work.by_turns:
            return usual
        found = None if self._at is None else _since(points, self._at.x, work, usual)
        at, found = self._newer(found or usual, points, work) or (self._at, found)
        shown = 0.0 if found is None else found.estimate.eta or 0.0
        if found is None or at is None or not _differ(shown, eta, SAME_END):
            self._at = None
            return usual
        if at is not self._at:
            self._at, self._has_followed = at, True
        if _differ(shown, eta, CAUGHT_UP):
            ago = units.duration(max(0.0, points[-1].t - at.t))
            self.followed = f"ETA by the rate since tunables changed {ago} ago"
        _, low, high, reason = found.estimate
        # The estimate that is given up lies in the range, too.
        ends = (min(low or 0.0, eta), max(high or 0.0, eta))
        return found._replace(estimate=Estimate(shown, *ends, reason))

    def _newer(
        self, shown: Forecast, points: Sequence[CurvePoint], work: Work
    ) -> tuple[_Change, Forecast] | None:
        """The first later change after which the rate is steady and contradicts ``shown``."""
        eta, now = shown.estimate.eta or 0.0, points[-1].x
        oldest = max(now - RECENT, 0.0 if self._at is None else self._at.x)
        lately = sum(now - change.x <= LATELY for change in self._changes)
        least = AGAIN if self._has_followed and lately > FEW else FOLLOWED_AFTER
        before = list[float]()
        for change in (each for each in self._changes if each.x > oldest):
            before.append(_rate(_between(points, change.x - FOLLOWED_AFTER, change.x)))
            after = _between(points, change.x + SETTLE, now)
            if len(after) < ENOUGH or now - after[0].x < least:
                continue
            # Whether it may be is told by far less than a forecast takes.
            rate = _rate(after)
            times = rate * eta / max(1.0, work.total - work.issued)
            if not _differ(times, 1.0, NEARLY) or not _is_steady(after):
                continue
            if any(_explains(each, rate, times) for each in before):
                found = _since(points, change.x, work, shown)
                if found is not None and _differ(found.estimate.eta or 0.0, eta, LAGGING):
                    return change, found
        return None


def _between(points: Sequence[CurvePoint], first: float, last: float) -> list[CurvePoint]:
    return [point for point in points if first <= point.x <= last]


def _is_steady(points: Sequence[CurvePoint]) -> bool:
    """Whether both halves of that time had about the same rate."""
    first, last = points[0].x, points[-1].x
    middle = (first + last) / 2
    early, late = _rate(_between(points, first, middle)), _rate(_between(points, middle, last))
    return bool(early and late) and not _differ(late, early, SAME_LEVEL)


def _explains(before: float, after: float, times: float) -> bool:
    """Whether a change from one rate to another made it about ``times`` as fast.

    What the hour or the place on the disk bring is no news to an estimate.
    """
    if not before or not after:
        return False
    change, wanted, slack = log(after / before), log(times), log(SAME_LEVEL)
    return change * wanted > 0 and abs(change) >= max(slack, abs(wanted) - slack)


def _differ(a: float, b: float, factor: float) -> bool:
    """Whether rates or times are more than a factor apart; 0 is no rate at all."""
    return min(a, b) > 0 and abs(log(a / b)) > log(factor)


def _since(
    points: Sequence[CurvePoint], changed: float, work: Work, usual: Forecast
) -> Forecast | None:
    """The forecast by the points after a change; None where they have no speed of their own."""
    after = [p for p in points if p.x >= changed + SETTLE]
    found = forecast(ProgressCurve(after), work, usual.daily or EVEN)
    return None if found.window is None or found.estimate.eta is None else found


def _rate(points: Sequence[CurvePoint]) -> float:
    """Bytes/s, bursts evened out; 0 where nothing moved."""
    if len(points) < 2:
        return 0.0
    xs, issued = [p.x for p in points], [p.issued for p in points]
    done = levelled(xs, issued) or issued
    return (done[-1] - done[0]) / (xs[-1] - xs[0])
