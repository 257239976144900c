from __future__ import annotations

from math import cos, exp, isfinite, pi, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.timeline.eta.memory import Memory
from zconsole.timeline.eta.pace import LEAST_SECONDS, Course, fitted

START = 1_795_000_000.0
HOUR, DAY = 3600.0, 86400.0
STEP = 900.0


def watched(speed, hours: float, total: float, **fields) -> Course:
    """A course with this speed (of epoch seconds and the share done), of so many bytes."""
    xs, done = [0.0], [0.0]
    while xs[-1] < hours * HOUR:
        done.append(done[-1] + STEP * speed(START + xs[-1] + STEP / 2, done[-1] / total))
        xs.append(xs[-1] + STEP)
    return Course([START + x for x in xs], xs, done, total - done[-1], **fields)


def to_go(course: Course) -> float:
    """Seconds that the pace says are left."""
    pace = fitted(course)
    assert pace is not None
    worth = pace.daily.worth(START, course.xs[-1])
    return pace.daily.until(course.ts[-1], pace.left / (pace.worked[-1] / worth))


def daily(t: float, _share: float) -> float:
    """Ten times as fast by night as by day."""
    return exp(1.15 * cos(2 * pi * t / DAY))


def ends(speed, course: Course) -> float:
    """Seconds that it really takes from where it is."""
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


def test_tracks_that_become_slower_are_found():
    def slowing(_t: float, share: float) -> float:
        return exp(-0.5 * share)

    course = watched(slowing, 50, 300_000.0)
    true, mean = ends(slowing, course), course.left * course.xs[-1] / course.done[-1]
    assert abs(to_go(course) - true) < 0.25 * abs(mean - true)


def sorted_better(_t: float, share: float) -> float:
    """A tenth of all fits in memory."""
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


def test_what_was_slower_while_it_walked_says_no_less_of_the_day():
    def walking(t: float, share: float) -> float:
        return daily(t, share) * (0.3 if t < START + 18 * HOUR else 1.0)

    course = watched(walking, 26, 500_000.0, walked_at=18 * HOUR)
    pace = fitted(course)
    assert pace is not None
    assert max(pace.daily.factors) / min(pace.daily.factors) > 4


def test_what_is_not_known_of_the_day_is_doubted():
    early, late = (fitted(watched(daily, hours, 500_000.0)) for hours in (6, 54))
    assert early is not None
    assert late is not None
    assert late.doubt < 0.5 * early.doubt


def test_a_short_scan_changes_for_other_reasons():
    assert fitted(watched(daily, LEAST_SECONDS / HOUR / 2, 1e5)) is None


@example([0.0, 0.0, 0.0, 5e-324], 0.0)
@given(st.lists(st.floats(0, 1e12), min_size=2, max_size=60), st.floats(0, 1e15))
def test_no_course_has_a_senseless_pace(steps, left):
    done = [0.0]
    for step in steps:
        done.append(done[-1] + step)
    xs = [1000.0 * n for n in range(len(done))]
    pace = fitted(Course([START + x for x in xs], xs, done, left))
    if pace is not None:
        assert all(a <= b for a, b in zip(pace.worked, pace.worked[1:], strict=False))
        assert pace.left >= 0
        assert isfinite(pace.left)
        assert min(pace.daily.factors) > 0
        assert isfinite(pace.doubt)
