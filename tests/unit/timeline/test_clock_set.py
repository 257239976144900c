"""The machine's clock is set while its pools are watched: the steady clock goes on."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.following import MIB, TOTAL, T, disk, resilver, sample
from zconsole.pool.model import ErrorCounters, Event, Sample
from zconsole.timeline.pool import PoolTimeline

HOUR = 3600.0
MONTH = 30 * 24 * HOUR


def at(clock: float, ahead: float, *scans, **fields) -> Sample:
    """A sample by a clock that is so many seconds ahead."""
    return replace(sample(clock + ahead, *scans, **fields), clock=clock)


def errors(count: int):
    return (disk("a", errors=ErrorCounters(0, 0, 0)), disk("b", errors=ErrorCounters(0, 0, count)))


@pytest.mark.slow
@rows("first", [-60 * 365 * 24 * HOUR, MONTH, -5 * HOUR])
def test_past_rates_keep_their_steps(first):
    """A clock that begins in 1970 made each step of the graph a week long."""
    timeline, marks = PoolTimeline(), []
    for second in (*range(130), *range(130, 1000, 3)):
        issued = (20 * min(second, 500) + 60 * max(0, second - 500)) * MIB
        scan = resilver(issued, function="scrub", total_bytes=10**13, scanned_bytes=10**13)
        tunables = {"zfs_vdev_scrub_max_active": 3 if second < 20 else 4}
        ahead = first if second < 100 else 0.0
        taken = replace(at(second, ahead, scan), tunables=tunables)
        past = timeline.push(taken).scans[0].past
        marks.append([mark.t for mark in past.marks])
    assert past.step <= 2.0
    assert 900 <= past.end - past.begin <= 1100
    assert abs(past.end - T - 999) <= 2
    assert marks[-1] == [T + 20]


@pytest.mark.slow
@rows("ahead", [5 * HOUR, -5 * HOUR, MONTH])
@rows("set_at", [500.0, 991.0])
def test_the_next_scan_is_told_by_how_long_this_one_ran(ahead, set_at):
    timeline = PoolTimeline()
    for second in range(1, 1000, 9):
        later = ahead if second > set_at else 0.0
        timeline.push(at(second, later, resilver(second * 10 * MIB, function="scrub")))
    done = {"state": "finished", "stage": None, "end": T + 1000 + ahead}
    timeline.push(at(1001, ahead, resilver(TOTAL, function="scrub", **done)))
    (past,) = timeline.scans.past
    assert 990 <= past.seconds <= 1010


@rows("back", [-HOUR, -5.0, HOUR])
def test_a_start_that_kernel_and_console_saw_is_told_once(back):
    timeline = PoolTimeline()
    timeline.push(at(0, 0))
    told = Event(T + 2 + back, "resilver_start", "resilver start", "info")
    timeline.push(at(3, back, resilver(0, start=2 + back), events=(told,)))
    assert [event.name for event in timeline.events.all] == ["resilver_start"]


def test_errors_by_a_clock_that_was_ahead_are_news_for_an_hour():
    timeline = PoolTimeline()
    timeline.push(at(0, MONTH, leaves=errors(0)))
    timeline.push(at(1, MONTH, leaves=errors(3)))
    for second, count in ((10, 1), (HOUR - 60, 1), (2 * HOUR, 0), (20 * 24 * HOUR, 0)):
        assert len(timeline.push(at(second, 0, leaves=errors(3))).troubles) == count


@rows("back", [-HOUR, HOUR])
def test_errors_fell_in_the_time_that_passed_and_not_in_what_the_clock_was_set_by(back):
    timeline = PoolTimeline()
    timeline.push(at(0, 0, leaves=errors(0)))
    (fault,) = timeline.push(at(600, back, leaves=errors(40))).troubles
    assert fault.deltas.seconds == 600.0
