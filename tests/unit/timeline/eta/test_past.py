from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.timeline.eta.estimate import Forecast, forecast, nothing, ranged
from zconsole.timeline.eta.pace import Daily
from zconsole.timeline.eta.past import (
    MOST_POINTS,
    Comparison,
    PastScan,
    RunningCourse,
    choose_past,
    combined,
    past_scan,
    positions,
    predict,
    predict_both,
)
from zconsole.timeline.eta.progress import CurvePoint, ProgressCurve, Totals, Work

START, TOTAL = 1_800_000_000.0, 1000.0
TOTALS = Totals(TOTAL, 0.0)


def points(seconds: int, slower: float = 1.0, total: float = TOTAL) -> list[CurvePoint]:
    """Return a scan whose halves take 200 s and 400 s, ``slower`` times as long."""
    found = []
    for n in range(seconds):
        x = n / slower
        share = x / 400 if x <= 200 else 0.5 + (x - 200) / 800
        found.append(CurvePoint(float(n), START + n, total * min(1.0, share), total, 0.0))
    return found


def earlier(function: str = "scrub", start: float = START, watched: int = 600) -> PastScan:
    past = past_scan((function, None, start), start + 600, points(watched), TOTALS)
    assert past is not None
    return past


def told(seconds: int, slower: float = 1.0, growth: float = 1.0, past: PastScan | None = None):
    seen = points(seconds, slower, TOTAL * growth)
    totals = Totals(TOTAL * growth, 0.0)
    return predict(past or earlier(), RunningCourse("scrub", seen, totals, float(seconds - 1)))


@rows("seconds", [61, 150, 300, 500])
def test_a_scan_like_the_last_one_ends_like_it(seconds):
    assert told(seconds).eta == pytest.approx(601 - seconds, rel=0.05)


def test_one_that_is_twice_as_slow_takes_twice_the_time():
    assert told(500, slower=2.0).eta == pytest.approx(700, rel=0.1)


def test_a_pool_that_grew_takes_as_much_longer():
    past = earlier()
    grown = predict(
        past, RunningCourse("scrub", points(90, 1.2, 1200.0), Totals(1200.0, 0.0), 89.0)
    )
    assert grown.eta == pytest.approx(720 - 89, rel=0.1)


def test_a_pool_of_another_size_altogether_is_not_told_by_it():
    assert choose_past([earlier()], "scrub", None, Totals(TOTAL * 10, 0.0)) is None


def test_of_scans_of_its_kind_one_of_about_its_size_is_chosen():
    small = past_scan(("scrub", None, START + 9), START + 609, (), Totals(TOTAL / 100, 0.0))
    assert choose_past([small, earlier()], "scrub", None, TOTALS) == earlier()


def against_last(elapsed: float, eta: float, function: str = "scrub"):
    """Compare a scan, by its elapsed and remaining seconds, with a scrub of ten minutes."""
    past = earlier()
    return Comparison(past.function, past.seconds, past.seconds - (elapsed + eta), function)


@rows(
    ("elapsed", "eta", "how"),
    [
        (60.0, 340.0, "3m20s ahead"),
        (399.0, 1.0, "3m20s ahead"),
        (400.0, 400.0, "3m20s behind"),
        (300.0, 315.0, "as fast"),
    ],
)
def test_what_is_compared_is_how_long_each_takes_in_all(elapsed, eta, how):
    found = against_last(elapsed, eta)
    assert (found.function, found.took) == ("scrub", 600)
    assert found.words == f"last scrub took 10m00s, this one is {how}"


def test_the_range_is_narrower_the_surer_it_is():
    assert told(400).spread < told(30).spread
    alike = predict(earlier("scrub"), RunningCourse("resilver", points(60), TOTALS, 59.0))
    assert alike.spread > told(60).spread


def test_what_was_not_watched_is_a_straight_line():
    past = past_scan(("scrub", None, START), START + 600, (), TOTALS)
    assert past.watched == 0
    assert past.points == ((0.0, 0.0), (1.0, 600.0))
    watched = earlier(watched=300).points
    assert (watched[0], watched[-1]) == ((0.0, 0.0), (1.0, 600.0))


def test_a_scan_too_short_tells_nothing():
    assert past_scan(("scrub", None, START), START + 5, (), TOTALS) is None
    assert past_scan(("scrub", None, START), START + 600, (), Totals(0.0, 0.0)) is None


def test_the_newest_watched_one_of_its_own_kind_is_chosen():
    new, old = earlier(start=START + 10), earlier(start=START)
    unwatched = past_scan(("scrub", None, START + 20), START + 620, (), TOTALS)
    assert choose_past([old, unwatched, new], "scrub", None, TOTALS) == new
    assert choose_past([new], "resilver", None, TOTALS) == new
    assert choose_past([new], "rebuild", "raidz1-0", TOTALS) is None
    assert choose_past([earlier("resilver")], "scrub", None, TOTALS) is None


def test_a_resilver_is_not_called_another_scrub():
    found = against_last(400.0, 400.0, "resilver")
    assert found.words == "last scrub took 10m00s, this resilver is 3m20s behind"
    assert found.this == "this resilver"


def test_a_walk_that_nobody_watched_took_no_time_of_its_own():
    past = past_scan(("scrub", None, START), START + 600, (), Totals(TOTAL, TOTAL))
    assert past.points == ((0.0, 0.0), (1.0, 600.0))


def test_a_scan_that_left_most_of_its_bytes_out_tells_nothing():
    few = points(100)
    assert past_scan(("scrub", None, START), START + 100, few, TOTALS) is None


def test_what_is_issued_at_once_during_a_walk_does_not_end_it():
    walk = [CurvePoint(float(n), START + n, 1.0 if n else 0.0, 9.0 * n, 0.0) for n in range(100)]
    assert positions(walk, Totals(TOTAL, TOTAL)) == pytest.approx(
        [0.009 * n - 1 for n in range(100)]
    )


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0.1, 1e5), st.floats(0, 1e12), st.floats(0, 1e12)), max_size=300)
)
def test_every_course_is_kept_in_few_points_that_never_go_back(steps):
    made = [CurvePoint(0.0, START, 0.0, 0.0, 0.0)]
    for seconds, issued, scanned in steps:
        last = made[-1]
        made.append(
            CurvePoint(
                last.x + seconds, last.t + seconds, last.issued + issued, last.scanned + scanned, 0
            )
        )
    totals = Totals(made[-1].issued + 1.0, made[-1].scanned)
    past = past_scan(("scrub", None, START), made[-1].t, made, totals)
    if past is not None:
        assert len(past.points) <= MOST_POINTS
        assert past.points[0] in ((-1.0, 0.0), (0.0, 0.0))
        assert past.points[-1] == (1.0, past.seconds)
        assert sorted(past.points) == list(past.points)
        assert sorted(x for _, x in past.points) == [x for _, x in past.points]


def test_before_the_first_byte_the_walk_tells_where_it_is():
    walk = [CurvePoint(float(n), START + n, 0.0, 10.0 * n, 0.0) for n in range(100)]
    work = [CurvePoint(100.0 + n, START + 100 + n, 2.0 * n, TOTAL, 0.0) for n in range(500)]
    totals = Totals(TOTAL, TOTAL)
    past = past_scan(("scrub", None, START), START + 600, [*walk, *work], totals)
    found = predict(past, RunningCourse("scrub", walk[:50], totals, 49.0))
    assert found.eta == pytest.approx(551, rel=0.05)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.floats(1e-3, 1e6), st.floats(0, 1e15), st.floats(0, 1e15), st.floats(-1e6, 1e6)
        ),
        max_size=40,
    ),
    st.floats(1e-3, 1e10),
    st.sampled_from([0.0, 1.0, 1e15]),
    st.integers(0, 600),
)
def test_whatever_its_course_and_clock_the_prediction_is_a_time(steps, elapsed, walk, watched):
    made = [CurvePoint(0.0, START, 0.0, 0.0, 0.0)]
    for seconds, issued, scanned, jump in steps:
        x, t, before, seen, _ = made[-1]
        made.append(CurvePoint(x + seconds, t + seconds + jump, before + issued, seen + scanned, 0))
    past = earlier(watched=watched)
    found = predict(past, RunningCourse("scrub", made, Totals(1e15, walk), elapsed, 1e6))
    assert found is None or (0 <= found.eta < math.inf and 0 < found.spread <= 1)


HOUR, DAY = 3600.0, 86400.0
BYTES = 1e12


def days_long(speed, start: float, hours: float = 1e9) -> list[CurvePoint]:
    """Return a scan with this speed (by epoch seconds and share done), or its first hours."""
    seen, x, done = [CurvePoint(0.0, start, 0.0, BYTES, 0.0)], 0.0, 0.0
    while done < BYTES and x < hours * HOUR:
        x += 600.0
        done = min(BYTES, done + 600.0 * speed(start + x, done / BYTES))
        seen.append(CurvePoint(x, start + x, done, BYTES, 0.0))
    return seen


def slow_by_day(t: float, _share: float) -> float:
    """Return a speed seven times as high at midnight as at noon."""
    return 1e7 * math.exp(math.cos(2 * math.pi * t / DAY))


def slow_at_the_end(_t: float, share: float) -> float:
    return 2e7 * math.exp(-2.0 * share)


def next_of(speed, hours: float):
    """Return the predictions of a scan begun at noon, after an earlier one begun at midnight."""
    midnight = 20_000 * DAY
    before = days_long(speed, midnight)
    past = past_scan(("scrub", None, midnight), before[-1].t, before, Totals(BYTES, 0.0))
    noon = midnight + 30.5 * DAY
    seen = days_long(speed, noon, hours)
    true = days_long(speed, noon)[-1].x - seen[-1].x
    course = ProgressCurve(seen)
    own = forecast(course, Work(BYTES, seen[-1].issued, start=noon), Daily(past.pace))
    told = predict_both(
        past, RunningCourse("scrub", seen, Totals(BYTES, 0.0), seen[-1].x), own.daily
    )
    return true, told, combined(told, own)


@rows("hours", [3, 6, 10])
def test_what_was_slow_by_day_is_slow_by_day_wherever_it_is_then(hours):
    true, told, (eta, spread) = next_of(slow_by_day, hours)
    *by_place, by_hour = told
    assert by_hour.eta == pytest.approx(true, rel=0.15)
    assert all(by_hour.doubt < way.doubt / 3 for way in by_place)
    assert eta == pytest.approx(true, rel=0.15)
    assert math.exp(-spread) < eta / true < math.exp(spread)


@rows("hours", [3, 6, 10])
def test_what_was_slow_at_the_end_is_slow_there_whatever_the_hour(hours):
    true, told, (eta, _) = next_of(slow_at_the_end, hours)
    assert told[0].eta == pytest.approx(true, rel=0.02)
    assert eta == pytest.approx(true, rel=0.07)


def test_without_an_estimate_of_its_own_the_earlier_scan_tells_alone():
    way = told(300)
    eta, spread = combined([way], Forecast(nothing("no estimate yet: 1 sample")))
    assert (eta, spread) == pytest.approx((way.eta, way.spread))


def test_ways_that_disagree_have_a_wide_range():
    way = told(300)
    other = Forecast(ranged(4 * way.eta, way.doubt, ""), spread=way.doubt)
    eta, spread = combined([way], other)
    assert eta == pytest.approx(2 * way.eta)
    assert spread > math.log(2)
