"""The rate of a scan: past, present, and where the estimate lags behind it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.timeline.eta.progress import CurvePoint, ProgressCurve, ProgressReading
from zconsole.timeline.scan_rate import (
    HOLE,
    LEAST_PRESENT,
    MOST_MARKS,
    MOST_STEPS,
    PRESENT_SECONDS,
    Mark,
    PastRates,
    PastRecorder,
    alternating_rate,
    present_rate,
    rate_lag,
)


def recorded(times, rate=lambda t: t):
    recorder = PastRecorder()
    for t in times:
        recorder.add(float(t), rate(t))
    return recorder.past


def test_a_young_scan_keeps_a_step_a_sample():
    past = recorded(range(100, 110))
    assert past == PastRates(100.0, 1.0, tuple(map(float, range(100, 110))))
    assert past.end == 110.0


@rows("interval", [5, 30, 60, 300])
def test_a_step_is_as_long_as_the_time_between_samples(interval):
    past = recorded(range(0, 50 * interval, interval), lambda _: 5.0)
    assert interval / 2 < past.step <= interval
    assert set(past.rates) == {5.0}


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=50),
    st.floats(0, 1e9),
)
def test_what_is_kept_is_bounded_and_covers_all_of_it(gaps, rate):
    times = [1e9]
    for gap in gaps:
        times.append(times[-1] + gap)
    past = recorded(times, lambda _: rate)
    assert 0 < len(past.rates) <= MOST_STEPS
    assert past.begin == times[0]
    assert past.end >= times[-1]
    assert all(each is None or each == pytest.approx(rate) for each in past.rates)


def test_a_long_scan_keeps_its_course_in_longer_steps():
    past = recorded(range(20_000), lambda t: 1.0 if t < 10_000 else 3.0)
    assert past.step == 64.0
    assert past.rates[10] == 1.0
    assert past.rates[-1] == 3.0
    assert past.rates[10_000 // 64] == pytest.approx(2.5, abs=0.5)


def test_a_short_hole_is_filled_and_a_long_one_stays():
    times = [0, 1, 2, 12]
    assert None not in recorded(times).rates
    assert recorded([0, 1, 2, 400]).rates[3:400] == (None,) * 397


def test_samples_that_become_rare_leave_no_holes_between_them():
    """A demo at sixty times the speed drew single spikes over dots, like stalls."""
    rare = [10.0 + n for n in (0, *range(66, 66 * 20, 66))]
    past = recorded([*range(10), *rare], lambda _: 5.0)
    assert past.rates.count(None) < 66
    assert set(past.rates[10 + 66 * 2 :]) == {5.0}


def test_a_clock_set_back_adds_to_the_newest_step():
    assert len(recorded([100, 101, 50]).rates) == 2


def test_a_sample_without_a_rate_takes_nothing_from_its_step():
    past = recorded([0, 8, 11], lambda t: None if t == 11 else 4.0)
    assert past.rates == (4.0, 4.0)


def test_going_on_after_a_restart_of_the_console():
    recorder = PastRecorder(recorded(range(10)))
    recorder.add(10.0, 10.0)
    assert recorder.past.rates == tuple(map(float, range(11)))


def test_marks_are_bounded_and_the_newest_stay():
    recorder = PastRecorder()
    for t in range(MOST_MARKS + 5):
        recorder.mark(float(t), "restart")
    assert [mark.t for mark in recorder.past.marks] == [float(t) for t in range(5, MOST_MARKS + 5)]


def test_a_step_is_a_trend_for_minutes_and_then_is_none():
    """After a tunable was raised, the graph rose, while the rate had an arrow down."""
    way = [recorded(range(n), lambda t: 5.0 if t < 600 else 10.0).trend for n in (640, 800, 1000)]
    assert way == [pytest.approx(0.5, abs=0.2), pytest.approx(0.4, abs=0.3), pytest.approx(0.0)]


def test_the_trend_compares_with_the_time_before():
    assert recorded(range(10)).trend is None
    assert recorded(range(1000), lambda _: 7.0).trend == 0.0
    assert recorded(range(1000), lambda t: 10.0 if t < 940 else 11.0).trend == pytest.approx(0.1)
    assert recorded(range(1000), lambda _: 0.0).trend is None
    assert recorded(range(100), lambda _: None).trend is None


def test_a_console_away_after_its_first_sample_still_draws_fine_steps():
    past = recorded([0, *range(86_400, 87_000)], lambda _: 5.0)
    assert past.step <= 256.0
    assert None in past.rates


MB = 1e6
TOTAL = 1e12


def course(issued: Iterable[float], step: float = 1.0, walked: int = 0) -> list[CurvePoint]:
    """Return a reading every ``step`` seconds; metadata is walked up to index ``walked``."""
    curve = ProgressCurve()
    for n, done in enumerate(issued):
        scanned = TOTAL * min(1.0, n / walked) if walked else TOTAL
        curve.add(ProgressReading(n * step, n * step, True, done, scanned))
    return curve.points


def changed(before: float, after: float, seconds: int, at: int = 7200) -> list[float]:
    """Return the bytes issued at each second of a scan whose rate changes after two hours."""
    return [before * min(n, at) + after * max(0, n - at) for n in range(at + seconds + 1)]


def test_a_rate_that_changed_is_seen_whole_after_the_span():
    found = present_rate(course(changed(100 * MB, 150 * MB, int(PRESENT_SECONDS))), walks=True)
    assert found.rate == pytest.approx(150 * MB)
    assert found.seconds == PRESENT_SECONDS


@pytest.mark.slow
@rows("period", [5, 16])
def test_bursts_do_not_sway_it(period: int):
    issued = [n // period * period * 100 * MB for n in range(601)]
    points = course(issued)
    seen = [present_rate(points[:end], walks=True).rate for end in range(400, 600)]
    assert min(seen) == pytest.approx(100 * MB, rel=0.02)
    assert max(seen) == pytest.approx(100 * MB, rel=0.02)


def test_the_metadata_walk_does_not_count():
    walked = 300
    points = course([max(0, n - walked) * 100 * MB for n in range(walked + 21)], walked=walked)
    assert present_rate(points, walks=True).rate == pytest.approx(100 * MB)
    assert present_rate(points[: walked + int(LEAST_PRESENT) - 1], walks=True) is None


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
    """Return one reading per second of a scan that walks and issues 100 MB/s in turn."""
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
    found = alternating_rate(points)
    assert found == (pytest.approx(moved_by(points, PRESENT_SECONDS)), PRESENT_SECONDS)


@rows("now", range(600, 640, 7))
def test_turns_shorter_than_a_minute_count_whole(now: int):
    found = alternating_rate(by_turns(10, 30, now))
    assert found.rate == pytest.approx(75 * MB, rel=0.05)


@rows("now", [1200 + 200, 1200 + 300 + 20])
def test_while_it_walks_and_just_after_the_turn_before_counts_too(now: int):
    points = by_turns(300, 900, now)
    found = alternating_rate(points)
    assert found.rate == pytest.approx(moved_by(points, found.seconds), rel=0.02)
    assert found.rate == pytest.approx(75 * MB, rel=0.2)


def test_the_first_turn_of_walking_has_no_rate():
    assert alternating_rate([]) is None
    assert alternating_rate(by_turns(300, 900, 200)) is None
    assert alternating_rate(by_turns(300, 900, 300 + int(LEAST_PRESENT) - 1)) is None
    assert alternating_rate(by_turns(300, 900, 300 + 30)).rate == pytest.approx(100 * MB)


def test_where_both_move_between_samples_it_is_that_of_the_last_minute():
    points = by_turns(10, 20, 3600)[::30]
    assert alternating_rate(points) == (pytest.approx(100 * MB * 2 / 3), PRESENT_SECONDS)


STEP = 8.0


@rows(
    ("unseen", "words"),
    [
        (HOLE, "rate rose 1m36s ago; ETA 1h00m if it holds"),
        (3600.0, "at the present rate: ETA 1h00m if it holds"),
    ],
)
def test_a_moment_is_told_of_a_change_that_was_seen(unseen, words):
    rates = (1.0, 1.0, *[None] * int(unseen / STEP), 4.0, 4.0, 4.0, 4.0)
    found = rate_lag(4.0, 4.0 * 3600, 2 * 3600.0, PastRates(0.0, STEP, rates), False)
    assert found == words


@rows(("before", "words"), [(4.1, "at the present rate: "), (1.0, "rate rose 2m08s ago; ")])
def test_the_end_of_a_pause_is_no_rise(before, words):
    """A scrub that ran slower than before its pause had "risen" since that ended."""
    rates = (before,) * 20 + (0.0,) * 10 + (4.0,) * 6
    marks = (Mark(20 * STEP + 4.0, "paused"), Mark(30 * STEP + 4.0, "resumed"))
    past = PastRates(0.0, STEP, rates, marks)
    assert rate_lag(4.0, 4.0 * 3600, 2 * 3600.0, past, False).startswith(words)
    assert (past.trend < 0.0) == (before > 4.0), "the trend, too, is one of the time it ran"


def test_the_end_of_the_metadata_walk_is_no_rise():
    past = PastRates(0.0, STEP, (0.0,) * 20 + (2.0,) + (4.0,) * 20)
    found = rate_lag(4.0, 4.0 * 3600, 2 * 3600.0, past, False)
    assert found == "at the present rate: ETA 1h00m if it holds"


@rows(("rate", "back"), [(4.0, 3.0), (1.0, 1.5)])
def test_nothing_is_told_of_a_rate_that_is_on_its_way_back(rate, back):
    """Next to an arrow down, a rate was said to have risen, with an ETA if it stays so."""
    steady = (2.0,) * 40 + (rate,) * 60
    turned = steady + (back,) * 8
    assert rate_lag(rate, 2.0 * 3600, 3600.0, PastRates(0.0, STEP, steady), False)
    assert rate_lag(back, 2.0 * 3600, 3600.0, PastRates(0.0, STEP, turned), False) == ""
