from __future__ import annotations

import random
from itertools import accumulate, pairwise

import pytest

from tests.table import rows
from zconsole.timeline.eta import bursts
from zconsole.timeline.eta.estimate import Work, forecast
from zconsole.timeline.eta.progress_curve import ProgressCurve, ProgressReading
from zconsole.tunables.hold_latency import INTERVAL, Steering, steered

SECONDS = [float(n) for n in range(80)]
ISSUED = [120.0 * (1 + n // 16) for n in range(80)]
"""120 bytes at once every 16 seconds, first at 0."""


def test_between_bursts_the_devices_work_evenly():
    level = bursts.levelled(SECONDS, ISSUED)
    speeds = [b - a for a, b in pairwise(level[16:])]
    assert speeds == pytest.approx([120 / 16] * len(speeds))


def test_what_was_issued_before_a_burst_is_done_when_it_begins():
    level = bursts.levelled(SECONDS, ISSUED)
    assert level[31] == ISSUED[31]
    assert all(done <= issued for done, issued in zip(level, ISSUED, strict=True))


def test_a_burst_that_takes_longer_than_usual_is_done_but_no_more():
    xs = [*SECONDS, *(80.0 + n for n in range(60))]
    level = bursts.levelled(xs, [*ISSUED, *[ISSUED[-1]] * 60])
    assert level[-1] == ISSUED[-1]


def test_of_two_bursts_nobody_knows_the_period():
    assert bursts.levelled(SECONDS[:34], ISSUED[:34]) is None


@rows("speed", [(7, 7, 7, 7), (7, 2, 20, 5)])
def test_levels_without_a_standstill_are_no_bursts(speed):
    issued = [0.0]
    for n in range(79):
        issued.append(issued[-1] + speed[n // 20])
    assert bursts.levelled(SECONDS, issued) is None


def test_the_longest_standstill():
    assert bursts.longest_still(SECONDS, ISSUED) == 15
    assert bursts.longest_still([0.0, 1.0], [0.0, 1.0]) == 0


def steps_of_an_autopilot(seed: int, seconds: int = 1200) -> list[float]:
    """Levels each second, as it holds 40 ms beside applications that come and go."""
    rng, now, levels = random.Random(seed), Steering(0.040), []
    for n in range(int(seconds / INTERVAL)):
        asked = 0.030 if n // 20 % 2 else 0.055
        now = steered(now, asked * 1.15**now.level * rng.lognormvariate(0, 0.1))
        levels += [now.level] * int(INTERVAL)
    return levels


@rows("seed", [1, 2, 3])
def test_steps_of_the_autopilot_are_no_bursts(seed):
    levels = steps_of_an_autopilot(seed)
    assert len(set(levels)) > 5
    speeds = [2e7 * 1.15**level for level in levels]
    issued = list(accumulate(speeds, initial=0.0))
    assert bursts.levelled([float(n) for n in range(len(issued))], issued) is None
    course, half = ProgressCurve(), len(levels) // 2
    for n in range(half):
        course.add(ProgressReading(1000.0 + n, n, True, issued[n], issued[n]))
    found = forecast(course, Work(issued[-1], issued[half - 1], start=1000.0)).estimate
    assert found.eta == pytest.approx(half, rel=0.15)
    assert found.low < half < found.high


@rows("seed", [1, 2, 3])
def test_bursts_whose_size_an_autopilot_changes_are_each_worked_off_by_the_next(seed):
    xs, issued, at = [0.0], [0.0], 0
    levels = steps_of_an_autopilot(seed)
    while at + 12 < len(levels):
        xs += [xs[-1] + n for n in range(1, 13)]
        issued += [issued[-1] + 100.0 * 1.15 ** levels[at]] * 12
        at += 12
    level = bursts.levelled(xs, issued)
    begun = bursts.starts(issued)
    assert [level[n] for n in begun] == [issued[n] for n in begun]
    speeds = [b - a for a, b in pairwise(level[begun[0] : begun[-1]])]
    assert min(speeds) > 0


def test_hours_of_walking_between_what_is_issued_are_no_burst():
    course, issued, scanned = ProgressCurve(), 0.0, 0.0
    for n in range(600):
        walking = n // 100 in (1, 3)
        issued, scanned = issued + 1e8 * (not walking), scanned + 5e8 * walking
        course.add(ProgressReading(60.0 * n, 60.0 * n, True, issued, scanned))
    work = Work(2 * issued, issued, start=0.0, walked=True, average=1e6, to_scan=scanned)
    found = forecast(course, work).estimate
    assert "bursts" not in found.reason
    assert found.low < 400 * 60 < found.high
