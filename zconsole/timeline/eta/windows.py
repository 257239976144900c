"""The expected speed, from windows of the past that are judged by how well they predicted it.

Three questions weight a window: is it about as long as the time left (an hour is best predicted by
about an hour), did it predict what came after it, and does it agree with the present? The mean over
everything watched is blended in, with more weight the further away the end is: load comes and goes.
A present slower than that mean hardly lessens its weight, as a load will end; a faster one does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import exp, log, sqrt
from operator import mul
from typing import NamedTuple

WINDOWS = tuple(10.0 * 2**k for k in range(12))
"""Window lengths in seconds, ten to about six hours; one over everything watched is added."""
ROUNDINGS = 20.0
"""A window must see this many times the rounding of its two ends, or 5 % is noise."""
LEAST_MOVED = 1e-3
"""Bytes, or seconds of work; less is a rounding error of our own."""
HINDCASTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Moments in the past, as shares of the time watched, from which windows are asked to predict."""
SHORTEST_HINDCAST = 8.0
"""Least seconds between the moment of a prediction and the present, and over which it is judged."""
LEAST_PAST = 6.0
"""Least seconds of samples before the moment of a prediction."""
FORGIVEN = 0.05
"""Error (a log ratio) below which all windows count as equally good."""
UNTRIED = 0.3
"""Error assumed for windows as long as nothing could be predicted."""
HORIZON_SPREAD = 1.0
"""Log distance at which a window has 0.6 of the full weight: e times longer or shorter than the
time left."""
MEAN_SHARE = 0.8
"""Share of the overall mean in the expected speed if the end is far away."""
PRESENT_SECONDS = 10.0
PRESENT_SHARE = 0.08
"""The present: the last ten seconds, or 8 % of the time watched if that is longer."""
USUAL_FACTOR = 3.0
"""Multiple of the usual change of speed by which the present is doubted."""
CERTAIN = 0.1
"""A change of speed by 10 % never counts against a window."""
MEAN_MISFIT_WEIGHT = 0.3
"""How much the overall mean loses of its share if it disagrees with a faster present."""
LOAD_MISFIT_WEIGHT = 0.05
"""The same while the present is slower than the mean: that is probably a load, which will end. A
faster present shows what the disks can do."""


class Window(NamedTuple):
    """The speed over the last ``seconds``, and its error when predicting the past."""

    seconds: float
    rate: float
    error: float | None
    """Root mean square log ratio of prediction to result; None if never tried."""


class Present(NamedTuple):
    """The speed now (log bytes/s), and how much it usually changes (log ratio)."""

    speed: float
    doubt: float

    def misfit(self, rate: float) -> float:
        """Return half the squared deviation of a rate from the present, in units of the doubt."""
        return 0.5 * ((log(rate) - self.speed) / self.doubt) ** 2


class Speed(NamedTuple):
    """The expected speed, its log spread, and the seconds it is mostly based on."""

    rate: float
    """Bytes, or seconds of work, per second."""
    spread: float
    seconds: float


def expected(slopes: Slopes, left: float, rounding: float) -> Speed | None:
    """Return the expected speed over what is ``left``; None if nothing moved measurably.

    ``rounding`` is that of the difference of two readings. Both are in the unit of the course:
    bytes, or seconds of work.
    """
    windows = _windows(slopes, rounding)
    if not windows:
        return None
    ahead = left / windows[-1].rate + 1.0
    present = _present(slopes)
    known = [w.error for w in windows if w.error is not None]
    untried = max(known, default=UNTRIED)
    errors = [untried if w.error is None else w.error for w in windows]
    wanted = max(WINDOWS[0], ahead)
    # The small constants keep the sum of the weights above 0.
    weights = [
        max(1e-12, exp(-0.5 * (log(w.seconds / wanted) / HORIZON_SPREAD) ** 2))
        * (1.0 if present is None else exp(-present.misfit(w.rate)) + 1e-4)
        / (error * error + FORGIVEN * FORGIVEN)
        for w, error in zip(windows, errors, strict=True)
    ]
    speed = weighted((log(w.rate) for w in windows), weights)
    apart = weighted(((log(w.rate) - speed) ** 2 for w in windows), weights)
    missed = weighted((e * e for e in errors), weights)
    seconds = exp(weighted((log(w.seconds) for w in windows), weights))
    # For a distant end, the present counts less than the mean: it will change before then.
    if slopes.mean > 0:
        mean, share = log(slopes.mean), MEAN_SHARE * ahead / (ahead + slopes.last - slopes.first)
        if present is not None:
            misfit_weight = LOAD_MISFIT_WEIGHT if present.speed < mean else MEAN_MISFIT_WEIGHT
            share *= exp(-misfit_weight * present.misfit(slopes.mean))
        speed += share * (mean - speed)
    return Speed(exp(speed), sqrt(apart + missed), seconds)


def _windows(slopes: Slopes, rounding: float) -> list[Window]:
    """Return every window that saw clearly more than rounding, the shortest first."""
    span = slopes.last - slopes.first
    found: list[Window] = []
    for seconds in (*(w for w in WINDOWS if w < span), span):
        rate = slopes.between(slopes.last - seconds, slopes.last)
        if rate is not None and rate * seconds >= max(LEAST_MOVED, ROUNDINGS * rounding):
            found.append(Window(seconds, rate, _hindcast(slopes, seconds)))
    return found


def _hindcast(slopes: Slopes, seconds: float) -> float | None:
    """Return the error of a window's predictions in the past; the recent past counts more."""
    first, now = slopes.first, slopes.last
    squares = weights = 0.0
    # Several moments of the past, each compared with what came after it.
    for ago in sorted({max(SHORTEST_HINDCAST, share * (now - first)) for share in HINDCASTS}):
        then = now - ago
        if then - first < LEAST_PAST:
            break
        predicted = slopes.between(max(first, then - seconds), then)
        came = slopes.between(then, min(now, then + max(SHORTEST_HINDCAST, 0.5 * (then - first))))
        if predicted and came and min(predicted, came) > 0:
            squares += (log(predicted) - log(came)) ** 2 / ago
            weights += 1 / ago
    return sqrt(squares / weights) if weights else None


def _present(slopes: Slopes) -> Present | None:
    """Return the present speed and its usual changes.

    None while it stands still or is too young.
    """
    span = slopes.last - slopes.first
    length = max(PRESENT_SECONDS, PRESENT_SHARE * span)
    count = int(span / length)
    if count < 3:
        return None
    ends = [slopes.last - k * length for k in range(count)]
    rates = [slopes.between(end - length, end) for end in ends]
    logs = [log(rate) if rate and rate > 0 else None for rate in rates]
    if logs[0] is None or logs[1] is None or logs.count(None) > 0.2 * count:
        return None
    changes = [abs(a - b) for a, b in pairwise(logs[1:]) if a is not None and b is not None]
    from statistics import median  # lazy import: a single sample starts faster without it

    usual = median(changes) if changes else UNTRIED
    return Present(logs[0], CERTAIN + USUAL_FACTOR * usual + abs(logs[0] - logs[1]))


def weighted(values: Iterable[float], weights: Sequence[float]) -> float:
    """Return the weighted mean of values."""
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


class Slopes:
    """Slopes of least-squares lines through any stretch of a course, by prefix sums.

    Each costs two bisections. Every point is weighted by the time it stands for, so thinning does
    not distort the result.
    """

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self._xs = xs
        self.first, self.last = xs[0], xs[-1]
        self.mean = (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if xs[-1] > xs[0] else 0.0
        """Slope between the first point and the last."""
        # Columns instead of rows: a long scan has hundreds of points, and a new one every second.
        weights = [1.0, *(max(0.1, b - a) for a, b in pairwise(xs))]
        across, up = [x - xs[0] for x in xs], [y - ys[0] for y in ys]
        weighted = list(map(mul, weights, across))
        self._n, self._sx = _sums(weights), _sums(weighted)
        self._sy = _sums(map(mul, weights, up))
        self._sxx, self._sxy = _sums(map(mul, weighted, across)), _sums(map(mul, weighted, up))

    def between(self, start: float, end: float) -> float | None:
        """Return the slope of the points from ``start`` to ``end``; None with fewer than two."""
        i, j = bisect_left(self._xs, start - 1e-6), bisect_right(self._xs, end + 1e-6)
        if j - i < 2:
            return None
        n, sx, sy = self._n[j] - self._n[i], self._sx[j] - self._sx[i], self._sy[j] - self._sy[i]
        sxx, sxy = self._sxx[j] - self._sxx[i], self._sxy[j] - self._sxy[i]
        spread = n * sxx - sx * sx
        if spread <= 0:
            return None
        return (n * sxy - sx * sy) / spread


def _sums(values: Iterable[float]) -> list[float]:
    return [0.0, *accumulate(values)]
