"""Straight lines through any stretch of a course, by prefix sums: each costs two bisections."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple


class Line(NamedTuple):
    """A least-squares line: its slope and its value at the end of the stretch."""

    slope: float
    end: float


class Slopes:
    """Prefix sums over (x, y); every point weighs the time it stands for, so thinning is fair."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self._xs = xs
        self.first, self.last = xs[0], xs[-1]
        self.mean = (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if xs[-1] > xs[0] else 0.0
        """The slope between the first point and the last."""
        self._x0, self._y0 = xs[0], ys[0]
        # A long scan has hundreds of points, and a new one every second: columns, not rows.
        weights = [1.0, *(max(0.1, b - a) for a, b in pairwise(xs))]
        across, up = [x - xs[0] for x in xs], [y - ys[0] for y in ys]
        weighted = list(map(mul, weights, across))
        self._n, self._sx = _sums(weights), _sums(weighted)
        self._sy = _sums(map(mul, weights, up))
        self._sxx, self._sxy = _sums(map(mul, weighted, across)), _sums(map(mul, weighted, up))

    def line(self, start: float, end: float) -> Line | None:
        """The line through the points from ``start`` to ``end``; None with fewer than two."""
        i, j = bisect_left(self._xs, start - 1e-6), bisect_right(self._xs, end + 1e-6)
        if j - i < 2:
            return None
        n, sx, sy = self._n[j] - self._n[i], self._sx[j] - self._sx[i], self._sy[j] - self._sy[i]
        sxx, sxy = self._sxx[j] - self._sxx[i], self._sxy[j] - self._sxy[i]
        spread = n * sxx - sx * sx
        if spread <= 0:
            return None
        slope = (n * sxy - sx * sy) / spread
        return Line(slope, self._y0 + (sy - slope * sx) / n + slope * (end - self._x0))


def _sums(values: Iterable[float]) -> list[float]:
    return [0.0, *accumulate(values)]
