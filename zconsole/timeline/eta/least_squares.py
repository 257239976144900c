"""Bayesian linear regression: least squares with normal priors of the coefficients.

Its mean and covariance: Bishop, Pattern Recognition and Machine Learning (2006), section 3.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import NamedTuple

Matrix = list[list[float]]


class Fit(NamedTuple):
    """What values say of each coefficient."""

    found: list[float]
    rest: float
    """The mean square of what it leaves unexplained."""
    unusual: float
    """The squares of how far it is from what was known, in its deviations."""


class LeastSquares:
    """Rows of features, and of each coefficient the mean and deviation known beforehand."""

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        means: Sequence[float],
        deviations: Sequence[float],
        independent: float = 1.0,
    ) -> None:
        """``independent``: so many rows tell as much as one that does not follow another would."""
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
