from __future__ import annotations

from math import cos, exp, isfinite, pi, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.timeline.eta.estimate import forecast
from zconsole.timeline.eta.pace import (
    DAY,
    EVEN,
    HOUR,
    HOURS,
    LEAST_WATCHED,
    Daily,
    LeastSquares,
    Memory,
    WorkDone,
    byte_cost,
    deviation,
    fit_pace,
    mean_running_seconds,
    share_in_memory,
)
from zconsole.timeline.eta.progress import CurvePoint, ProgressCurve, ProgressReading, Work

START = 1_795_000_000.0
STEP = 900.0


def watched(speed, hours: float, total: float, **fields) -> WorkDone:
    """Return a scan with this speed (by epoch seconds and share done), after ``hours``."""
    xs, done = [0.0], [0.0]
    while xs[-1] < hours * HOUR:
        done.append(done[-1] + STEP * speed(START + xs[-1] + STEP / 2, done[-1] / total))
        xs.append(xs[-1] + STEP)
    return WorkDone([START + x for x in xs], xs, done, total - done[-1], **fields)


def to_go(course: WorkDone) -> float:
    """Return the remaining seconds according to the pace."""
    pace = fit_pace(course)
    assert pace is not None
    worth = pace.daily.mean_seconds(START, course.xs[-1])
    return pace.daily.until(course.ts[-1], pace.left / (pace.worked[-1] / worth))


def daily(t: float, _share: float) -> float:
    """Return a speed that is ten times as high at night as by day."""
    return exp(1.15 * cos(2 * pi * t / DAY))


def ends(speed, course: WorkDone) -> float:
    """Return the remaining seconds in fact."""
    done, x = course.done[-1], course.xs[-1]
    while done < course.total:
        done += STEP * speed(START + x + STEP / 2, done / course.total)
        x += STEP
    return x - course.xs[-1]


@rows("hours", [12, 18, 24, 30, 54])
def test_half_a_day_says_something_of_the_other_half(hours):
    course = watched(daily, hours, 500_000.0)
    assert to_go(course) == pytest.approx(ends(daily, course), rel=0.2)
    mean = course.left * course.xs[-1] / course.done[-1]
    if hours < 24:
        assert abs(mean - ends(daily, course)) > 0.1 * ends(daily, course)


def test_an_even_scan_stays_even():
    course = watched(lambda t, share: 1.0, 20, 200_000.0)
    assert to_go(course) == pytest.approx(course.left, rel=0.08)


def sorted_better(_t: float, share: float) -> float:
    """Return a speed with a tenth of all data fitting in memory for sorting."""
    return exp(4 * sqrt(min(1.0, 0.1 / max(1e-9, 1 - share)))) / 10


def test_what_is_sorted_better_at_the_end_is_faster():
    total = 200_000.0
    bare = watched(sorted_better, 40, total)
    seen = [min(1.0, 0.1 / (1 - done / total)) for done in bare.done]
    left = bare.left / total
    ahead = [(1 / 20, min(1.0, 0.1 / (left * (1 - n / 20)))) for n in range(20)]
    told = to_go(bare._replace(memory=Memory(seen, ahead)))
    true = ends(sorted_better, bare)
    assert abs(told - true) < 0.25 * true < 0.5 * abs(to_go(bare) - true)


def test_what_is_not_known_of_the_day_is_doubted():
    early, late = (fit_pace(watched(daily, hours, 500_000.0)) for hours in (6, 54))
    assert early is not None
    assert late is not None
    assert late.doubt < 0.5 * early.doubt


def test_a_short_scan_changes_for_other_reasons():
    assert fit_pace(watched(daily, LEAST_WATCHED / HOUR / 2, 1e5)) is None


@example([0.0, 0.0, 0.0, 5e-324], 0.0)
@given(st.lists(st.floats(0, 1e12), min_size=2, max_size=60), st.floats(0, 1e15))
def test_no_course_has_a_senseless_pace(steps, left):
    done = [0.0]
    for step in steps:
        done.append(done[-1] + step)
    xs = [1000.0 * n for n in range(len(done))]
    pace = fit_pace(WorkDone([START + x for x in xs], xs, done, left))
    if pace is not None:
        assert all(a <= b for a, b in zip(pace.worked, pace.worked[1:], strict=False))
        assert pace.left >= 0
        assert isfinite(pace.left)
        assert min(pace.daily.factors) > 0
        assert isfinite(pace.doubt)


MIDNIGHT = 20_000 * DAY
TEN_MINUTES = 600.0


def nightly(t: float) -> float:
    """Return bytes/s: four times as fast from 22 to 6 o'clock."""
    return 4.0 if t % DAY < 6 * HOUR or t % DAY >= 22 * HOUR else 1.0


def nights(days: float, speed=nightly) -> tuple[list[float], list[float]]:
    ts, done = [MIDNIGHT], [0.0]
    while ts[-1] < MIDNIGHT + days * DAY:
        done.append(done[-1] + TEN_MINUTES * speed(ts[-1]))
        ts.append(ts[-1] + TEN_MINUTES)
    return ts, done


@given(
    st.lists(st.floats(0.1, 5), min_size=HOURS, max_size=HOURS),
    st.floats(0, 1e9),
    st.floats(0, 3e6),
)
def test_what_time_is_worth_turns_round(factors, t, seconds):
    daily = Daily(tuple(factor * HOURS / sum(factors) for factor in factors))
    assert daily.until(t, daily.mean_seconds(t, seconds)) == pytest.approx(
        seconds, rel=1e-6, abs=1e-3
    )


def test_even_hours_are_worth_what_they_are():
    assert mean_running_seconds([MIDNIGHT, MIDNIGHT + 9], [0.0, 9.0], EVEN) == [0.0, 9.0]


def test_other_hours_count_from_where_the_course_begins_and_as_they_are_run():
    """An hour worth 1.5, a pause in it, and a stretch from its last 100 s into one worth 0.5."""
    daily = Daily((1.5, 0.5) * (HOURS // 2))
    ts = [MIDNIGHT, MIDNIGHT + 600, MIDNIGHT + HOUR + 300]
    assert mean_running_seconds(ts, [70.0, 670.0, 1070.0], daily) == [70.0, 970.0, 1270.0]


def test_the_estimate_knows_whether_a_night_is_to_come():
    made = ProgressCurve()
    ts, done = nights(3.5)
    for t, issued in zip(ts, done, strict=True):
        made.add(ProgressReading(t, t - MIDNIGHT, True, issued))
    left = 8 * HOUR * 4.0 + 2 * HOUR
    found = forecast(made, Work(done[-1] + left + 8 * HOUR, done[-1], start=MIDNIGHT))
    assert found.estimate.eta == pytest.approx(18 * HOUR + 2 * HOUR, rel=0.15)


TOTAL = 1000.0


def points(*pairs: tuple[float, float]) -> list[CurvePoint]:
    """Return points with these bytes walked and issued, one per second."""
    return [CurvePoint(n, n, issued, scanned, 0.0) for n, (scanned, issued) in enumerate(pairs)]


def test_what_a_turn_issues_was_sorted_when_it_began():
    found = share_in_memory(
        points((0, 0), (100, 0), (100, 50), (100, 90)), TOTAL, TOTAL, walks=True
    )
    assert found.seen == pytest.approx([0.0, 0.1, 0.1, 0.1])


def test_the_less_is_left_the_larger_is_the_share_of_it_that_fits():
    found = share_in_memory(points((0, 0), (400, 0), (400, 400)), TOTAL, TOTAL, walks=True)
    assert found.ahead == [
        (0.0, 0.4),
        (pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (pytest.approx(1 / 3), 1.0),
    ]


def test_after_the_walk_all_is_sorted():
    found = share_in_memory(
        points((0, 0), (600, 0), (600, 300), (1000, 300)), TOTAL, TOTAL, walks=False
    )
    assert found.ahead == [(1.0, 1.0)]
    assert found.varies


def test_a_resilver_that_needs_half_of_what_it_walks_holds_half():
    found = share_in_memory(points((0, 0), (400, 0)), TOTAL, 2 * TOTAL, walks=True)
    assert found.seen[-1] == pytest.approx(0.2)


@given(st.lists(st.tuples(st.floats(0, 2e3), st.floats(0, 2e3)), min_size=2), st.booleans())
def test_the_parts_of_what_is_left_are_all_of_it(pairs, walks):
    found = share_in_memory(points(*pairs), TOTAL, TOTAL, walks)
    assert sum(part for part, _ in found.ahead) == pytest.approx(1)
    assert all(0 <= dense <= 1 for dense in (*found.seen, *(d for _, d in found.ahead)))


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_sorted_more_at_once_takes_no_longer(a, b):
    low, high = sorted((a, b))
    assert byte_cost(high, 4.0, 0.03) <= byte_cost(low, 4.0, 0.03)


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
