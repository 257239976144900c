"""The rate of a scan from its start to now, in bounded space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.timeline.past_rates import MOST_MARKS, MOST_STEPS, PastRates, PastRecorder


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
    """A demo at sixty times the speed drew lonely spikes over dots, like stalls."""
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
    """A tunable was raised, the graph rose, and the rate beside it had an arrow down."""
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
