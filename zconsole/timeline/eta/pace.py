"""The pace of a scan that takes hours to weeks: its changes over the day and with its memory.

The logarithm of its speed is fitted to the two causes that are known to change it: the hour of the
day, as users bring load, and the share of the remaining work that is in memory, and thus sorted.
Both are known roughly in advance and better with every hour, so that half a day says something
about the night, and a steady scan keeps a steady estimate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import cos, exp, log, pi, sin, sqrt
from operator import mul
from typing import NamedTuple

from zconsole.timeline.eta.progress import CurvePoint
from zconsole.timeline.eta.windows import weighted

Matrix = list[list[float]]

HOUR, DAY = 3600.0, 86400.0
HOURS = 24
SLOWEST = 0.01
"""Least weight of an hour: nothing stands still for a whole hour every day."""
MOST_TURNS = 60
"""Most turns into which the rest of a scan is divided."""
LEAST_WATCHED = 3600.0
"""Seconds from the first byte issued, including phases of walking. Within less, the speed changes
for other reasons than hour and memory."""
FEWEST, MOST = 24, 96
"""Number of stretches of equal length into which a course is divided: of an hour each if it is one
to four days long, less in a shorter one (2.5 minutes in one of an hour), more in a longer one."""
INDEPENDENT = 3.0
"""Number of adjacent stretches that carry as much information as one independent stretch."""
NOISE, NOISE_FACTOR = 0.02, 1.5
"""Noise assumed in the log speed of a stretch: a constant, plus this factor times the root mean
square of the residuals."""
SWING = 0.05
"""Least prior deviation of the swing over the day; it is larger for a scan whose speed varies
more."""
QUARTER = 6 * HOUR
"""Seconds watched before all of that variation may be attributed to the day: faster changes are not
due to the hour."""
COSTS = tuple((seek, transfer) for seek in (3.0, 4.0, 5.0) for transfer in (0.01, 0.03, 0.1, 0.3))
"""Candidates for two parameters: the logarithm of how much longer runs are when everything is
sorted at once, and the time to read a byte relative to that of its seeks while nothing is sorted
(small blocks to large ones)."""
STEPS = 24
"""Number of steps into which the time ahead is divided."""
LEAST_STRETCH = 1e-9
"""Share of the whole work below which a stretch counts as idle."""
LEAST_DONE = 1e-3
"""Bytes; less is a rounding error of our own."""
KNOWN_SHARE = 0.3
"""Deviation of a day from that of an earlier scan, as a share of its swing."""
STEEPEST = 3.0
"""Most that a feature may change the logarithm of the speed."""


class Daily(NamedTuple):
    """Relative speed of a scan in each hour of the day (UTC), with a mean of 1.

    Nights are fast if days bring load: an hour at night may be worth three at noon.
    """

    factors: tuple[float, ...] = (1.0,) * HOURS

    def mean_seconds(self, t: float, seconds: float) -> float:
        """Return what ``seconds`` from epoch ``t`` on are worth, in seconds at the mean speed."""
        if self.factors == EVEN.factors:
            return max(0.0, seconds)
        days, rest = divmod(max(0.0, seconds), DAY)
        total, at = days * DAY * sum(self.factors) / HOURS, t % DAY
        while rest > 0:
            step = min(rest, HOUR - at % HOUR)
            total += step * self.factors[int(at // HOUR) % HOURS]
            at, rest = at + step, rest - step
        return total

    def until(self, t: float, mean_seconds: float) -> float:
        """Return how many seconds from epoch ``t`` on are worth that many at the mean speed."""
        if self.factors == EVEN.factors:
            return max(0.0, mean_seconds)
        whole = DAY * sum(self.factors) / HOURS
        days, rest = divmod(max(0.0, mean_seconds), whole)
        seconds, at = days * DAY, t % DAY
        while rest > 1e-9:
            factor = self.factors[int(at // HOUR) % HOURS]
            step = min(rest / factor, HOUR - at % HOUR)
            seconds, at, rest = seconds + step, at + step, rest - step * factor
        return seconds


EVEN = Daily()


def mean_running_seconds(ts: Sequence[float], xs: Sequence[float], daily: Daily) -> list[float]:
    """Convert running seconds ``xs`` at epochs ``ts`` to seconds at the mean speed."""
    if daily == EVEN:
        return list(xs)
    found = [xs[0]]
    for n in range(1, len(xs)):
        found.append(found[-1] + daily.mean_seconds(ts[n] - (xs[n] - xs[n - 1]), xs[n] - xs[n - 1]))
    return found


class Memory(NamedTuple):
    """Share of the remaining bytes that was in memory, as bytes were issued.

    Walked blocks wait in memory, sorted, until it is full; then they are issued, and the walk
    continues (dsl_scan.c, ``dsl_scan_should_clear``). The larger the share of the remaining bytes
    in memory, the longer the runs that the devices read: the last turns are many times as fast as
    the first ones. The blocks issued in a turn were sorted when it began.
    """

    seen: list[float]
    """The share at each point."""
    ahead: list[tuple[float, float]]
    """Parts of the remaining work, which add up to 1, and the share for each."""

    @property
    def varies(self) -> bool:
        """True if it affects the speed at all."""
        return len({*self.seen, *(dense for _, dense in self.ahead)}) > 1


def share_in_memory(
    points: Sequence[CurvePoint], total: float, to_scan: float, walks: bool
) -> Memory:
    """Compute the share sorted in memory, from the bytes walked and issued.

    ``walks`` is True while metadata is still being walked.
    """
    part = min(1.0, total / to_scan) if to_scan > 0 else 1.0
    held = [max(0.0, p.scanned * part - p.issued) for p in points]
    left = [max(1.0, total - p.issued) for p in points]
    seen = [min(1.0, held[0] / left[0])]
    for n, (a, b) in enumerate(pairwise(points), 1):
        seen.append(min(1.0, held[n] / left[n]) if b.scanned > a.scanned else seen[-1])
    if not walks:
        return Memory(seen, [(1.0, 1.0)])
    return Memory(seen, _turns(seen[-1], held[-1], max(held), left[-1]))


def _turns(dense: float, held: float, most: float, left: float) -> list[tuple[float, float]]:
    """Divide the rest into turns: what is in memory now, then as much as fits into it each time."""
    parts = [(min(held, left) / left, dense)]
    rest = left - min(held, left)
    step = max(most, left / MOST_TURNS)
    while rest > 1e-9 * left:
        moved = min(rest, step)
        parts.append((moved / left, min(1.0, most / rest)))
        rest -= moved
    return parts


def byte_cost(dense: float, seek: float, transfer: float) -> float:
    """Return the relative time per byte: its transfer, and its part of a seek per run.

    Runs are ``e^seek`` times as long if everything is sorted in memory as if nothing is.
    """
    return transfer + exp(-seek * sqrt(dense))


class Pace(NamedTuple):
    """A scan's course converted to work at an even pace."""

    daily: Daily
    worked: list[float]
    left: float
    doubt: float
    """Log spread of the speed ahead relative to that so far, as far as it is unknown."""


class WorkDone(NamedTuple):
    """Work that a scan has done: epochs, running seconds, and bytes."""

    ts: Sequence[float]
    xs: Sequence[float]
    done: Sequence[float]
    left: float
    memory: Memory | None = None

    @property
    def total(self) -> float:
        """All work, done and left."""
        return self.done[-1] + self.left


class _Stretch(NamedTuple):
    speed: float
    """Logarithm of the speed."""
    features: list[float]
    dense: float
    """Share of the remaining bytes that was in memory."""


def fit_pace(course: WorkDone, known: Daily = EVEN) -> Pace | None:
    """Fit the pace of a course; None for a short one. ``known`` is that of an earlier scan."""
    xs, done = course.xs, course.done
    if xs[-1] - xs[0] < LEAST_WATCHED or course.left < 0 or done[0] < 0:
        return None
    if done[-1] - done[0] < LEAST_DONE:
        return None
    seen = _stretches(course)
    if len(seen) < FEWEST / 3:
        return None
    level = _mean([s.speed for s in seen])
    speeds = [s.speed - level for s in seen]
    apart = sqrt(_mean([speed * speed for speed in speeds]))
    by_day = apart * min(1.0, (xs[-1] - xs[0]) / QUARTER)
    squares, noise = _known(seen, by_day, known), NOISE + apart / 2
    costs, unsure, memory = None, 0.0, course.memory
    if memory is not None and memory.varies:
        costs, unsure = _costs(seen, speeds, squares, noise, memory)
        speeds = [v + log(byte_cost(s.dense, *costs)) for v, s in zip(speeds, seen, strict=True)]
    rest = squares.fit(speeds, noise, squares.covariance(noise)).rest
    noise = NOISE + NOISE_FACTOR * sqrt(rest)
    covariance = squares.covariance(noise)
    found = [max(-STEEPEST, min(STEEPEST, f)) for f in squares.fit(speeds, noise, covariance).found]
    worked, left = _evened(course, costs)
    doubt = _doubt(course, squares, covariance)
    return Pace(_daily(found), worked, left, sqrt(doubt**2 + unsure**2))


def _day(t: float) -> list[float]:
    angle = 2 * pi * t / DAY
    return [cos(angle), sin(angle), cos(2 * angle), sin(2 * angle)]


def _hours() -> list[list[float]]:
    """Return the features of the day in the middle of each hour."""
    return [_day((n + 0.5) * HOUR) for n in range(HOURS)]


def _known(seen: Sequence[_Stretch], apart: float, known: Daily) -> LeastSquares:
    """Return the regression of stretches, with priors for speeds that deviate by ``apart``."""
    logs = [log(factor) for factor in known.factors]
    day = [2 * _mean(list(map(mul, logs, wave))) for wave in zip(*_hours(), strict=True)]
    swing = SWING + (apart if known == EVEN else KNOWN_SHARE * max(map(abs, day)))
    # The mean is free; the 12-hour waves are weaker than the 24-hour ones.
    deviations = [1e3, swing, swing, swing / 3, swing / 3]
    return LeastSquares([s.features for s in seen], [0.0, *day], deviations, INDEPENDENT)


def _stretches(course: WorkDone) -> list[_Stretch]:
    """Divide the course into stretches of equal length, without those in which nothing was done."""
    ts, xs, done, memory = course.ts, course.xs, course.done, course.memory
    count = min(MOST, max(FEWEST, int((xs[-1] - xs[0]) / HOUR)))
    step = (xs[-1] - xs[0]) / count
    ends = [value_at(xs, done, xs[0] + k * step) for k in range(count + 1)]
    found = []
    for k in range(count):
        middle, moved = xs[0] + (k + 0.5) * step, ends[k + 1] - ends[k]
        if moved < LEAST_STRETCH * course.total:
            continue
        n = min(len(xs) - 1, bisect_right(xs, middle))
        features = [1.0, *_day(ts[n] - (xs[n] - middle))]
        found.append(_Stretch(log(moved / step), features, memory.seen[n] if memory else 1.0))
    return found


def _costs(
    seen: Sequence[_Stretch],
    speeds: Sequence[float],
    squares: LeastSquares,
    noise: float,
    memory: Memory,
) -> tuple[tuple[float, float], float]:
    """Average COSTS, weighted by fit; also return the log spread of what they predict ahead."""
    covariance, misfits = squares.covariance(noise), []
    for costs in COSTS:
        even = [v + log(byte_cost(s.dense, *costs)) for v, s in zip(speeds, seen, strict=True)]
        fit = squares.fit(even, noise, covariance)
        misfits.append(len(seen) / INDEPENDENT / 2 * log(fit.rest + NOISE**2) + fit.unusual / 2)
    weights = [exp(min(misfits) - misfit) for misfit in misfits]
    gains = [_gain(memory, costs) for costs in COSTS]
    mean = weighted(gains, weights)
    spread = sqrt(weighted(((gain - mean) ** 2 for gain in gains), weights))
    seek = weighted((seek for seek, _ in COSTS), weights)
    return (seek, exp(weighted((log(transfer) for _, transfer in COSTS), weights))), spread


def _gain(memory: Memory, costs: tuple[float, float]) -> float:
    """Return the logarithm of how much longer a byte ahead takes than one now."""
    ahead = sum(part * byte_cost(dense, *costs) for part, dense in memory.ahead)
    return log(ahead / byte_cost(memory.seen[-1], *costs))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _evened(course: WorkDone, costs: tuple[float, float] | None) -> tuple[list[float], float]:
    """Return work done and left with the effect of memory removed, but not that of the day.

    ``costs`` are the parameters of ``byte_cost``, if that changes during the scan.
    """
    memory = course.memory
    if costs is None or memory is None:
        return [each - course.done[0] for each in course.done], course.left
    moved = [b - a for a, b in pairwise(course.done)]
    work = [a * byte_cost(d, *costs) for a, d in zip(moved, memory.seen[1:], strict=True)]
    ahead = sum(part * byte_cost(dense, *costs) for part, dense in memory.ahead)
    return [0.0, *accumulate(work)], course.left * ahead


def _daily(found: Sequence[float]) -> Daily:
    """Return the pace of each hour, 1 on average."""
    factors = [exp(sum(map(mul, hour, found[1:]))) for hour in _hours()]
    mean = _mean(factors)
    factors = [max(SLOWEST, factor / mean) for factor in factors]
    return Daily(tuple(factor / _mean(factors) for factor in factors))


def _doubt(course: WorkDone, squares: LeastSquares, covariance: Matrix) -> float:
    """Return the log spread of the mean speed ahead against that so far, from the fit."""
    ts, xs, done = course.ts, course.xs, course.done
    ahead = (xs[-1] - xs[0]) * course.left / (done[-1] - done[0])
    coming = [[1.0, *_day(ts[-1] + ahead * (n + 0.5) / STEPS)] for n in range(STEPS)]
    behind = [_mean(column) for column in squares.columns]
    means = [_mean(column) for column in zip(*coming, strict=True)]
    return deviation([a - b for a, b in zip(means, behind, strict=True)], covariance)


def value_at(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Return the interpolated value at ``x``; outside the points, that of the nearest end."""
    n = min(max(1, bisect_right(xs, x)), len(xs) - 1)
    apart = xs[n] - xs[n - 1]
    part = (x - xs[n - 1]) / apart if apart > 0 else 1.0
    return ys[n - 1] + (ys[n] - ys[n - 1]) * min(1.0, max(0.0, part))


class Fit(NamedTuple):
    """Result of a regression: the coefficients, and how well they fit."""

    found: list[float]
    rest: float
    """Mean square of the residuals."""
    unusual: float
    """Sum of squared distances from the priors, in units of their deviations."""


class LeastSquares:
    """Bayesian linear regression: least squares with normal priors of the coefficients.

    Mean and covariance: Bishop, Pattern Recognition and Machine Learning (2006), section 3.3.1.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        means: Sequence[float],
        deviations: Sequence[float],
        independent: float = 1.0,
    ) -> None:
        """Take rows of features, and the prior mean and deviation of each coefficient.

        ``independent`` is the number of adjacent rows that carry as much information as one
        independent row.
        """
        self.columns = list(zip(*rows, strict=True))
        self._means, self._independent = means, independent
        self._sure = [1 / deviation**2 for deviation in deviations]
        self._products = [[_dot(a, b) for b in self.columns] for a in self.columns]

    def covariance(self, noise: float) -> Matrix:
        """Return the posterior covariance of the coefficients, for values with this noise."""
        weight = 1 / self._independent / noise**2
        made = [[weight * each for each in row] for row in self._products]
        for i, sure in enumerate(self._sure):
            made[i][i] += sure
        return _inverse(made)

    def fit(self, values: Sequence[float], noise: float, covariance: Matrix) -> Fit:
        """Fit coefficients to values; ``covariance`` is that for this noise."""
        weight = 1 / self._independent / noise**2
        along = [_dot(column, values) for column in self.columns]
        known = zip(along, self._means, self._sure, strict=True)
        right = [weight * each + mean * sure for each, mean, sure in known]
        found = [_dot(row, right) for row in covariance]
        explained = sum(f * _dot(row, found) for f, row in zip(found, self._products, strict=True))
        rest = max(0.0, _dot(values, values) - 2 * _dot(found, along) + explained) / len(values)
        apart = zip(found, self._means, self._sure, strict=True)
        return Fit(found, rest, sum(sure * (f - mean) ** 2 for f, mean, sure in apart))


def deviation(apart: Sequence[float], covariance: Matrix) -> float:
    """Return the standard deviation of a weighted sum of coefficients."""
    return sqrt(max(0.0, _dot(apart, [_dot(row, apart) for row in covariance])))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    total: float = sum(map(mul, a, b))
    return total


def _inverse(matrix: Matrix) -> Matrix:
    """Invert a positive definite matrix by elimination."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    # No pivoting: a positive definite matrix needs none.
    for i in range(size):
        scale = 1 / rows[i][i]
        rows[i] = top = [each * scale for each in rows[i]]
        for j in range(size):
            if j != i:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], top, strict=True)]
    return [row[size:] for row in rows]
