from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.table import rows
from zconsole.timeline.eta.progress import CurvePoint, ProgressCurve, ProgressReading
from zconsole.timeline.present_rate import LEAST, SPAN, present_rate, rate_by_turns

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


@pytest.mark.slow
@rows("period", [5, 16])
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


def by_turns(walking: int, issuing: int, seconds: int) -> list[CurvePoint]:
    """A reading a second of a scan that walks, then issues 100 MB/s, for so many seconds each."""
    curve, issued, scanned = ProgressCurve(), 0.0, 0.0
    for n in range(seconds + 1):
        curve.add(ProgressReading(n, n, True, issued, scanned))
        walks = n % (walking + issuing) < walking
        issued, scanned = issued + (not walks) * 100 * MB, scanned + walks * 1000 * MB
    return curve.points


def moved_by(points: list[CurvePoint], seconds: float) -> float:
    old = next(p for p in points if p.x >= points[-1].x - seconds)
    return (points[-1].issued - old.issued) / (points[-1].x - old.x)


def test_in_a_long_turn_of_issuing_it_is_that_of_the_last_minute():
    points = by_turns(300, 900, 1200 + 300 + 200)
    found = rate_by_turns(points)
    assert found == (pytest.approx(moved_by(points, SPAN)), SPAN)


@rows("now", range(600, 640, 7))
def test_turns_shorter_than_a_minute_count_whole(now: int):
    found = rate_by_turns(by_turns(10, 30, now))
    assert found.rate == pytest.approx(75 * MB, rel=0.05)


@rows("now", [1200 + 200, 1200 + 300 + 20])
def test_while_it_walks_and_just_after_the_turn_before_counts_too(now: int):
    points = by_turns(300, 900, now)
    found = rate_by_turns(points)
    assert found.rate == pytest.approx(moved_by(points, found.seconds), rel=0.02)
    assert found.rate == pytest.approx(75 * MB, rel=0.2)


def test_the_first_turn_of_walking_has_no_rate():
    assert rate_by_turns([]) is None
    assert rate_by_turns(by_turns(300, 900, 200)) is None
    assert rate_by_turns(by_turns(300, 900, 300 + int(LEAST) - 1)) is None
    assert rate_by_turns(by_turns(300, 900, 300 + 30)).rate == pytest.approx(100 * MB)


def test_where_both_move_between_samples_it_is_that_of_the_last_minute():
    points = by_turns(10, 20, 3600)[::30]
    assert rate_by_turns(points) == (pytest.approx(100 * MB * 2 / 3), SPAN)
