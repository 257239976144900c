from __future__ import annotations

import pytest

from zconsole.timeline.eta.least_squares import LeastSquares, deviation

ROWS = [[1.0, n / 10] for n in range(10)]
LINE = [2.0 + 0.5 * n / 10 for n in range(10)]


def test_what_values_show_outweighs_what_was_known_of_them():
    squares = LeastSquares(ROWS, [0.0, -1.0], [1e3, 1.0])
    fit = squares.fit(LINE, 0.01, squares.covariance(0.01))
    assert fit.found == pytest.approx([2.0, 0.5], abs=0.02)
    assert fit.rest == pytest.approx(0, abs=1e-3)


def test_values_that_are_mostly_noise_leave_what_was_known():
    squares = LeastSquares(ROWS, [0.0, -1.0], [1e3, 0.1])
    fit = squares.fit(LINE, 10.0, squares.covariance(10.0))
    assert fit.found[1] == pytest.approx(-1.0, abs=0.01)
    assert fit.unusual < 0.1


def test_more_rows_make_it_surer():
    few, many = (LeastSquares(ROWS * n, [0.0, 0.0], [1e3, 1.0]) for n in (1, 10))
    apart = [0.0, 1.0]
    assert deviation(apart, many.covariance(0.5)) < 0.5 * deviation(apart, few.covariance(0.5))


def test_rows_that_follow_each_other_tell_less():
    alone, after = (LeastSquares(ROWS, [0.0, 0.0], [1e3, 1.0], n) for n in (1.0, 3.0))
    apart = [0.0, 1.0]
    assert deviation(apart, after.covariance(0.5)) > deviation(apart, alone.covariance(0.5))
