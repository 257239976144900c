from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zconsole.eta.trend import LEAST_SECONDS, SpeedTrend, fitted

HOURS = [600.0 * n for n in range(300)]


def test_tracks_that_become_slower_are_found():
    slowing = SpeedTrend(-0.5, by_turns=False)
    xs = [slowing.work(n / 500) * 1e5 for n in range(300)]
    found = fitted(xs, [n / 500 for n in range(300)], by_turns=False)
    assert found.slope == pytest.approx(-0.5, abs=0.1)


def test_a_scan_that_sorts_better_and_better_is_found():
    rising = SpeedTrend(0.5, by_turns=True)
    xs = [rising.work(n / 500) * 1e5 for n in range(300)]
    found = fitted(xs, [n / 500 for n in range(300)], by_turns=True)
    assert found.slope == pytest.approx(0.5, abs=0.1)


def test_an_even_scan_is_found_to_be_even_in_time():
    early = fitted(HOURS[:60], [n / 600 for n in range(60)], by_turns=False)
    late = fitted(HOURS, [n / 600 for n in range(300)], by_turns=False)
    assert abs(late.slope) < abs(early.slope)
    assert late.slope == pytest.approx(0, abs=0.06)


def test_a_short_scan_changes_for_other_reasons():
    xs = [LEAST_SECONDS * n / 101 for n in range(100)]
    assert fitted(xs, [n / 200 for n in range(100)], by_turns=False) is None


@given(st.floats(-0.6, 0.9), st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_more_is_more_work(slope, by_turns, a, b):
    trend = SpeedTrend(slope, by_turns)
    low, high = sorted((a, b))
    assert 0 <= trend.work(low) <= trend.work(high) + 1e-9


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=100), st.booleans())
def test_no_course_has_a_wild_trend(steps, by_turns):
    done = [0.0]
    for step in steps:
        done.append(done[-1] + step)
    total = done[-1] + 1.0
    xs = [1000.0 * n for n in range(len(done))]
    found = fitted(xs, [each / total for each in done], by_turns)
    assert found is None or -0.6 <= found.slope <= 0.9
