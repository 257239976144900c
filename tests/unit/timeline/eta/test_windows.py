from __future__ import annotations

import pytest

from zconsole.timeline.eta.windows import Slopes


def test_a_straight_course_has_one_slope_everywhere():
    xs = [float(n) for n in range(100)]
    slopes = Slopes(xs, [5 + 3 * x for x in xs])
    for start, end in ((0, 99), (10, 20), (50, 99)):
        assert slopes.between(start, end) == pytest.approx(3)
    assert slopes.mean == pytest.approx(3)


def test_large_counters_lose_no_precision():
    xs = [1e6 + n for n in range(50)]
    slopes = Slopes(xs, [9e14 + 1000 * (x - 1e6) for x in xs])
    assert slopes.between(1e6 + 40, 1e6 + 49) == pytest.approx(1000, rel=1e-3)


def test_one_point_has_no_slope():
    assert Slopes([1.0, 2.0], [1.0, 2.0]).between(1.5, 2.0) is None


def test_thinned_points_weigh_the_time_they_stand_for():
    dense = [float(n) for n in range(200)]
    thin = [float(n) for n in range(0, 100, 10)] + [float(n) for n in range(100, 200)]

    def curve(x: float) -> float:
        return x if x < 100 else 100 + 3 * (x - 100)

    full = Slopes(dense, [curve(x) for x in dense]).between(0, 199)
    part = Slopes(thin, [curve(x) for x in thin]).between(0, 199)
    assert part == pytest.approx(full, rel=0.02)
