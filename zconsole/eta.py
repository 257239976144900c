"""An estimate of when a scan ends, from windowed rates.

``zpool`` divides the bytes of the current pass by its length; one slow hour, a restart or the
burst at its start stays in that average to the end. Here the console's own samples are cut into
windows from ten seconds to all that was watched; each window is judged by how well it would have
foretold the recent past, and the rate is their mean, the better ones counting more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from zconsole import units
from zconsole.course import Course, Point
from zconsole.slopes import Slopes

MIN_POINTS = 3
MIN_SECONDS = 2.0
WARM_UP = 4.0
"""Seconds after its start in which a scan only fills the devices' queues."""
WINDOWS = tuple(10.0 * 2**k for k in range(12))
"""Seconds, ten to about six hours; and all that was watched."""
HINDCASTS = (0.15, 0.3, 0.45)
"""Shares of the time watched over which each window has to have foretold the progress."""
SHORTEST_HINDCAST = 8.0
FORGIVEN = 0.05
"""A window's error (as a log ratio) below which it is as good as any."""
UNTRIED = 0.3
"""The error of windows when nothing could be foretold yet."""
BASE_SPREAD = 0.25
SPREAD_FACTOR = 1.3
MAX_SPREAD = 1.0
SLACK = 2.0
"""Seconds either way that a transaction group may take longer or shorter."""
PHASE_SECONDS = 20.0
"""Issued bytes advance in bursts a transaction group long; their level is the line over this."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds to go with a range, or the reason there is none."""

    eta: float | None
    low: float | None
    high: float | None
    reason: str
    """What it rests on (``issuing at 124M/s over 5 min``), or why there is none."""


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do, and how exactly it is known; bytes and seconds."""

    total: float
    """Bytes to issue in all."""
    issued: float
    processed: float = 0.0
    """Bytes repaired or rebuilt; 0 where the source has none, or none this exact."""
    share: float | None = None
    """Bytes repaired for each byte issued, where the topology tells."""
    start: float | None = None
    """Epoch seconds."""
    tail: float = 2.0
    """Seconds from the last byte to the end: the transaction group that notices."""
    resolution: float = 0.0
    """Bytes of rounding in ``issued``."""
    average: float | None = None
    """Bytes/s that zpool averages over this pass."""
    verb: str = "issuing"


@dataclass(frozen=True, slots=True)
class Forecast:
    """An estimate and the windowed rate it rests on."""

    estimate: Estimate
    rate: float | None = None
    """Bytes/s."""
    window: float | None = None
    """Seconds; None for zpool's average."""


@dataclass(frozen=True, slots=True)
class _Window:
    seconds: float
    rate: float
    error: float | None
    """Log ratio by which it misjudged the recent past; None when it could not be tried."""


def nothing(reason: str) -> Estimate:
    """No estimate, and why."""
    return Estimate(None, None, None, reason)


def forecast(course: Course, work: Work) -> Forecast:
    """When the work is done, judging by its course; with the reason when nobody can tell."""
    if work.total < work.issued:
        return Forecast(nothing("past 100 %: remaining unknown"))
    points = _warm(course.points, work.start)
    if len(points) < MIN_POINTS or points[-1].x - points[0].x < MIN_SECONDS:
        return _by_average(work, f"{len(course.points)} samples")
    done, flight = _meter(points, work)
    slopes = Slopes([p.x for p in points], done)
    windows = _windows(slopes, points[0].x, points[-1].x, 2 * work.resolution)
    if not windows:
        return _by_average(work, f"nothing moved for {units.duration(course.idle)}")
    level = _level(slopes, points[-1].x, done[-1]) if flight is None else 0.0
    left = max(0.0, work.total - work.issued + (flight or 0.0) + level)
    return _combine(windows, left, work)


def _warm(points: Sequence[Point], start: float | None) -> Sequence[Point]:
    """The points after the queues have filled, if that leaves enough."""
    if start is None:
        return points
    warm = [p for p in points if p.t - start >= WARM_UP]
    return warm if len(warm) >= MIN_POINTS else points


def _meter(points: Sequence[Point], work: Work) -> tuple[list[float], float | None]:
    """Bytes done at each point, and the bytes issued but not done now (None: not known).

    Issued bytes run ahead of the devices by what is queued (tens of MB, and a whole metaslab in a
    rebuild), in bursts. Repaired bytes count what has come back; they are a fixed share of the
    issued ones, known from the topology or from where the queues ran lowest.
    """
    issued = [p.issued for p in points]
    share = _share(points, work)
    if share is None:
        return issued, None
    flight = max(0.0, work.issued - work.processed / share)
    return [p.processed / share for p in points], flight


def _share(points: Sequence[Point], work: Work) -> float | None:
    floor = 0.02 * work.total
    seen = [p.processed / p.issued for p in points if p.issued > floor]
    if work.processed <= 0 or not seen or max(seen) <= 0:
        return None
    best = max(seen)
    if work.share is not None and 0.85 * work.share <= best <= 1.05 * work.share:
        return work.share
    return best


def _windows(slopes: Slopes, first: float, now: float, rounding: float) -> list[_Window]:
    """Every window that saw clearly more than rounding, the shortest first."""
    span = now - first
    found: list[_Window] = []
    for seconds in (*(w for w in WINDOWS if w < span), span):
        line = slopes.line(now - seconds, now)
        if line is None or line.slope <= 0 or line.slope * seconds < 20 * rounding:
            continue
        found.append(_Window(seconds, line.slope, _hindcast(slopes, seconds, first, now)))
    return found


def _hindcast(slopes: Slopes, seconds: float, first: float, now: float) -> float | None:
    """Root mean square log error of a window's rate against what came after it."""
    errors = []
    for share in HINDCASTS:
        origin = now - max(SHORTEST_HINDCAST, share * (now - first))
        if origin - first < min(seconds, 6.0):
            continue
        told = slopes.line(max(first, origin - seconds), origin)
        came = slopes.line(origin, now)
        if told and came and told.slope > 0 and came.slope > 0:
            errors.append(log(told.slope / came.slope) ** 2)
    return sqrt(sum(errors) / len(errors)) if errors else None


def _level(slopes: Slopes, now: float, done: float) -> float:
    """Bytes by which a burst has run ahead of the line through the last bursts."""
    line = slopes.line(now - PHASE_SECONDS, now)
    return done - line.end if line else 0.0


def _combine(windows: Sequence[_Window], left: float, work: Work) -> Forecast:
    known = [w.error for w in windows if w.error is not None]
    untried = max(known, default=UNTRIED)
    errors = [untried if w.error is None else w.error for w in windows]
    weights = [1 / (e * e + FORGIVEN * FORGIVEN) for e in errors]
    mean = _weighted((log(w.rate) for w in windows), weights)
    apart = _weighted(((log(w.rate) - mean) ** 2 for w in windows), weights)
    missed = _weighted((e * e for e in errors), weights)
    spread = sqrt(BASE_SPREAD**2 + SPREAD_FACTOR**2 * (apart + missed))
    rate = exp(mean)
    seconds = exp(_weighted((log(w.seconds) for w in windows), weights))
    estimate = ranged(
        left / rate + work.tail, min(MAX_SPREAD, spread), _reason(work, rate, seconds)
    )
    return Forecast(estimate, rate, seconds)


def ranged(eta: float, spread: float, reason: str) -> Estimate:
    """An estimate with a range of a factor e^spread either way."""
    low = max(0.0, eta * exp(-spread) - SLACK)
    return Estimate(eta, low, eta * exp(spread) + SLACK, reason)


def _weighted(values: Iterable[float], weights: Sequence[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def _reason(work: Work, rate: float, seconds: float) -> str:
    own = f"{work.verb} at {units.rate(rate)} over {units.duration(seconds)}"
    if work.average is None:
        return own
    return f"{own}, zpool averages {units.rate(work.average)} over this pass"


def _by_average(work: Work, why: str) -> Forecast:
    """From zpool's average when there is one; that is all a single sample has."""
    if not work.average or work.average <= 0:
        return Forecast(nothing(f"no estimate yet: {why}"))
    eta = (work.total - work.issued) / work.average + work.tail
    reason = f"{why}: zpool averages {units.rate(work.average)} over this pass"
    return Forecast(ranged(eta, MAX_SPREAD, reason), work.average)
