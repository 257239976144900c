from __future__ import annotations

from datetime import UTC

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.following import (
    HEALTHY,
    MIB,
    MONTH,
    TOTAL,
    WAITING,
    T,
    disk,
    ended,
    names,
    resilver,
    running,
    sample,
    view,
    watched,
)
from zconsole.pool.model import Event, Scan, Vdev
from zconsole.pool.scan_outcome import last_scan
from zconsole.timeline.pool import PoolTimeline

pytestmark = pytest.mark.slow


@rows(
    ("samples", "restarts"),
    [
        (running(range(500, 510)), None),  # nobody knows
        (running(range(2, 20)), 0),
        ([sample(0), sample(100), *running(range(110, 120), start=105.0)], 0),
    ],
)
def test_only_a_scan_watched_from_its_start_is_known_to_have_none_yet(samples, restarts):
    assert view(watched(*samples)).restarts == restarts


def test_a_restart_is_counted_and_explained_by_the_device_that_came_back():
    gone = (disk("a"), disk("b", state="REMOVED"))
    samples = [
        *running(range(2, 60)),
        *running(range(60, 70), leaves=gone),
        *running(range(72, 95), start=71.0),
    ]
    timeline = watched(*samples)
    found = view(timeline)
    assert found.restarts == 1
    assert found.notes == ("restarted 08:01 after b returned",)
    assert found.estimate.eta == pytest.approx(180, rel=0.1)
    assert "resilver_restart" in names(timeline)


def test_a_restart_without_a_cause_in_sight_says_none():
    samples = [*running(range(500, 560), rate=5 * MIB), *running(range(562, 580), start=561.0)]
    found = view(watched(*samples))
    assert found.restarts == 1
    assert found.notes == ("restarted 08:09",)


def test_a_second_restart_keeps_the_note_of_the_first():
    samples = [
        *running(range(2, 60)),
        *running(range(62, 80), start=61.0),
        *running(range(82, 90), start=81.0),
    ]
    found = view(watched(*samples))
    assert (found.restarts, len(found.notes)) == (2, 2)


@rows("seen_finished", [True, False])
def test_a_follow_on_pass_is_no_restart(seen_finished):
    samples = running(range(2, 199), leaves=WAITING)
    if seen_finished:
        done = resilver(TOTAL, state="finished", end=T + 200)
        samples.append(sample(200, done, leaves=WAITING))
    samples += running(range(203, 210), start=202.0)
    found = view(watched(*samples))
    assert found.restarts == 0
    assert found.notes == ("follow-on pass since 08:03 for c",)


def test_the_kernels_own_history_tells_a_restart_from_a_follow_on_pass():
    told = Event(T + 198, "history_event", "scan aborted, restarting errors=0")
    samples = running(range(2, 198), leaves=WAITING)
    samples.append(sample(199, resilver(0, 198.0), leaves=WAITING, events=(told,)))
    assert view(watched(*samples)).restarts == 1


def test_a_resilver_that_takes_a_scrubs_place_says_so():
    samples = [sample(n, resilver(n * MIB, function="scrub")) for n in range(2, 30)] + running(
        range(31, 40), start=30.0
    )
    found = view(watched(*samples))
    assert found.restarts == 0
    assert found.notes == ("replaced the scrub at 08:00",)


def test_a_canceled_scrub_and_a_new_one_are_two_scans():
    scrub = resilver(50 * MIB, function="scrub")
    samples = [
        sample(5, scrub),
        sample(6, replace(scrub, state="canceled", end=T + 6)),
        sample(20, replace(scrub, start=T + 19, issued_bytes=MIB)),
    ]
    timeline = watched(*samples)
    assert view(timeline).restarts == 0
    assert names(timeline) == ["scrub_canceled", "scrub_start"]


def test_a_scan_that_began_and_ended_between_two_samples_is_told_whole_and_in_its_place():
    done = resilver(TOTAL, start=10, state="finished", stage=None, end=T + 30)
    between = Event(T + 20, "vdev_remove", "vdev remove on c")
    timeline = watched(sample(0), sample(60, done, events=(between,)))
    assert names(timeline) == ["resilver_start", "vdev_remove", "resilver_finish"]


def test_import_is_told_from_a_restart():
    first = [sample(n, resilver(n * 50 * MIB, pass_start=T)) for n in range(2, 60)]
    then = [sample(n, resilver((n - 80) * 50 * MIB, pass_start=T + 80)) for n in range(81, 100)]
    found = view(watched(*first, *then))
    assert found.restarts == 0
    assert found.notes == ("the pool was imported again by 08:01: from 2.88G to 50M issued",)
    assert found.issue_rate == pytest.approx(50 * MIB, rel=0.1)


@rows(
    ("fell", "clock", "cause"),
    [(10 * MIB, 0, "counters fell"), (-50 * MIB, -3600, "the clock was set back")],
)
def test_what_broke_without_an_import_is_called_what_it_is(fell, clock, cause):
    first = [sample(n, resilver(n * 50 * MIB, pass_start=T)) for n in range(2, 60)]
    then = resilver(59 * 50 * MIB - fell, pass_start=T)
    last = replace(sample(60, then), clock=60.0 + clock)
    assert view(watched(*first, last)).notes[0].startswith(f"{cause} by 08:01: from 2.88G to ")


def test_a_finished_scan_of_text_is_the_one_that_was_followed():
    samples = running(range(2, 199))
    done = Scan("resilver", "finished", end=T + 200, duration=200.0, errors=0)
    samples.append(sample(201, done))
    timeline = watched(*samples)
    assert view(timeline).restarts == 0
    assert names(timeline) == ["resilver_finish"]


def test_several_rebuilds_are_followed_each_by_itself():
    def rebuild(vdev: str, n: int, rate: float) -> Scan:
        return resilver(n * rate, function="rebuild", vdev=vdev)

    samples = [
        sample(n, rebuild("mirror-0", n, 20 * MIB), rebuild("mirror-1", n, 80 * MIB))
        for n in range(2, 60)
    ]
    one, two = watched(*samples).frame.scans
    assert one.issue_rate == pytest.approx(20 * MIB, rel=0.01)
    assert two.issue_rate == pytest.approx(80 * MIB, rel=0.01)
    assert one.key != two.key


def test_it_is_over_since_the_first_sample_without_a_running_scan():
    going = resilver(MIB)
    done = replace(going, state="finished", end=T + 1)
    timeline = PoolTimeline()
    since = []
    for n, scan in enumerate((going, done, done, going, done)):
        timeline.push(sample(n, scan))
        since.append(timeline.scans.over_since)
    assert since == [None, T + 1, T + 1, None, T + 4]


@rows("back", [5, 3600])
def test_how_it_ended_is_told_though_the_clock_was_set_back_after_it(back):
    """By the wall clock nothing was certain until it had caught up."""
    ended = resilver(TOTAL, state="finished", end=T + 50, errors=7)
    timeline = watched(sample(49, resilver(49 * MIB)), sample(51, ended))
    outcomes = [timeline.push(sample(n - back, ended)).outcome for n in (52, 60, 80)]
    assert [each.restored for each in outcomes] == [None, None, False]
    now = sample(80 - back, ended)
    assert last_scan(now.pool, ended, "OK", now.t).result == "not restored"


def test_of_many_past_scans_the_newest_few_are_kept():
    timeline = PoolTimeline(UTC)
    for month in range(6):
        start = month * MONTH
        for one in (*running(range(start + 2, start + 60), start), ended(start, 200)):
            timeline.push(one)
    assert [past.start for past in timeline.scans.past] == [T + n * MONTH for n in (5, 4, 3)]


OVER = {"state": "finished", "stage": None}


@rows(
    ("samples", "known"),
    [
        ([ended(0, 2000)], [(2000, 0)]),  # it ended before anybody watched
        # It was paused while nobody watched.
        ([sample(9100, resilver(TOTAL, end=T + 9000, pass_paused=8000.0, **OVER))], [(1000, 0)]),
        ([sample(9000, resilver(TOTAL, -T, end=T + 9, **OVER))], []),  # by a clock that was wrong
        (
            [
                *running(range(2, 100)),
                sample(100, resilver(90 * MIB, end=T + 100, state="canceled", stage=None)),
            ],
            [],
        ),
    ],
)
def test_a_finished_scan_tells_how_long_it_ran_and_how_much_of_that_was_watched(samples, known):
    past = watched(*samples).scans.past
    assert [(each.seconds, each.watched) for each in past] == known


@rows("seen", [range(0), range(2, 100)])
@rows(
    ("full", "issued", "skipped", "known"),
    [
        # Without history: a part that is not walked is not counted, nor is one skipped (-E) issued.
        (None, 0.03, 0.0, 0),
        (None, 0.6, 0.4, 0),
        (None, 1.0, 0.0, 1),
        (False, 0.6, 0.4, 0),
        (True, 0.6, 0.4, 1),  # blocks written meanwhile are skipped, those they replace are freed
    ],
)
def test_a_partial_scrub_tells_nothing_of_the_next_scrub(seen, full, issued, skipped, known):
    fields = {"function": "scrub", "full": full, "skipped_bytes": int(skipped * TOTAL)}
    course = [sample(n, resilver(n * issued * TOTAL / 100, **fields)) for n in seen]
    scan = resilver(issued * TOTAL, end=T + 100, **fields, **OVER)
    last = replace(sample(100, scan), version="2.4.0")
    assert len(watched(*course, last).scans.past) == known


@rows("others", [(), ("mirror-1",)])
def test_a_rebuild_is_the_same_when_its_vdev_is_renamed(others):
    """A mirror or replacing vdev goes when one of its devices leaves, and its name with it."""
    timeline = PoolTimeline(UTC)
    every = [Vdev(name, "mirror", guid=name, children=(disk(f"{name}a"),)) for name in others]
    pair = Vdev("mirror-0", "mirror", guid="m", children=HEALTHY)

    def seen(second, top, scan):
        taken = sample(second, scan)
        root = taken.pool.root._replace(children=(top, *every))
        return replace(taken, pool=replace(taken.pool, root=root))

    for second in range(10):
        rebuild = resilver(second * MIB, start=1, function="rebuild", vdev="mirror-0")
        timeline.push(seen(second, pair, rebuild))
    done = replace(rebuild, state="finished", end=T + 10)
    timeline.push(seen(11, pair, done))
    known = names(timeline)
    assert known.count("rebuild_finish") == 1
    timeline.push(seen(12, disk("b"), replace(done, vdev="b")))
    assert [name for name in names(timeline) if name.startswith("rebuild")] == known


def test_a_rebuild_that_ends_as_its_vdev_is_renamed_is_told_once():
    timeline = PoolTimeline(UTC)
    for second in range(10):
        timeline.push(sample(second, resilver(second, function="rebuild", vdev="mirror-0")))
    ending = sample(11, resilver(TOTAL, function="rebuild", vdev="b", state="finished", end=T + 10))
    root = ending.pool.root._replace(children=(disk("b"),))
    timeline.push(replace(ending, pool=replace(ending.pool, root=root)))
    assert [name for name in names(timeline) if "rebuild" in name] == ["rebuild_finish"]


@rows("end", [None, T - 100.0])
def test_a_scan_after_one_that_ended_has_begun_and_not_gone_on(end):
    """Text of Solaris 10, or with an unreadable date, has no start."""
    before = Scan("scrub", "finished", end=end, errors=0)
    running = Scan("scrub", "running", total_bytes=TOTAL, issued_bytes=MIB)
    timeline = watched(sample(0, before), sample(60, running))
    assert names(timeline) == ["scrub_start"]
    assert timeline.events.all[0].text == "scrub started"


def test_a_scan_without_a_start_that_was_paused_goes_on():
    paused = Scan("scrub", "paused", total_bytes=TOTAL, issued_bytes=MIB)
    timeline = watched(sample(0, paused), sample(60, replace(paused, state="running")))
    assert names(timeline) == ["scrub_resume"]


def told(end: float, minutes: int = 2, state: str = "finished") -> Scan:
    """Return a finished scrub as text shows it: without start, in whole minutes before 0.8."""
    taken = None if state == "canceled" else minutes * 60.0
    return Scan("scrub", state, end=T + end, duration=taken, errors=0)


@rows("state", ["finished", "canceled"])
@rows("end", [600.0, 4000.0])
def test_two_ends_that_text_tells_are_two_scans(state, end):
    timeline = watched(
        sample(100, told(0)), sample(130, told(0)), sample(5000, told(end, 2, state))
    )
    begun = [] if state == "canceled" else ["scrub_start"]
    assert names(timeline) == [*begun, "scrub_finish" if begun else "scrub_canceled"]
    assert timeline.events.all[-1].t == T + end
    assert all(end - 121 <= event.t - T <= end for event in timeline.events.all)


EXACT = resilver(TOTAL, start=-119, function="scrub", state="finished", stage=None, end=T)
LATER = resilver(TOTAL, start=380, function="scrub", state="finished", stage=None, end=T + 500)
RAN = [(n, resilver(n * MIB, function="scrub")) for n in (10, 20)]


@rows(
    ("seen", "events", "past"),
    [
        ([(n, told(0)) for n in range(10, 500, 60)], [], 0),
        # Another source tells the same end, or a later one.
        ([(10, EXACT), (20, told(1)), (30, EXACT)], [], 1),
        ([(10, told(1)), (20, EXACT), (30, told(1))], [], 0),
        ([(10, EXACT), (520, told(500))], ["scrub_start", "scrub_finish"], 1),
        ([(10, told(0)), (520, LATER)], ["scrub_start", "scrub_finish"], 1),
        # The watched scan ended unseen, and another one has begun and ended since.
        ([*RAN, (9000, told(8000, 10))], ["scrub_start", "scrub_finish"], 0),
        # Whole minutes of the scan that was followed.
        ([*RAN, (300, told(240, 4))], ["scrub_finish"], 1),
        ([*RAN, (300, told(299, 4))], ["scrub_finish"], 1),
    ],
)
def test_an_end_that_is_told_again_or_by_another_source_is_told_once(seen, events, past):
    timeline = watched(*(sample(second, scan) for second, scan in seen))
    assert names(timeline) == events
    assert len(timeline.scans.past) == past, [each.start for each in timeline.scans.past]
