"""Predicts a scan from an earlier scan of the pool, by how far that was at which time.

Outer tracks are fast and inner ones slow, some regions are fragmented, and a walk takes its share
of time: all of this is much the same a month later. So a scan is predicted by how fast it
progresses through the time that the earlier one took, not through its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from operator import mul
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.estimate import MAX_SPREAD, Forecast, evened_out, longest_still
from zconsole.timeline.eta.pace import (
    EVEN,
    Daily,
    WorkDone,
    fit_pace,
    mean_running_seconds,
    share_in_memory,
    value_at,
)
from zconsole.timeline.eta.progress import CurvePoint, Totals
from zconsole.timeline.eta.windows import Slopes, expected

MOST_POINTS = 100
"""Points kept of a finished scan."""
SHORTEST = 20.0
"""Seconds; a shorter scan does not help to predict another."""
LONGEST_SCAN = 366 * 86400.0
"""Seconds; a longer scan has a start or end from a wrong clock."""
SAME_START = 10.0
"""Seconds by which sources differ about the start of one scan."""
WALKING = 0.005
"""Share issued up to which the walk gives the position: what cannot be sorted is issued at once."""
LEAST_ISSUED, UNSEEN = 0.5, 0.05
"""A scan that was watched until shortly before its end (a share of its time), with less than half
of its bytes issued by then, skipped most of them."""
LEAST_GROWTH, MOST_GROWTH = 0.2, 5.0
"""Limits of the ratio of bytes now to bytes of the earlier scan for which the latter is used."""
ALIKE = 0.06
"""Log spread between a scan and the one before it, as far as nothing else is known yet."""
UNWATCHED = 0.12
OTHER_FUNCTION = 0.5
"""Log spread for a scan of which only the length is known; and for a resilver after a scrub."""
GROWN = 0.1
"""Log spread per e-fold that the pool grew or shrank: the new bytes are in other places."""
EARLY, SETTLING = 0.3, 6.0
"""Log spread of the speed at first, and how much faster than its progress that decreases."""
SURE = 0.05
"""Least log spread of an observed speed."""
OTHER_WORK = log(5.0)
"""Log ratio of the speeds beyond which the earlier scan did other work, such as a resilver of
minutes."""
UNEXPLAINED = 0.5
"""Share of an unusual speed which the remaining work may not have."""
GROUP_SECONDS = 5.0
"""A transaction group: bytes may have run ahead this long, or longer if they stood still for
longer."""
PAST_SPREAD = 0.15
"""Least log spread of the range by an earlier scan: load comes and goes."""
AS_FAST = 0.03
"""Share of its time by which an estimate fluctuates between samples; smaller leads are not
shown."""
LEARNS_FROM = {"resilver": ("resilver", "scrub")}


class PastScan(NamedTuple):
    """A finished scan and its course."""

    function: str
    vdev: str | None
    start: float
    """Epoch seconds."""
    seconds: float
    """Duration without pauses."""
    total: float
    """Bytes it had to issue."""
    watched: float
    """Share of its time during which it was watched."""
    points: tuple[tuple[float, float], ...]
    """Its position (see ``positions``) and the running seconds until then."""
    pace: tuple[float, ...] = EVEN.factors
    """Speed in each hour of the day, 1 on average."""

    def is_same(self, other: PastScan) -> bool:
        """Return whether both are the same scan."""
        alike = (self.function, self.vdev) == (other.function, other.vdev)
        return alike and abs(self.start - other.start) <= SAME_START


class RunningCourse(NamedTuple):
    """A running scan, as far as it was watched."""

    function: str
    points: Sequence[CurvePoint]
    totals: Totals
    elapsed: float
    """Seconds it has run, without pauses."""
    rounding: float = 0.0
    """Rounding of a reading, in bytes."""


class Comparison(NamedTuple):
    """Comparison of a running scan with an earlier one."""

    function: str
    took: float
    """Seconds that the earlier scan ran."""
    ahead: float
    """Seconds by which this scan is estimated to be faster in total; negative if it is slower."""
    running: str
    """Function of the running scan."""
    is_last: bool = True
    """True if the earlier scan is the newest known of its function."""

    @property
    def which(self) -> str:
        """Name of the earlier scan: ``last scrub``."""
        return which(self.function, self.is_last)

    @property
    def this(self) -> str:
        """Name of the running scan: ``this one``, or ``this resilver`` against a scrub."""
        return f"this {'one' if self.running == self.function else self.running}"

    @property
    def how(self) -> str:
        """The difference: ``40m00s ahead``, or ``as fast``."""
        if abs(self.ahead) < AS_FAST * self.took:
            return "as fast"
        return f"{units.duration(abs(self.ahead))} {'ahead' if self.ahead > 0 else 'behind'}"

    @property
    def words(self) -> str:
        """The whole comparison: ``last scrub took 9h12m, this one is 40m00s ahead``."""
        return f"{self.which} took {units.duration(self.took)}, {self.this} is {self.how}"


def which(function: str, is_last: bool) -> str:
    """Return ``last scrub`` for the newest known one, else ``an earlier scrub``."""
    return f"{'last' if is_last else 'an earlier'} {function}"


class Prediction(NamedTuple):
    """Seconds left and log spread, predicted by an earlier scan."""

    eta: float
    spread: float
    doubt: float
    """Log spread due to differences from the earlier scan: ``spread`` without PAST_SPREAD."""


def positions(points: Sequence[CurvePoint], totals: Totals) -> list[float]:
    """Return the position of a scan at each point: the share of work done, 0 to 1.

    While next to nothing is issued, it is the share of metadata walked, minus 1.
    """
    issued = [p.issued for p in points]
    still = totals.walk == 0 or points[0].scanned == points[-1].scanned
    done = (evened_out([p.x for p in points], issued) if still else None) or issued
    found = []
    for point, worked in zip(points, done, strict=True):
        share = min(1.0, worked / totals.issue)
        is_walking = share < WALKING and point.scanned < totals.walk
        found.append(point.scanned / totals.walk - 1 if is_walking else share)
    return found


def running_seconds(points: Sequence[CurvePoint], start: float, paused: float) -> float:
    """Return how long a scan had run at the last of its points, without pauses.

    ``paused`` is the total of seconds that its pass was paused, including times when not watched.
    """
    first, last = points[0], points[-1]
    watched, ran = last.t - first.t, last.x - first.x
    # If the clock was set back meanwhile, the difference says nothing about pauses.
    unseen = max(0.0, paused - (watched - ran)) if watched >= ran else 0.0
    return first.t - start - unseen + ran


def past_scan(
    scan: tuple[str, str | None, float],
    end: float,
    points: Sequence[CurvePoint],
    totals: Totals,
    paused: float = 0.0,
) -> PastScan | None:
    """Build a finished scan (function, vdev, start), ended at ``end``; None if it is of no use.

    Parts that were not watched, before the first point and after the last one, are straight lines.
    """
    start = scan[2]
    seen = points[-1].x - points[0].x if points else 0.0
    ran = running_seconds(points, start, paused) if points else end - start - paused
    before = max(0.0, ran - seen)
    after = max(0.0, end - points[-1].t) if points else 0.0
    seconds = before + seen + after
    if not SHORTEST <= seconds <= LONGEST_SCAN or totals.issue <= 0:
        return None
    where = positions(points, totals) if points else []
    if where and where[-1] < LEAST_ISSUED and after < UNSEEN * seconds:
        return None
    is_walk_seen = bool(where) and where[0] < 0
    kept = [(-1.0 if is_walk_seen else 0.0, 0.0)]
    step = seconds / (MOST_POINTS - 2)
    for place, point in zip(where, points, strict=True):
        at = before + point.x - points[0].x
        if at >= kept[-1][1] + step and kept[-1][0] < place < 1.0:
            kept.append((place, at))
    course = (*kept, (1.0, seconds))
    return PastScan(
        *scan, seconds, totals.issue, seen / seconds, course, _day(points, totals).factors
    )


def _day(points: Sequence[CurvePoint], totals: Totals) -> Daily:
    """Return the pace over the day of a course; even if that is not known."""
    if len(points) < 3:
        return EVEN
    left = max(0.0, totals.issue - points[-1].issued)
    held = share_in_memory(points, totals.issue, totals.walk, False) if totals.walk else None
    ts, xs, issued = [p.t for p in points], [p.x for p in points], [p.issued for p in points]
    pace = fit_pace(WorkDone(ts, xs, issued, left, held))
    return EVEN if pace is None else pace.daily


def choose_past(
    known: Iterable[PastScan], function: str, vdev: str | None, totals: Totals
) -> PastScan | None:
    """Choose the most useful scan to predict by: of the same kind and size, watched, and newest."""
    kinds = LEARNS_FROM.get(function, (function,))
    fitting = [
        k
        for k in known
        if k.function in kinds
        and (k.vdev == vdev or k.function != function)
        and LEAST_GROWTH < totals.issue / k.total < MOST_GROWTH
    ]
    return max(
        fitting,
        key=lambda k: (k.function == function, k.watched >= 0.5, k.start),
        default=None,
    )


def predict_both(
    past: PastScan, ran: RunningCourse, today: Daily | None = None
) -> list[Prediction]:
    """Predict a running scan from an earlier one, by its positions and also by the hours.

    The cause of a speed change in the earlier scan may have been the position, which recurs, or the
    hour, which may be another now. How well each prediction fits this scan decides between them.
    ``today`` is the pace of this scan.
    """
    by_place = predict(past._replace(pace=EVEN.factors), ran)
    by_hour = predict(past, ran, today) if past.pace != EVEN.factors else None
    return [told for told in (by_place, by_hour) if told is not None]


def combined(told: Sequence[Prediction], own: Forecast) -> tuple[float, float]:
    """Combine predictions with a scan's own forecast into seconds left and log spread.

    Each prediction is weighted by the inverse square of its ``doubt``, that is, without
    PAST_SPREAD; the scan's own forecast by that of its full spread. The spread is that of the
    mixture, with PAST_SPREAD.
    """
    ways = [(each.eta, each.spread, each.doubt) for each in told]
    if own.estimate.eta:
        ways.append((own.estimate.eta, own.spread, own.spread))
    weights = [1 / doubt**2 for _, _, doubt in ways]
    weights = [weight / sum(weights) for weight in weights]
    logs = [log(max(1.0, eta)) for eta, _, _ in ways]
    mean = sum(map(mul, weights, logs))
    squares = [
        spread**2 + (each - mean) ** 2 for each, (_, spread, _) in zip(logs, ways, strict=True)
    ]
    return exp(mean), min(MAX_SPREAD, sqrt(sum(map(mul, weights, squares))))


def predict(past: PastScan, ran: RunningCourse, today: Daily | None = None) -> Prediction | None:
    """Predict a running scan from an earlier one; None if that says nothing about it.

    ``today`` is the pace of this scan over the day; None for that of the earlier one.
    """
    points, totals = ran.points, ran.totals
    if not points or ran.elapsed <= 0:
        return None
    growth, before = totals.issue / past.total, Daily(past.pace)
    daily = before if before == EVEN or today is None else today
    # The course of the earlier scan at an even pace, scaled to the bytes of this one.
    passed = [place for place, _ in past.points]
    even = [growth * before.mean_seconds(past.start, x) for _, x in past.points]
    spent = [value_at(passed, even, place) for place in positions(points, totals)]
    whole, now = even[-1], spent[-1]
    if now <= 0:
        return None
    t = points[-1].t
    elapsed = daily.mean_seconds(t - ran.elapsed, ran.elapsed)
    # Expected deviation from the speed of the earlier scan, before looking at this one's.
    usual = ALIKE + GROWN * abs(log(growth)) + (UNWATCHED if past.watched < 0.5 else 0.0)
    usual += OTHER_FUNCTION if past.function != ran.function else 0.0
    xs = mean_running_seconds([p.t for p in points], [p.x for p in points], daily)
    seen = _speed_ratio(xs, spent, whole, elapsed, ran.rounding / totals.issue)
    unexplained = max(0.0, abs(seen.speed) - seen.doubt)
    if unexplained > OTHER_WORK:
        return None
    # A speed far from the usual one is not due to chance: then it counts alone.
    usual = sqrt(usual * usual + unexplained**2)
    weight = usual**2 / (usual**2 + seen.doubt**2)
    # Nor is it known whether the remaining work differs as much.
    variance = weight * seen.doubt**2 + (seen.apart / 2) ** 2 + (UNEXPLAINED * unexplained) ** 2
    eta = daily.until(t, (whole - now) * exp(-weight * seen.speed))
    spread = min(MAX_SPREAD, sqrt(PAST_SPREAD**2 + variance))
    return Prediction(eta, spread, sqrt(variance))


class _SpeedRatio(NamedTuple):
    """Log ratio of a scan's speed to that of the earlier one, as observed."""

    speed: float
    doubt: float
    """Log spread of ``speed``."""
    apart: float
    """Log spread among its recent speeds."""


def _speed_ratio(
    xs: Sequence[float], spent: Sequence[float], whole: float, elapsed: float, rounding: float
) -> _SpeedRatio:
    """Combine the mean speed since the start with the speed watched, by their certainty."""
    mean, share = log(spent[-1] / elapsed), spent[-1] / whole
    bursts_seen = max(GROUP_SECONDS, longest_still(xs, spent)) / elapsed
    doubt = SURE + EARLY * exp(-SETTLING * share) + bursts_seen
    span, speed = xs[-1] - xs[0], None
    if len(xs) >= 3 and span > 0:
        speed = expected(Slopes(xs, spent), whole - spent[-1], 2 * rounding * whole)
    if speed is None:
        return _SpeedRatio(mean, doubt, 0.0)
    # The mean says less about the rest if little is left or speeds varied.
    doubt = sqrt(doubt**2 + (share * speed.spread) ** 2)
    own = max(SURE, speed.spread, doubt * elapsed / span)
    weight = doubt**2 / (own**2 + doubt**2)
    found = mean + weight * (log(speed.rate) - mean)
    return _SpeedRatio(found, own * doubt / sqrt(own**2 + doubt**2), speed.spread)
