from __future__ import annotations

import pytest

from zconsole.history.series import RateSeries


def filled(count: int, capacity: int = 8) -> RateSeries:
    series = RateSeries(capacity)
    for n in range(count):
        series.advance()
        series.put("a", float(n), None, None, 0.5)
    return series


def test_how_old_the_last_samples_are():
    series = RateSeries(capacity=4)
    assert series.ages(3) == []
    for t in (10.0, 20.0, 30.5):
        series.advance(t)
    assert series.ages(2) == [10.5, 0.0]
    assert series.ages(9) == [20.5, 10.5, 0.0]
    assert series.ages(0) == []


def test_the_newest_values_come_last_and_no_more_than_are_kept():
    assert filled(3).tail("a", "read", 2) == [1.0, 2.0]
    assert filled(20).tail("a", "read", 50) == [float(n) for n in range(12, 20)]


def test_what_is_not_known_is_none_not_zero():
    series = filled(2)
    assert series.tail("a", "latency", 2) == [None, None]
    assert series.tail("b", "read", 2) == ()
    assert series.tail("a", "read", 0) == ()


def test_a_missed_sample_is_a_hole_even_after_the_ring_went_round():
    series = filled(10)
    series.advance()
    assert series.tail("a", "read", 2) == [9.0, None]
    for _ in range(3):
        series.advance()
    series.put("a", 50.0, None, None, None)
    assert series.tail("a", "read", 8) == [6.0, 7.0, 8.0, 9.0, None, None, None, 50.0]


def test_a_long_absence_leaves_nothing_of_the_old_values():
    series = filled(10)
    for _ in range(100):
        series.advance()
    assert series.tail("a", "read", 8) == [None] * 8
    series.put("a", 1.0, None, None, None)
    assert series.tail("a", "read", 8) == [None] * 7 + [1.0]


def test_scans_have_their_own_metrics():
    series = RateSeries()
    series.advance()
    series.put("scan:scrub:", 1000.0, 500.0)
    assert series.tail("scan:scrub:", "scan_rate", 1) == [1000.0]
    assert series.tail("scan:scrub:", "issue_rate", 1) == [500.0]


def test_what_was_dumped_comes_back_with_a_hole_before_what_follows():
    series = filled(3)
    again = RateSeries(8)
    again.restore({"a": series.dump("a")})
    again.advance()
    again.put("a", 9.0, None, None, None)
    assert again.tail("a", "read", 5) == [0.0, 1.0, 2.0, None, 9.0]


@pytest.mark.parametrize("rows", [[], [[], [], [], []], [[1.0], [], [], []]])
def test_a_dump_with_nothing_in_it_restores_to_nothing(rows):
    again = RateSeries(8)
    again.restore({"a": rows})
    again.advance()
    assert again.tail("a", "read", 1) in ([None], ())
