from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zconsole.timeline.eta.daily import DAY, EVEN, HOUR, HOURS, Daily, worths
from zconsole.timeline.eta.estimate import Work, forecast
from zconsole.timeline.eta.progress_curve import ProgressCurve, ProgressReading

START = 20_000 * DAY
STEP = 600.0


def nightly(t: float) -> float:
    """Bytes a second: four times as fast from 22 to 6 o'clock."""
    return 4.0 if t % DAY < 6 * HOUR or t % DAY >= 22 * HOUR else 1.0


def course(days: float, speed=nightly) -> tuple[list[float], list[float]]:
    ts, done = [START], [0.0]
    while ts[-1] < START + days * DAY:
        done.append(done[-1] + STEP * speed(ts[-1]))
        ts.append(ts[-1] + STEP)
    return ts, done


@given(
    st.lists(st.floats(0.1, 5), min_size=HOURS, max_size=HOURS),
    st.floats(0, 1e9),
    st.floats(0, 3e6),
)
def test_what_time_is_worth_turns_round(factors, t, seconds):
    daily = Daily(tuple(factor * HOURS / sum(factors) for factor in factors))
    assert daily.until(t, daily.worth(t, seconds)) == pytest.approx(seconds, rel=1e-6, abs=1e-3)


def test_even_hours_are_worth_what_they_are():
    assert worths([START, START + 9], [0.0, 9.0], EVEN) == [0.0, 9.0]


def test_the_estimate_knows_whether_a_night_is_to_come():
    made = ProgressCurve()
    ts, done = course(3.5)
    for t, issued in zip(ts, done, strict=True):
        made.add(ProgressReading(t, t - START, True, issued))
    left = 8 * HOUR * 4.0 + 2 * HOUR
    found = forecast(made, Work(done[-1] + left + 8 * HOUR, done[-1], start=START))
    assert found.estimate.eta == pytest.approx(18 * HOUR + 2 * HOUR, rel=0.15)
