from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.sim.source import World
from zconsole.timeline.session import Session
from zconsole.tunables.effect import EffectSample, measure


def points(start, stop, rate, latency=0.01):
    return [EffectSample(float(t), rate, latency) for t in range(start, stop)]


def test_gain_and_cost_of_one_change():
    series = [*points(0, 100, 100.0, 0.010), *points(100, 300, 150.0, 0.012)]
    effect = measure(series, 100.0)
    assert effect.gain == pytest.approx(0.5)
    assert effect.cost == pytest.approx(0.2)


def test_what_settles_does_not_count():
    series = [*points(0, 100, 100.0), *points(100, 115, 9999.0), *points(115, 200, 100.0)]
    assert measure(series, 100.0).gain == pytest.approx(0.0)


def test_neither_side_reaches_past_another_change():
    series = [
        *points(0, 200, 1.0),
        *points(200, 400, 100.0),
        *points(400, 600, 200.0),
        *points(600, 800, 5.0),
    ]
    assert measure(series, 400.0, others=[200.0, 400.0, 600.0]).gain == pytest.approx(1.0)


def test_rare_samples_are_taken_from_longer():
    """With a sample per minute, an effect was promised and never reported."""
    series = [EffectSample(60.0 * n, 100.0 if n < 20 else 150.0, 0.01) for n in range(40)]
    assert measure(series[:25], 1200.0).gain is None
    assert measure(series, 1200.0).gain == pytest.approx(0.5)


def test_what_is_long_past_does_not_count():
    series = [*points(0, 100, 100.0), *points(2000, 2300, 150.0)]
    assert measure(series, 2000.0).gain is None


def test_too_few_samples_after_it_say_nothing():
    effect = measure([*points(0, 118, 100.0), *points(175, 179, 100.0)], 100.0)
    assert (effect.issue_after, effect.gain, effect.issue_clear) == (None, None, False)


@rows(
    ("first", "rate", "rough", "clear"),
    [
        (99, 170.0, True, True),
        (99, 60.0, True, True),
        (99, 140.0, True, False),
        (99, 75.0, True, False),
        (41, 140.0, True, False),
        (40, 140.0, False, True),
    ],
)
def test_what_was_watched_a_little_before_gives_a_rough_figure_of_a_large_effect(
    first, rate, rough, clear
):
    """Of a preset set soon after the start, 300M/s to 520M/s stayed "effect unknown" for good."""
    effect = measure([*points(first, 100, 100.0), *points(100, 300, rate)], 100.0)
    assert effect.gain == pytest.approx(rate / 100.0 - 1)
    assert (effect.rough, effect.issue_clear, effect.over) == (rough, clear, False)
    assert effect.doubt == ("" if clear else "watched too briefly before it")


def test_rare_samples_give_a_rough_figure_from_the_first():
    series = [EffectSample(60.0 * n, 100.0 if n < 2 else 200.0, 0.01) for n in range(20)]
    effect = measure(series, 120.0)
    assert (effect.rough, effect.issue_clear) == (True, True)


def test_an_effect_that_can_not_come_any_more_is_known_to_be_over():
    watched = [*points(0, 100, 100.0), *points(100, 120, 150.0)]
    assert not measure(watched, 100.0).over
    assert measure(watched, 100.0, others=[100.0, 110.0]).over
    assert measure(points(100, 118, 100.0), 100.0).over


def test_other_changes_that_leave_no_time_to_measure_are_told_from_a_scan_unwatched():
    """An autopilot's steps: ``no scan watched long enough``, of a scan watched for an hour."""
    watched = [*points(0, 300, 100.0), *points(300, 600, 150.0)]
    assert measure(watched, 300.0, others=[260.0, 300.0]).crowded
    assert measure(watched, 300.0, others=[300.0, 370.0]).crowded
    assert not measure(watched[300:], 300.0, others=[260.0, 300.0]).crowded


def uneven(start, stop, *rates):
    """Return rates that alternate."""
    return [EffectSample(float(t), rates[t % len(rates)], 0.01) for t in range(start, stop)]


@rows(
    ("before", "after", "clear"),
    [
        ((90.0, 100.0, 110.0), (140.0, 150.0, 160.0), True),
        ((90.0, 100.0, 110.0), (96.0, 106.0, 116.0), False),
        ((90.0, 100.0, 110.0), (108.0, 118.0, 128.0), False),
        ((100.0,), (90.0, 110.0, 112.0), False),
        ((90.0, 110.0, 112.0), (100.0,), False),
    ],
)
def test_an_effect_is_clear_where_the_ranges_of_both_sides_do_not_overlap(before, after, clear):
    effect = measure([*uneven(0, 100, *before), *uneven(100, 300, *after)], 100.0)
    assert effect.gain is not None
    assert effect.issue_clear is clear
    assert not effect.latency_clear


def drifting(start, stop):
    """Return a rate that rises and falls by itself every 200 seconds."""
    return [EffectSample(float(t), (100.0, 150.0)[t // 200 % 2], 0.01) for t in range(start, stop)]


def test_a_rate_that_moves_as_much_by_itself_shows_no_effect():
    series = [*drifting(0, 600), *points(600, 1000, 150.0)]
    effect = measure(series, 600.0)
    assert effect.gain is not None
    assert not effect.issue_clear
    assert effect.doubt == "the rate moves as much by itself"
    steady = measure([*points(0, 600, 100.0), *points(600, 1000, 150.0)], 600.0)
    assert steady.issue_clear
    assert not steady.doubt


def limited(start, stop, rate, limit):
    return [EffectSample(float(t), rate, 0.01, limit) for t in range(start, stop)]


@rows(
    ("before", "after", "doubted"),
    [
        ((100.0, "a slow disk"), (150.0, "a slow disk"), True),
        ((100.0, "a slow disk"), (150.0, ""), True),
        ((100.0, ""), (150.0, "a slow disk"), False),
        ((150.0, "a slow disk"), (100.0, "a slow disk"), False),
        ((150.0, ""), (100.0, "a slow disk"), True),
        ((150.0, "a slow disk"), (100.0, ""), False),
    ],
)
def test_no_tunable_lifts_a_limit_that_is_none_of_theirs(before, after, doubted):
    """Any tunable can limit a scan, but none makes a disk faster or slower."""
    effect = measure([*limited(0, 100, *before), *limited(100, 400, *after)], 100.0)
    assert effect.issue_clear is not doubted
    assert ("limited by a slow disk" in effect.doubt) is doubted


@rows(
    ("before", "after", "doubt"),
    [
        (("issuing",), ("scanning",), "issuing before, scanning after"),
        (("issuing",), ("scanning", "issuing"), "issuing before, issuing and scanning after"),
        (("issuing", "scanning"), ("scanning", "issuing"), ""),
        (("issuing",), ("issuing",), ""),
        (("issuing",), ("",), ""),
    ],
)
def test_an_effect_across_stages_is_in_doubt(before, after, doubt):
    """Issuing at 458M/s and then finding blocks was called an effect of -85 %."""
    series = [
        EffectSample(
            float(t),
            100.0 if t < 200 else 15.0,
            0.01,
            stage=(stages := before if t < 200 else after)[t % len(stages)],
        )
        for t in range(500)
    ]
    effect = measure(series, 200.0)
    assert effect.doubt == doubt
    assert effect.issue_clear == (not doubt)


@pytest.mark.parametrize("interval", [10.0, 55.0, 120.0])
def test_a_scan_of_one_stage_is_measured_by_its_present_rate(interval):
    """Its average over the estimate's hour called a fall from 100M/s to 3.12M/s one of 20 %."""
    world, session = World("scrub-delay", 1), Session(goes_on=True)
    tunables, changed = world.pools[0].tunables, list[float]()
    for elapsed in (n * interval for n in range(int(3600 / interval))):
        world.advance(elapsed)
        frame = session.advance(world.raws())[0]
        delay = 0 if 1200 <= elapsed < 2400 else 4
        if tunables["zfs_scrub_delay"] != delay:
            tunables["zfs_scrub_delay"] = delay
            changed.append(frame.t)
    faster, slower = (frame.effect(t, changed) for t in changed)
    assert (faster.issue_clear, slower.issue_clear) == (True, True)
    assert faster.gain == pytest.approx(31, rel=0.1)
    assert slower.gain == pytest.approx(1 / 32 - 1, rel=0.01)
    assert slower.issue_after == pytest.approx(frame.scan.issue_rate, rel=0.01)
