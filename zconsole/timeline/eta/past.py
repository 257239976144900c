"""What an earlier scan of a pool tells of this one: how far it was at which time.

Outer tracks are fast and inner ones slow, some regions are fragmented, and a walk takes its share:
all that is much the same a month later. So a scan is predicted by how fast it goes through the time
that the earlier one took, not through its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from operator import mul
from typing import NamedTuple

from zconsole import units
from zconsole.timeline.eta.estimate import MAX_SPREAD, Forecast, levelled, longest_still
from zconsole.timeline.eta.pace import (
    EVEN,
    Daily,
    Worked,
    fitted,
    held_in_memory,
    value_at,
    worths,
)
from zconsole.timeline.eta.progress import CurvePoint, Totals
from zconsole.timeline.eta.windows import Slopes, expected

MOST_POINTS = 100
SHORTEST = 20.0
"""A scan shorter than this tells nothing of another."""
LONGEST_SCAN = 366 * 86400.0
"""A scan longer than this began or ended by a clock that was wrong."""
SAME_START = 10.0
"""Seconds by which sources differ about the start of one scan."""
WALKING = 0.005
"""Share issued up to which a walk tells the place: what cannot be sorted is issued at once."""
LEAST_ISSUED, UNSEEN = 0.5, 0.05
"""A scan seen until shortly (a share of its time) before its end, with less than half of its bytes
issued, left most of them out."""
LEAST_GROWTH, MOST_GROWTH = 0.2, 5.0
"""Of a pool that has less or more times the bytes, the earlier scan tells nothing."""
ALIKE = 0.06
"""Log spread by which a scan differs from the one before it, as far as nothing is known yet."""
UNWATCHED = 0.12
OTHER_FUNCTION = 0.5
"""Log spread for a scan of which only the length is known, and of a resilver after a scrub."""
GROWN = 0.1
"""Log spread for each e-fold that the pool grew or shrank: the new bytes lie elsewhere."""
EARLY, SETTLING = 0.3, 6.0
"""Log spread of the speed at first, and how much faster than its progress that falls."""
SURE = 0.05
OTHER_WORK = log(5.0)
"""Log ratio of the speeds beyond which the earlier scan did other work: a resilver of minutes."""
UNEXPLAINED = 0.5
"""Share of a speed that is unlike the usual one which the rest may not have."""
GROUP_SECONDS = 5.0
"""A transaction group: how far bytes may have run ahead, or more where they stood longer."""
PAST_SPREAD = 0.15
"""Log spread of the range by an earlier scan, at least: load comes and goes."""
AS_FAST = 0.03
"""Share of its time by which an estimate moves from sample to sample: no less is told."""
LEARNS_FROM = {"resilver": ("resilver", "scrub")}


class PastScan(NamedTuple):
    """A finished scan as it went."""

    function: str
    vdev: str | None
    start: float
    """Epoch seconds."""
    seconds: float
    """How long it ran, pauses left out."""
    total: float
    """Bytes it had to issue."""
    watched: float
    """Share of its time in which it was watched."""
    points: tuple[tuple[float, float], ...]
    """Its place (see ``places``) and the seconds it ran until then."""
    pace: tuple[float, ...] = EVEN.factors
    """How fast it was in each hour of the day, 1 on average."""

    def is_same(self, other: PastScan) -> bool:
        """Whether both are one scan."""
        alike = (self.function, self.vdev) == (other.function, other.vdev)
        return alike and abs(self.start - other.start) <= SAME_START


class Ran(NamedTuple):
    """A scan that runs, as far as it was watched."""

    function: str
    points: Sequence[CurvePoint]
    totals: Totals
    elapsed: float
    """Seconds it has run, pauses left out."""
    rounding: float = 0.0
    """That of a reading, in bytes."""


class Comparison(NamedTuple):
    """How a scan goes against an earlier one."""

    function: str
    took: float
    """Seconds the earlier one ran."""
    ahead: float
    """Seconds less that this one takes in all, by its estimate; negative: more."""
    running: str
    """The function of this one."""
    is_last: bool = True
    """Whether the earlier one is the newest known of its function."""

    @property
    def which(self) -> str:
        """``last scrub``."""
        return which(self.function, self.is_last)

    @property
    def this(self) -> str:
        """It in words: ``this one``, or ``this resilver`` against a scrub."""
        return f"this {'one' if self.running == self.function else self.running}"

    @property
    def how(self) -> str:
        """``40m00s ahead``."""
        if abs(self.ahead) < AS_FAST * self.took:
            return "as fast"
        return f"{units.duration(abs(self.ahead))} {'ahead' if self.ahead > 0 else 'behind'}"

    @property
    def words(self) -> str:
        """``last scrub took 9h12m, this one is 40m00s ahead``."""
        return f"{self.which} took {units.duration(self.took)}, {self.this} is {self.how}"


def which(function: str, is_last: bool) -> str:
    """``last scrub``, of the newest known one, else ``an earlier scrub``."""
    return f"{'last' if is_last else 'an earlier'} {function}"


class Prediction(NamedTuple):
    """The time to go by an earlier scan: seconds and log spread."""

    eta: float
    spread: float
    doubt: float
    """Log spread as far as it is unlike the earlier scan: ``spread`` without PAST_SPREAD."""


def places(points: Sequence[CurvePoint], totals: Totals) -> list[float]:
    """Where a scan was at each point: the share worked off, 0 to 1.

    While next to nothing is issued, it is the share of what was walked, less 1.
    """
    issued = [p.issued for p in points]
    still = totals.walk == 0 or points[0].scanned == points[-1].scanned
    done = (levelled([p.x for p in points], issued) if still else None) or issued
    found = []
    for point, worked in zip(points, done, strict=True):
        share = min(1.0, worked / totals.issue)
        is_walking = share < WALKING and point.scanned < totals.walk
        found.append(point.scanned / totals.walk - 1 if is_walking else share)
    return found


def running_seconds(points: Sequence[CurvePoint], start: float, paused: float) -> float:
    """How long a scan had run at the last of its points, pauses left out.

    ``paused``: seconds that its pass was paused in all, also while it was not watched.
    """
    first, last = points[0], points[-1]
    watched, ran = last.t - first.t, last.x - first.x
    # A clock that was set back meanwhile says nothing of pauses.
    unseen = max(0.0, paused - (watched - ran)) if watched >= ran else 0.0
    return first.t - start - unseen + ran


def past_scan(
    scan: tuple[str, str | None, float],
    end: float,
    points: Sequence[CurvePoint],
    totals: Totals,
    paused: float = 0.0,
) -> PastScan | None:
    """A finished scan (function, vdev, start), ended at ``end``; None if that tells nothing.

    What was not watched, before the first point and after the last one, is a straight line.
    """
    start = scan[2]
    seen = points[-1].x - points[0].x if points else 0.0
    ran = running_seconds(points, start, paused) if points else end - start - paused
    before = max(0.0, ran - seen)
    after = max(0.0, end - points[-1].t) if points else 0.0
    seconds = before + seen + after
    if not SHORTEST <= seconds <= LONGEST_SCAN or totals.issue <= 0:
        return None
    where = places(points, totals) if points else []
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
    """The pace that it had over the day; even where that is not known."""
    if len(points) < 3:
        return EVEN
    left = max(0.0, totals.issue - points[-1].issued)
    held = held_in_memory(points, totals.issue, totals.walk, False) if totals.walk else None
    ts, xs, issued = [p.t for p in points], [p.x for p in points], [p.issued for p in points]
    pace = fitted(Worked(ts, xs, issued, left, held))
    return EVEN if pace is None else pace.daily


def chosen(
    known: Iterable[PastScan], function: str, vdev: str | None, totals: Totals
) -> PastScan | None:
    """The one that tells most of a scan: of its own kind and size, the newest that was watched."""
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


def predictions(past: PastScan, ran: Ran, today: Daily | None = None) -> list[Prediction]:
    """What an earlier scan tells of one that runs, by its places and by the hours, too.

    What changed its speed may have been the place, which comes back, or the hour, which may be
    another now. How well each fits this scan says which. ``today``: the pace of this one.
    """
    by_place = predicted(past._replace(pace=EVEN.factors), ran)
    by_hour = predicted(past, ran, today) if past.pace != EVEN.factors else None
    return [told for told in (by_place, by_hour) if told is not None]


def together(told: Sequence[Prediction], own: Forecast) -> tuple[float, float]:
    """Seconds to go and log spread, by predictions and by a scan's own course.

    Each counts by the inverse square of its ``doubt``, that is, without PAST_SPREAD, but the scan's
    own forecast by that of its full spread. The spread is that of the mixture, with PAST_SPREAD.
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


def predicted(past: PastScan, ran: Ran, today: Daily | None = None) -> Prediction | None:
    """What an earlier scan tells of one that runs; None if nothing.

    ``today``: the pace of this one over the day; that of the earlier one where None.
    """
    points, totals = ran.points, ran.totals
    if not points or ran.elapsed <= 0:
        return None
    growth, before = totals.issue / past.total, Daily(past.pace)
    daily = before if before == EVEN or today is None else today
    # The earlier scan as it would have gone at an even pace, with so many times the bytes.
    passed = [place for place, _ in past.points]
    even = [growth * before.worth(past.start, x) for _, x in past.points]
    spent = [value_at(passed, even, place) for place in places(points, totals)]
    whole, now = even[-1], spent[-1]
    if now <= 0:
        return None
    t = points[-1].t
    worth = daily.worth(t - ran.elapsed, ran.elapsed)
    # How far its speed may be from that of the earlier scan, as far as only that is known.
    usual = ALIKE + GROWN * abs(log(growth)) + (UNWATCHED if past.watched < 0.5 else 0.0)
    usual += OTHER_FUNCTION if past.function != ran.function else 0.0
    xs = worths([p.t for p in points], [p.x for p in points], daily)
    seen = _seen(xs, spent, whole, worth, ran.rounding / totals.issue)
    unexplained = max(0.0, abs(seen.speed) - seen.doubt)
    if unexplained > OTHER_WORK:
        return None
    # A speed that is far from the usual one is not explained by chance: then it counts alone.
    usual = sqrt(usual * usual + unexplained**2)
    weight = usual**2 / (usual**2 + seen.doubt**2)
    # Nor is it known whether the rest differs as much.
    variance = weight * seen.doubt**2 + (seen.apart / 2) ** 2 + (UNEXPLAINED * unexplained) ** 2
    eta = daily.until(t, (whole - now) * exp(-weight * seen.speed))
    spread = min(MAX_SPREAD, sqrt(PAST_SPREAD**2 + variance))
    return Prediction(eta, spread, sqrt(variance))


class _Seen(NamedTuple):
    """How much faster a scan goes than the earlier one, as a log ratio."""

    speed: float
    doubt: float
    """Its log spread."""
    apart: float
    """How far its speeds of late are apart."""


def _seen(
    xs: Sequence[float], spent: Sequence[float], whole: float, elapsed: float, rounding: float
) -> _Seen:
    """By the mean since its start and by what was watched, each as sure as it is."""
    mean, share = log(spent[-1] / elapsed), spent[-1] / whole
    bursts_seen = max(GROUP_SECONDS, longest_still(xs, spent)) / elapsed
    doubt = SURE + EARLY * exp(-SETTLING * share) + bursts_seen
    span, speed = xs[-1] - xs[0], None
    if len(xs) >= 3 and span > 0:
        speed = expected(Slopes(xs, spent), whole - spent[-1], 2 * rounding * whole)
    if speed is None:
        return _Seen(mean, doubt, 0.0)
    # The mean says the less of what is left, the less that is and the more speeds differed.
    doubt = sqrt(doubt**2 + (share * speed.spread) ** 2)
    own = max(SURE, speed.spread, doubt * elapsed / span)
    weight = doubt**2 / (own**2 + doubt**2)
    found = mean + weight * (log(speed.rate) - mean)
    return _Seen(found, own * doubt / sqrt(own**2 + doubt**2), speed.spread)
