from __future__ import annotations

from collections.abc import Iterable

import pytest

from zconsole.eta.progress_curve import CurvePoint, ProgressCurve, ProgressReading
from zconsole.history.present_rate import LEAST, SPAN, present_rate

MB = 1e6
TOTAL = 1e12


def course(issued: Iterable[float], step: float = 1.0, walked: int = 0) -> list[CurvePoint]:
    """A reading every ``step`` seconds; metadata is walked at the one with index ``walked``."""
    curve = ProgressCurve()
    for n, done in enumerate(issued):
        scanned = TOTAL * min(1.0, n / walked) if walked else TOTAL
        curve.add(ProgressReading(n * step, n * step, True, done, scanned))
    return curve.points


def changed(before: float, after: float, seconds: int, at: int = 7200) -> list[float]:
    """Bytes issued at each second of a scan whose rate changes after two hours."""
    return [before * min(n, at) + after * max(0, n - at) for n in range(at + seconds + 1)]


def test_a_rate_that_changed_is_seen_whole_after_the_span():
    found = present_rate(course(changed(100 * MB, 150 * MB, int(SPAN))), walks=True)
    assert found.rate == pytest.approx(150 * MB)
    assert found.seconds == SPAN


@pytest.mark.parametrize("period", [5, 16])
def test_bursts_do_not_sway_it(period: int):
    issued = [n // period * period * 100 * MB for n in range(601)]
    seen = [present_rate(course(issued[:end]), walks=True).rate for end in range(400, 600)]
    assert min(seen) == pytest.approx(100 * MB, rel=0.02)
    assert max(seen) == pytest.approx(100 * MB, rel=0.02)


def test_the_metadata_walk_does_not_count():
    walked = 300
    points = course([max(0, n - walked) * 100 * MB for n in range(walked + 21)], walked=walked)
    assert present_rate(points, walks=True).rate == pytest.approx(100 * MB)
    assert present_rate(points[: walked + int(LEAST) - 1], walks=True) is None


def test_samples_far_apart_have_the_rate_of_the_last_two():
    found = present_rate(course([0, 100 * MB, 700 * MB], step=300.0), walks=True)
    assert (found.rate, found.seconds) == (pytest.approx(2 * MB), 300.0)


def test_a_counter_that_is_rounded_too_coarsely_says_nothing():
    points = course(changed(100 * MB, 100 * MB, 100))
    assert present_rate(points, walks=True, rounding=10 * MB).rate == pytest.approx(100 * MB)
    assert present_rate(points, walks=True, rounding=1000 * MB) is None


def test_nothing_is_known_of_a_scan_just_seen():
    assert present_rate([], walks=True) is None
    assert present_rate(course([0.0]), walks=True) is None
