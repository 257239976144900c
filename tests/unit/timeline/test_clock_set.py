"""The machine's clock is set while its pools are watched: the monotonic clock continues."""

from __future__ import annotations

import json

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.following import MIB, TOTAL, T, disk, resilver, sample
from zconsole.pool.model import ErrorCounters, Event, Sample, Scan
from zconsole.system.async_process import ProcessRunner
from zconsole.timeline.alerts.alerting import Alerting
from zconsole.timeline.alerts.rules import AlertRules
from zconsole.timeline.frame import Additions
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.store import decode_history, encode_history, restore_history

HOUR = 3600.0
MONTH = 30 * 24 * HOUR


def at(clock: float, ahead: float, *scans, **fields) -> Sample:
    """Return a sample by a clock that is ``ahead`` seconds ahead."""
    return replace(sample(clock + ahead, *scans, **fields), clock=clock)


def errors(count: int):
    return (disk("a", errors=ErrorCounters(0, 0, 0)), disk("b", errors=ErrorCounters(0, 0, count)))


@pytest.mark.slow
@rows("first", [-60 * 365 * 24 * HOUR, MONTH, -5 * HOUR])
def test_past_rates_keep_their_steps(first):
    """A clock that begins in 1970 made each step of the graph a week long."""
    timeline, marks = PoolTimeline(), []
    for second in (*range(105), *range(105, 1000, 5)):
        issued = (20 * min(second, 500) + 60 * max(0, second - 500)) * MIB
        scan = resilver(issued, function="scrub", total_bytes=10**13, scanned_bytes=10**13)
        tunables = {"zfs_vdev_scrub_max_active": 3 if second < 20 else 4}
        ahead = first if second < 100 else 0.0
        taken = replace(at(second, ahead, scan), tunables=tunables)
        past = timeline.push(taken).scans[0].past
        marks.append([mark.t for mark in past.marks])
    assert past.step <= 4.0
    assert 900 <= past.end - past.begin <= 1100
    assert abs(past.end - T - 999) <= 8
    assert marks[-1] == [T + 20]


@pytest.mark.slow
@rows("ahead", [5 * HOUR, -5 * HOUR, MONTH])
@rows("set_at", [500.0, 991.0])
def test_the_next_scan_is_told_by_how_long_this_one_ran(ahead, set_at):
    timeline = PoolTimeline()
    for second in range(1, 1000, 18):
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


DEVICES = (disk("a"), disk("b"))
REMOVED = (disk("a"), disk("b", state="REMOVED"))


def scrub(start: float, end: float | None = None, **fields) -> Scan:
    """Return a scrub of everything by the kernel's clock, in seconds after T."""
    over = {} if end is None else {"state": "finished", "stage": None, "end": T + end}
    return resilver(TOTAL, start, function="scrub", errors=0, **over, **fields)


@rows("ahead", [MONTH, 2 * HOUR, 120.0])
@rows("reboot", [False, True])
def test_no_event_is_dated_later_than_now_nor_in_front_of_newer_ones(ahead, reboot):
    timeline = PoolTimeline()
    told = Event(T + ahead + 5, "vdev.open_failed", "cannot open b", "error", "b")
    timeline.push(at(0, ahead, leaves=errors(0)))
    timeline.push(at(10, ahead, leaves=errors(3), events=(told,)))
    # After a reboot, the monotonic clock restarts.
    after = [at(second, 0, leaves=errors(count)) for second, count in ((60, 3), (70, 5))]
    for one in after:
        frame = timeline.push(replace(one, clock=one.clock - 55 if reboot else one.clock))
    acts = Additions(events=(Event(T + 65, "done", "scrub tank", origin="console"),))
    shown = frame.joined(acts).events
    assert all(event.t <= frame.t for event in shown)
    assert [event.text for event in shown][-2:] == ["scrub tank", "b: 2 new checksum errors"]
    if not reboot:
        assert {event.t - T for event in shown} == {5, 10, 65, 70}


def test_a_backlog_by_a_clock_that_was_ahead_is_not_dated_in_the_future():
    told = [Event(T + when, "data", f"{n}", "error") for n, when in enumerate((MONTH, 20, HOUR))]
    timeline = PoolTimeline()
    timeline.push(at(60, 0, events=tuple(told)))
    assert all(event.t <= T + 60 for event in timeline.events.all)
    assert len(timeline.events.all) == len(told)


@pytest.mark.slow
def test_what_happened_by_a_clock_that_was_ahead_is_no_cause_of_what_comes_later():
    timeline = PoolTimeline()
    timeline.push(at(0, MONTH, resilver(0, MONTH - 5)))
    timeline.push(at(5, MONTH, resilver(MIB, MONTH - 5), leaves=REMOVED))
    timeline.push(at(10, MONTH, resilver(2 * MIB, MONTH - 5)))
    for second in range(15, 900, 5):
        timeline.push(at(second, 0, resilver(second * MIB / 2, MONTH - 5)))
    frame = timeline.push(at(1000, 0, resilver(MIB, 990)))
    assert frame.scans[0].notes[0].startswith("restarted")
    assert "after" not in frame.scans[0].notes[0]


def cleared(timeline: PoolTimeline, ahead: float, *scans: Scan) -> None:
    """Let damage be seen and then cleared, by a clock that is ahead."""
    timeline.push(at(0, ahead, *scans, leaves=errors(0)))
    timeline.push(at(60, ahead, *scans, leaves=errors(9)))
    timeline.push(at(120, ahead, *scans, leaves=errors(0)))


SETTLES = [
    ((), scrub(400, 500), True),
    ((), scrub(-9000, -8000), False),  # before the damage
    ((scrub(MONTH - 30),), scrub(MONTH - 30, 500), False),  # begun before it, by that clock
    ((scrub(MONTH - 900, MONTH - 300),), scrub(MONTH - 900, MONTH - 300), False),
]


@rows(("before", "later", "settles"), SETTLES)
@rows("stored", [False, True])
def test_damage_by_a_clock_that_was_ahead_is_settled_by_a_later_scrub_alone(
    before, later, settles, stored
):
    timeline = PoolTimeline()
    cleared(timeline, MONTH, *before)
    if stored:
        kept, timeline = encode_history(timeline, "1", T + MONTH), PoolTimeline()
        restore_history(timeline, *decode_history(json.loads(kept), "1"))
    frame = timeline.push(at(300, 0, *before, leaves=errors(0)))
    assert "9 checksum errors were cleared at 08:0" in frame.health.reasons[0]
    for second in (600.0, MONTH + 3600):
        word = timeline.push(at(second, 0, later, leaves=errors(0))).health.word
        assert word == ("OK" if settles else "ATTENTION")


def test_a_scrub_that_began_after_the_damage_settles_it_though_the_clock_was_set_back_meanwhile():
    timeline = PoolTimeline()
    cleared(timeline, MONTH)
    timeline.push(at(180, MONTH, scrub(MONTH + 150), leaves=errors(0)))
    assert (
        "the running scrub"
        in timeline.push(at(300, 0, scrub(MONTH + 150), leaves=errors(0))).health.reasons[0]
    )
    over = scrub(MONTH + 150, 500)
    assert timeline.push(at(600, 0, over, leaves=errors(0))).health.word == "OK"


@rows("end", [MONTH + 80, 500.0])
def test_damage_returned_to_a_resilver_is_told_though_the_clock_was_set_back(end):
    timeline, over = PoolTimeline(), {"state": "finished", "stage": None, "errors": 0}
    ran = resilver(MIB, MONTH + 10)
    timeline.push(at(20, MONTH, ran, leaves=errors(0)))
    timeline.push(at(60, MONTH, ran, leaves=errors(7)))
    done = resilver(TOTAL, MONTH + 10, end=T + end, **over)
    if end > MONTH:
        timeline.push(at(90, MONTH, done, leaves=errors(7)))
    timeline.push(at(200, 0, ran if end < MONTH else done, leaves=errors(7)))
    for second in (600.0, MONTH + 9000):
        reasons = timeline.push(at(second, 0, done, leaves=errors(7))).health.reasons
        assert any("b returned damaged data to the resilver" in reason for reason in reasons)


def test_a_device_that_left_and_came_back_by_a_clock_that_was_ahead():
    timeline = PoolTimeline()
    older = resilver(TOTAL, MONTH - 90, end=T + MONTH - 50, state="finished", stage=None)
    timeline.push(at(0, MONTH, older))
    timeline.push(at(5, MONTH, older, leaves=REMOVED))
    row = timeline.push(at(100, 0, older, leaves=REMOVED)).rows[-1]
    assert row.missing_since == T + 5
    timeline.push(at(110, 0, older))
    assert set(timeline.absences.returned) == {"b"}
    later = resilver(TOTAL, 112, end=T + 120, state="finished", stage=None)
    timeline.push(at(130, 0, later))
    assert not timeline.absences.returned


def test_a_device_that_came_back_by_a_clock_that_was_ahead_is_filled_by_a_later_resilver_alone():
    timeline = PoolTimeline()
    older = resilver(TOTAL, MONTH - 90, end=T + MONTH - 50, state="finished", stage=None)
    for second, leaves in ((0, DEVICES), (5, REMOVED), (10, DEVICES)):
        timeline.push(at(second, MONTH, older, leaves=leaves))
    timeline.push(at(200, 0, older))
    assert set(timeline.absences.returned) == {"b"}
    timeline.push(at(260, 0, resilver(TOTAL, 210, end=T + 220, state="finished", stage=None)))
    assert not timeline.absences.returned


@rows("known", [True, False])
def test_a_scrub_by_a_clock_that_was_ahead_hides_no_later_one(known):
    timeline = PoolTimeline(scrub_overdue_after=2 * MONTH)
    if known:
        timeline.push(at(0, MONTH, scrub(MONTH - 90, MONTH - 50)))
    timeline.push(at(100, 0, scrub(MONTH - 90, MONTH - 50)))
    assert timeline.push(at(100 + HOUR, 0, scrub(MONTH - 90, MONTH - 50))).scrub.age >= HOUR
    later = at(100 + 3 * HOUR, 0, scrub(2 * HOUR, 2.5 * HOUR))
    assert timeline.push(later).scrub.age == 100 + HOUR / 2


def test_alerts_by_a_clock_that_was_ahead_are_not_dated_in_the_future():
    timeline = PoolTimeline()
    alerting = Alerting(AlertRules(), ProcessRunner())
    for second, ahead, count in ((0, MONTH, 0), (5, MONTH, 3), (60, 0, 3)):
        frame = timeline.push(at(second, ahead, leaves=errors(count)))
        alerting.look((frame,))
    assert [event.t <= frame.t for event in alerting.events("tank")] == [True]
