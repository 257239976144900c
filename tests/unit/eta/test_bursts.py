from __future__ import annotations

from itertools import pairwise

import pytest

from zconsole.eta import bursts

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


@pytest.mark.parametrize("speed", [(7, 7, 7, 7), (7, 2, 20, 5)])
def test_levels_without_a_standstill_are_no_bursts(speed):
    issued = [0.0]
    for n in range(79):
        issued.append(issued[-1] + speed[n // 20])
    assert bursts.levelled(SECONDS, issued) is None


def test_the_longest_standstill():
    assert bursts.longest_still(SECONDS, ISSUED) == 15
    assert bursts.longest_still([0.0, 1.0], [0.0, 1.0]) == 0
