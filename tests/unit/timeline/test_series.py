from __future__ import annotations

import tracemalloc

import pytest

from tests.table import rows
from zconsole.pool.model import IoRates
from zconsole.timeline.series import RateSeries


def filled(count: int, capacity: int = 8) -> RateSeries:
    series = RateSeries(capacity)
    for n in range(count):
        series.advance()
        series.put_devices({"a": IoRates(read=float(n), busy=0.5)})
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
    assert series.tail("b", "read", 2) == []
    assert series.tail("a", "read", 0) == ()


def test_a_missed_sample_is_a_hole_even_after_the_ring_went_round():
    series = filled(10)
    series.advance()
    assert series.tail("a", "read", 2) == [9.0, None]
    for _ in range(3):
        series.advance()
    series.put_devices({"a": IoRates(read=50.0)})
    assert series.tail("a", "read", 8) == [6.0, 7.0, 8.0, 9.0, None, None, None, 50.0]


def test_a_long_absence_leaves_nothing_of_the_old_values():
    series = filled(10)
    for _ in range(100):
        series.advance()
    assert series.tail("a", "read", 8) == []
    series.put_devices({"a": IoRates(read=1.0)})
    assert series.tail("a", "read", 8) == [None] * 7 + [1.0]


def test_the_peak_is_of_the_devices_metrics_and_samples_asked_for():
    series = RateSeries()
    for read, write in ((9.0, 1.0), (2.0, None), (None, 3.0)):
        series.advance()
        series.put_devices({"a": IoRates(read, write, busy=7.0), "b": IoRates(8.0, 8.0)})
    assert series.peak(["a"], ("read", "write"), 2) == 3.0
    assert series.peak(["a"], ("read",), 2) == 2.0
    assert series.peak(["a"], ("read",), 3) == 9.0
    assert series.peak(["a", "b"], ("read", "write"), 2) == 8.0


def test_devices_without_values_have_no_peak():
    series = RateSeries()
    assert series.peak(["a"], ("read",), 2) is None
    series.advance()
    assert series.peak(["a"], ("read",), 2) is None
    series.put_devices({"a": IoRates(), "b": IoRates(8.0)})
    assert series.peak(["a", "c"], ("read",), 2) is None
    assert series.peak(["b"], ("read",), 0) is None


def test_scans_have_their_own_metrics():
    series = RateSeries()
    series.advance()
    series.put_scans({"scan:scrub:": (1000.0, 500.0)})
    assert series.tail("scan:scrub:", "scan_rate", 1) == [1000.0]
    assert series.tail("scan:scrub:", "issue_rate", 1) == [500.0]


def test_what_was_dumped_comes_back_with_a_hole_before_what_follows():
    series = filled(3)
    again = RateSeries(8)
    again.restore({"a": series.dump("a")})
    again.advance()
    again.put_devices({"a": IoRates(read=9.0)})
    assert again.tail("a", "read", 5) == [0.0, 1.0, 2.0, None, 9.0]


@rows("rows", [[], [[], [], [], []], [[1.0], [], [], []]])
def test_a_dump_with_nothing_in_it_restores_to_nothing(rows):
    again = RateSeries(8)
    again.restore({"a": rows})
    again.advance()
    assert again.tail("a", "read", 1) in ([None], [])


def test_each_device_keeps_its_own_values_as_others_come_and_go():
    series = RateSeries(8)
    for keys in ("ab", "ab", "cab", "cb"):
        series.advance()
        series.put_devices({key: IoRates(read=float(ord(key))) for key in keys})
    assert series.tail("a", "read", 9) == [97.0, 97.0, 97.0, None]
    assert series.tail("b", "read", 9) == [98.0] * 4
    assert series.tail("c", "read", 9) == [None, None, 99.0, 99.0]
    assert set(series.keys()) == set("abc")


def test_what_is_forgotten_leaves_the_others_as_they_were():
    series = RateSeries(8)
    for t in range(2):
        series.advance(float(t))
        series.put_devices({"a": IoRates(read=1.0), "b": IoRates(read=2.0)})
        series.put_scans({"scan:scrub:": (3.0, 4.0)})
    series.forget({"a"})
    series.advance(2.0)
    series.put_devices({"b": IoRates(read=5.0)})
    assert series.tail("a", "read", 3) == []
    assert series.tail("b", "read", 3) == [2.0, 2.0, 5.0]
    assert series.tail("scan:scrub:", "issue_rate", 3) == [4.0, 4.0, None]


@pytest.mark.slow
def test_a_thousand_devices_keep_their_past_in_little_memory():
    tracemalloc.start()
    series, rates = RateSeries(), {f"disk-{n}": IoRates(1.0, 1.0, 1.0, 1.0) for n in range(1000)}
    before, _ = tracemalloc.get_traced_memory()
    for t in range(300):
        series.advance(float(t))
        series.put_devices(rates)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 1.1 * 240 * 4 * 4 * len(rates)
