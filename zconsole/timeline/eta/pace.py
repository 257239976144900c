"""The pace of a scan of hours to weeks: over the day, and with its memory.

The logarithm of its speed is fitted with what physics has it change with: the hour of the day, as
load comes with people, and the share of the rest that is in memory, and so sorted. Both are known
roughly beforehand and better with every hour, so half a day says something of the night, and a
steady scan stays steady.
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
"""An hour counts for at least this much: nothing stands still for a whole hour every day."""
MOST_TURNS = 60
LEAST_WATCHED = 3600.0
"""Seconds from the first byte issued, turns of walking included. In less, the speed changes for
other reasons than the hour and the memory."""
FEWEST, MOST = 24, 96
"""Stretches of equal length into which a course is divided: an hour each if it is one to four days
long, less in a shorter one (2.5 minutes in one of an hour), more in a longer one."""
INDEPENDENT = 3.0
"""Stretches that tell as much as one would that has nothing to do with its neighbors."""
NOISE, NOISE_FACTOR = 0.02, 1.5
SWING = 0.05
"""The least deviation of a swing over the day; a scan whose speed changes more may have more."""
QUARTER = 6 * HOUR
"""Seconds watched from which all of that change may be the day's: what changes sooner is not put
down to the hour."""
COSTS = tuple((seek, transfer) for seek in (3.0, 4.0, 5.0) for transfer in (0.01, 0.03, 0.1, 0.3))
"""Logarithms of how much longer runs are when all is sorted at once, and the time to read a byte,
as a share of that of the seeks to it while nothing is sorted: small blocks to large ones."""
STEPS = 24
"""Parts into which what is ahead is divided."""
LEAST_STRETCH = 1e-9
"""Share of the whole below which nothing was done in a stretch."""
LEAST_DONE = 1e-3
"""Bytes; less is a rounding of our own."""
KNOWN_SHARE = 0.3
"""How far a day may be from one of an earlier scan, as a share of its swing."""
STEEPEST = 3.0
"""The most that a feature may change the logarithm of the speed by."""


class Daily(NamedTuple):
    """How much each hour of the day (UTC) is worth, 1 on average.

    Nights are fast where days bring load: an hour at night may be worth three at noon.
    """

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


class Memory(NamedTuple):
    """The share of what was left that was in memory, as bytes were issued.

    What was walked waits in memory, sorted, until that is full; then it is issued, and the walk
    goes on (dsl_scan.c, ``dsl_scan_should_clear``). The larger the share of the remaining bytes in
    memory at once, the longer the runs that the devices read: the last turns are many times as fast
    as the first ones. What one turn issues was sorted when it began.
    """

    seen: list[float]
    """At each point."""
    ahead: list[tuple[float, float]]
    """Of what is left: parts of it that add up to 1, and the share of each."""

    @property
    def varies(self) -> bool:
        """Whether it says anything of the speed."""
        return len({*self.seen, *(dense for _, dense in self.ahead)}) > 1


def held_in_memory(
    points: Sequence[CurvePoint], total: float, to_scan: float, walks: bool
) -> Memory:
    """What was sorted at once, from the bytes walked and issued.

    ``walks``: whether metadata is still walked.
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
    """What is left by turns: what is in memory now, then as much as fits in it each time."""
    parts = [(min(held, left) / left, dense)]
    rest = left - min(held, left)
    step = max(most, left / MOST_TURNS)
    while rest > 1e-9 * left:
        moved = min(rest, step)
        parts.append((moved / left, min(1.0, most / rest)))
        rest -= moved
    return parts


def byte_cost(dense: float, seek: float, transfer: float) -> float:
    """The time for a byte: a seek for each run, ``e^seek`` times as long in memory, and itself."""
    return transfer + exp(-seek * sqrt(dense))


class Pace(NamedTuple):
    """A scan's course as work at an even pace."""

    daily: Daily
    worked: list[float]
    left: float
    doubt: float
    """Log spread of the speed ahead against the one behind, as far as this is not known."""


class Worked(NamedTuple):
    """What a scan has done: epochs, running seconds, and bytes."""

    ts: Sequence[float]
    xs: Sequence[float]
    done: Sequence[float]
    left: float
    memory: Memory | None = None

    @property
    def total(self) -> float:
        """All there is to do."""
        return self.done[-1] + self.left


class _Stretch(NamedTuple):
    speed: float
    """Its logarithm."""
    features: list[float]
    dense: float
    """The share of the rest that was in memory."""


def fitted(course: Worked, known: Daily = EVEN) -> Pace | None:
    """The pace that a course shows; None for a short one. ``known``: that of an earlier scan."""
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
    """The features of the day in the middle of each hour."""
    return [_day((n + 0.5) * HOUR) for n in range(HOURS)]


def _known(seen: Sequence[_Stretch], apart: float, known: Daily) -> LeastSquares:
    """The features of stretches, of speeds that deviate so much, and what is known beforehand."""
    logs = [log(factor) for factor in known.factors]
    day = [2 * _mean(list(map(mul, logs, wave))) for wave in zip(*_hours(), strict=True)]
    swing = SWING + (apart if known == EVEN else KNOWN_SHARE * max(map(abs, day)))
    deviations = [1e3, swing, swing, swing / 3, swing / 3]
    return LeastSquares([s.features for s in seen], [0.0, *day], deviations, INDEPENDENT)


def _stretches(course: Worked) -> list[_Stretch]:
    """The course in stretches of equal length, but those in which nothing was done."""
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
    """What seeks and transfers cost, by how well each fits, and the log spread of what is ahead."""
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
    """The logarithm of how much longer a byte ahead takes than one now."""
    ahead = sum(part * byte_cost(dense, *costs) for part, dense in memory.ahead)
    return log(ahead / byte_cost(memory.seen[-1], *costs))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _evened(course: Worked, costs: tuple[float, float] | None) -> tuple[list[float], float]:
    """What was done and is left as work at an even speed, but for the day.

    ``costs``: what a byte costs with its seeks, if that changes.
    """
    memory = course.memory
    if costs is None or memory is None:
        return [each - course.done[0] for each in course.done], course.left
    moved = [b - a for a, b in pairwise(course.done)]
    work = [a * byte_cost(d, *costs) for a, d in zip(moved, memory.seen[1:], strict=True)]
    ahead = sum(part * byte_cost(dense, *costs) for part, dense in memory.ahead)
    return [0.0, *accumulate(work)], course.left * ahead


def _daily(found: Sequence[float]) -> Daily:
    """The pace of each hour, 1 on average."""
    factors = [exp(sum(map(mul, hour, found[1:]))) for hour in _hours()]
    mean = _mean(factors)
    factors = [max(SLOWEST, factor / mean) for factor in factors]
    return Daily(tuple(factor / _mean(factors) for factor in factors))


def _doubt(course: Worked, squares: LeastSquares, covariance: Matrix) -> float:
    """How far the mean speed ahead may be from that behind, by how sure the features are."""
    ts, xs, done = course.ts, course.xs, course.done
    ahead = (xs[-1] - xs[0]) * course.left / (done[-1] - done[0])
    coming = [[1.0, *_day(ts[-1] + ahead * (n + 0.5) / STEPS)] for n in range(STEPS)]
    behind = [_mean(column) for column in squares.columns]
    means = [_mean(column) for column in zip(*coming, strict=True)]
    return deviation([a - b for a, b in zip(means, behind, strict=True)], covariance)


def value_at(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The value at ``x`` on the line through two or more points; beyond these, that of the end."""
    n = min(max(1, bisect_right(xs, x)), len(xs) - 1)
    apart = xs[n] - xs[n - 1]
    part = (x - xs[n - 1]) / apart if apart > 0 else 1.0
    return ys[n - 1] + (ys[n] - ys[n - 1]) * min(1.0, max(0.0, part))


class Fit(NamedTuple):
    """What values say of each coefficient."""

    found: list[float]
    rest: float
    """The mean square of what it leaves unexplained."""
    unusual: float
    """The squares of how far it is from what was known, in its deviations."""


class LeastSquares:
    """Bayesian linear regression: least squares with normal priors of the coefficients.

    Its mean and covariance: Bishop, Pattern Recognition and Machine Learning (2006), section 3.3.1.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        means: Sequence[float],
        deviations: Sequence[float],
        independent: float = 1.0,
    ) -> None:
        """Take rows of features, and of each coefficient the mean and deviation known beforehand.

        ``independent``: so many rows tell as much as one that does not follow another would.
        """
        self.columns = list(zip(*rows, strict=True))
        self._means, self._independent = means, independent
        self._sure = [1 / deviation**2 for deviation in deviations]
        self._products = [[_dot(a, b) for b in self.columns] for a in self.columns]

    def covariance(self, noise: float) -> Matrix:
        """How unsure each coefficient is, together with each other, for values with this noise."""
        weight = 1 / self._independent / noise**2
        made = [[weight * each for each in row] for row in self._products]
        for i, sure in enumerate(self._sure):
            made[i][i] += sure
        return _inverse(made)

    def fit(self, values: Sequence[float], noise: float, covariance: Matrix) -> Fit:
        """The coefficients of values; ``covariance``: that for this noise."""
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
    """How unsure the sum of coefficients is, each times its part."""
    return sqrt(max(0.0, _dot(apart, [_dot(row, apart) for row in covariance])))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    total: float = sum(map(mul, a, b))
    return total


def _inverse(matrix: Matrix) -> Matrix:
    """Of a positive definite matrix, by elimination."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        scale = 1 / rows[i][i]
        rows[i] = top = [each * scale for each in rows[i]]
        for j in range(size):
            if j != i:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], top, strict=True)]
    return [row[size:] for row in rows]
