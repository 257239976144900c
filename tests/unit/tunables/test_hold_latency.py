from __future__ import annotations

import math
import random
from collections import deque
from itertools import pairwise

import pytest

from tests.bench.hold_latency import flown, reversals
from tests.bench.scan_load import load, target_of
from tests.table import rows
from zconsole.tunables.hold_latency import (
    FALL,
    FASTEST,
    GENTLEST,
    INTERVAL,
    LEVERS,
    RISE,
    STEP,
    WINDOW,
    Meter,
    Steering,
    added,
    latency,
    longest,
    quantile,
    since,
    steered,
    values,
)

FOUND = {
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 3,
    "zfs_vdev_nia_delay": 5,
    "zfs_resilver_min_time_ms": 3000,
}


def histogram(**counts: int) -> list[int]:
    """Return 37 buckets, some filled: b24=10."""
    return [counts.get(f"b{i}", 0) for i in range(37)]


def test_a_quantile_stays_inside_its_bucket():
    counts = histogram(b20=80, b24=20)
    assert 2**24 <= quantile(counts) * 1e9 <= 2**25
    assert 2**20 <= quantile(counts, 0.5) * 1e9 <= 2**21


def test_no_requests_take_no_time():
    assert quantile(histogram()) == 0.0


def test_few_requests_say_nothing():
    assert latency({"sync_r": histogram(b20=19), "disk_r": histogram(b24=900)}) is None


def test_writes_count_as_much_as_reads():
    slow = {"sync_w": histogram(b26=100), "disk_w": histogram(b24=100)}
    fast = {"sync_r": histogram(b10=100), "disk_r": histogram(b20=100)}
    assert latency({**slow, **fast}) == latency(slow)


def test_asynchronous_requests_do_not_steer():
    asked = {"sync_r": histogram(b10=100), "disk_r": histogram(b20=100)}
    assert latency({**asked, "async_r": histogram(b36=9000)}) == latency(asked)


def test_fast_requests_of_the_scan_do_not_hide_slow_ones_of_applications():
    asked = histogram(b10=100)
    alone = latency({"sync_r": asked, "disk_r": histogram(b24=100)})
    mixed = latency({"sync_r": asked, "disk_r": histogram(b20=5000, b24=100)})
    assert alone is not None
    assert mixed == pytest.approx(alone, rel=0.3)


def test_counters_that_fell_are_no_difference():
    assert since({"disk_r": [1, 2]}, {"disk_r": [2, 2]}) is None
    assert since({"disk_r": [3, 2]}, {"disk_r": [2, 2]}) == {"disk_r": [1, 0]}


def test_devices_add_up():
    assert added([{"disk_r": [1]}, {"disk_r": [3, 4], "sync_r": [5]}]) == {
        "disk_r": [4, 4],
        "sync_r": [5],
    }


TIME, MOST, DELAY = "zfs_resilver_min_time_ms", "zfs_vdev_scrub_max_active", "zfs_vdev_nia_delay"


@rows(
    ("level", "found", "least", "wanted"),
    [
        (0.0, FOUND, {}, FOUND),
        # A value beyond its preset is never turned round.
        (FASTEST, {MOST: 40, DELAY: 1}, {}, {MOST: 40, DELAY: 1}),
        (GENTLEST, {TIME: 100, DELAY: 50}, {}, {TIME: 100, DELAY: 50}),
        # No level is gentler than the least, which stops nothing from being faster.
        (GENTLEST, FOUND, {MOST: 3, DELAY: 5}, {MOST: 3, DELAY: 5, TIME: 750}),
        (FASTEST, FOUND, FOUND, values(FASTEST, FOUND)),
        # A share of the time rises first and falls last.
        (1.5, FOUND, {}, {TIME: 6000, MOST: 3}),
        (-1.5, FOUND, {}, {TIME: 3000, MOST: 2}),
    ],
)
def test_a_level_gives_values_between_the_found_and_the_presets(level, found, least, wanted):
    assert values(level, found, least).items() >= wanted.items()


@rows("level", [GENTLEST, -1.5, 0.5, 2.0, 3.0, FASTEST])
def test_a_least_never_exceeds_its_most(level):
    found = values(level, {**FOUND, "zfs_vdev_scrub_min_active": 3})
    assert found["zfs_vdev_scrub_min_active"] <= found["zfs_vdev_scrub_max_active"]


def test_it_sets_no_tunable_of_writes():
    assert not any("async" in name for name in LEVERS)
    assert "zfs_scan_vdev_limit" in LEVERS


def test_nobody_asks_so_it_goes_faster_by_small_steps():
    now = Steering(0.02)
    later = steered(now, None)
    assert 0.0 < later.level - now.level <= RISE
    for _ in range(100):
        later = steered(later, None)
    assert later.level == FASTEST


def test_far_from_the_target_it_goes_by_a_bounded_step():
    assert steered(Steering(0.02), 2.0).level == -FALL
    assert steered(Steering(0.02), 1e-5).wanted == RISE


def test_it_goes_no_further_than_the_gentlest_so_the_way_back_is_short():
    now = Steering(0.02)
    for _ in range(100):
        now = steered(now, 2.0)
    assert now.level == now.wanted == GENTLEST


@rows("share", [1.03, 1.07])
def test_near_what_it_aims_at_it_stays(share):
    now = Steering(0.02, 2.0, 2.0)
    for _ in range(100):
        now = steered(now, share * now.target)
    assert now.level == 2.0


def test_small_errors_add_up():
    now = Steering(0.02)
    for _ in range(100):
        now = steered(now, 0.9 * now.target)
    assert now.level > 5 * STEP


def test_the_worst_case_follows_requests_and_time():
    assert longest("resilver", FOUND) == 3 * 4
    assert longest("scrub", FOUND) == 3
    assert longest("rebuild", FOUND) == 1


@rows(
    "apart, readings",
    [
        (10.0, [(min(i, 4) * 100, max(0, i - 4) * 100) for i in range(10)]),
        (30.0, [(0, 0), (100, 0), (100, 100)]),  # the newest two count
    ],
)
def test_a_meter_forgets_what_was_before_its_span(apart, readings):
    meter = Meter(30.0)
    for i, (slow, fast) in enumerate(readings):
        counts = histogram(b20=fast, b26=slow)
        meter.take(apart * i, {"sync_r": counts, "disk_r": counts})
    assert meter.latency is not None
    assert meter.latency < 2**22 / 1e9


def test_a_meter_starts_anew_where_counters_fell():
    meter = Meter()
    meter.take(0.0, {"sync_r": histogram(b20=100)})
    meter.take(10.0, {"sync_r": histogram(b20=50)})
    assert meter.latency is None


def between(lower: float, upper: float) -> list[int]:
    """Return when it turned down, in decisions, if the target lies between these two latencies."""
    now, falls = Steering(0.02), []
    for i in range(2000):
        before = now
        now = steered(now, upper if now.level >= 1.0 else lower)
        if now.level < before.level and before.rose:
            falls.append(i)
    return falls


def test_a_target_between_two_levels_is_tried_again_ever_later():
    falls = between(0.018, 0.03)
    waits = [b - a for a, b in pairwise(falls)]
    assert waits[4] > 2 * waits[0]
    hours = [sum(begin <= fall < begin + 360 for fall in falls) for begin in range(360, 1640)]
    assert max(hours) <= 6


def noisy(slope: float, level: float, seed: int) -> list[float]:
    """Return the levels of an hour with a steady load: its p95 is the target at this level.

    ``slope``: change of the natural logarithm of latency per level. The p95 of a minute has a noise
    of 6 %.
    """
    draw, now, levels = random.Random(seed), Steering(0.02), [0.0]
    newest: deque[float] = deque(maxlen=round(WINDOW / INTERVAL))
    for _ in range(round(3600.0 / INTERVAL)):
        off = slope * (now.level - level) + draw.gauss(0.0, 0.06 * math.sqrt(newest.maxlen or 1))
        newest.append(now.target * math.exp(off))
        now = steered(now, sum(newest) / len(newest))
        levels.append(now.level)
    return levels


@pytest.mark.slow
@rows("slope", [0.05, 0.1, 0.2, 0.3])
@rows("level", [-1.5, 0.25, 2.0])
def test_the_noise_of_a_steady_load_turns_it_at_most_twelve_times_an_hour(slope, level):
    assert max(reversals(noisy(slope, level, seed)) for seed in range(10)) <= 12


@rows("level", [i * STEP for i in range(round((FASTEST - 1.0) / STEP) + 1)])
def test_a_level_more_is_more_requests_of_the_scan(level):
    requests = ("zfs_vdev_scrub_min_active", "zfs_vdev_scrub_max_active")
    now, then = values(level, FOUND), values(level + 1.0, FOUND)
    assert sum(map(now.get, requests)) < sum(map(then.get, requests))


@pytest.mark.slow
@rows("seed", [0, 7, 23, 101])
def test_under_a_steady_load_it_turns_at_most_twelve_times_an_hour(seed):
    now = load(seed, steady=True)
    _, levels = flown(now, target_of(now))
    assert reversals(levels) <= 12, levels
