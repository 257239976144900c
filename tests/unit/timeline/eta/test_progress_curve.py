from __future__ import annotations

from itertools import pairwise

import pytest

from tests.table import rows
from zconsole.timeline.eta.progress_curve import (
    MAX_POINTS,
    RECENT_POINTS,
    ProgressCurve,
    ProgressReading,
)

T = 1_800_000_000.0


def reading(second: float, issued: float, running: bool = True, **fields) -> ProgressReading:
    return ProgressReading(T + second, second, running, issued, **fields)


def course(*readings: ProgressReading) -> ProgressCurve:
    made = ProgressCurve()
    for one in readings:
        made.add(one)
    return made


def test_bytes_and_seconds_add_up():
    made = course(reading(0, 100), reading(1, 150), reading(3, 250))
    assert [(p.x, p.issued) for p in made.points] == [(0, 100), (1, 150), (3, 250)]


def test_a_pause_counts_neither_seconds_nor_the_burst_after_it():
    made = course(
        reading(0, 0),
        reading(10, 1000),
        reading(20, 1000, running=False),
        reading(500, 1000, running=False),
        reading(501, 5000),
        reading(511, 6000),
    )
    assert made.seconds == 20
    assert made.points[-1].issued == 2000


def test_a_pause_between_two_samples_is_taken_off_by_the_kernels_own_count():
    made = course(reading(0, 0, paused=0.0), reading(100, 500, paused=40.0))
    assert made.seconds == 60


def test_bytes_that_fell_on_import_are_a_break_and_never_negative():
    made = course(reading(0, 0), reading(10, 1000))
    assert made.add(reading(20, 200, pass_start=5.0))
    made.add(reading(30, 1200, pass_start=5.0))
    assert made.points[-1].issued == 2000
    assert made.seconds == 20


def test_bytes_that_leap_across_an_import_were_not_worked_off():
    seconds = [reading(n, n * 100, pass_start=1.0) for n in range(20)]
    made = course(*seconds)
    assert made.add(reading(40, 1_000_000, pass_start=30.0))
    assert made.points[-1].issued == 1900


def test_a_pass_that_begins_with_the_metadata_walk_complete_is_no_break():
    made = course(*(reading(n, n * 100, pass_start=1.0) for n in range(20)))
    assert not made.add(reading(20, 2100, pass_start=20.0))
    assert made.points[-1].issued == 2100


def test_a_clock_that_runs_backwards_breaks_and_goes_on():
    made = course(reading(100, 1000), reading(110, 2000))
    assert made.add(reading(5, 2100))
    made.add(reading(15, 3100))
    assert made.seconds == 20
    assert made.points[-1].issued == 3000


def test_a_clock_set_forward_adds_no_seconds_of_work():
    made = course(*(reading(n, n * 100) for n in range(20)))
    assert not made.add(reading(3620, 2000))
    assert made.seconds == 20
    made.add(reading(3621, 2100))
    assert (made.seconds, made.points[-1].issued, made.idle) == (21, 2100, 0)


def test_a_machine_that_slept_while_it_walked_the_metadata():
    made = course(*(reading(n, 0, scanned=n * 100.0) for n in range(20)))
    made.add(reading(3620, 0, scanned=2000.0))
    assert made.seconds == 20


def test_a_long_hole_with_work_in_it_counts_in_full():
    made = course(*(reading(n, n * 100) for n in range(20)))
    made.add(reading(3619, 1900 + 36_000))
    assert made.seconds == 3619


def test_standing_still_through_a_hole_is_still_idle():
    made = course(*(reading(n, n * 100) for n in range(20)))
    made.add(reading(3619, 1900))
    made.add(reading(3629, 1900))
    assert (made.seconds, made.idle) == (29, 3610)


def test_the_epoch_clock_may_jump_as_it_likes():
    made = ProgressCurve()
    made.add(ProgressReading(T, 0.0, True, 0.0))
    made.add(ProgressReading(T + 86400, 1.0, True, 100.0))
    made.add(ProgressReading(T - 86400, 2.0, True, 200.0))
    assert [p.x for p in made.points] == [0, 1, 2]


def test_the_same_sample_twice_counts_once():
    made = course(reading(0, 0), reading(1, 100), reading(1, 100))
    assert len(made.points) == 2


def test_counters_beyond_any_pool_are_not_taken():
    made = course(reading(0, 100), reading(1, 200))
    assert not made.add(reading(2, 2**64 - 4096))
    assert not made.add(reading(3, -1))
    made.add(reading(4, 500))
    assert made.points[-1].issued == 500


@pytest.mark.slow
def test_a_day_at_a_sample_a_second_stays_small_and_keeps_both_ends():
    made = course(*(reading(n, n * 10) for n in range(86_400)))
    assert len(made.points) <= MAX_POINTS
    assert (made.points[0].x, made.points[-1].x) == (0, 86_399)
    newest = [p.x for p in made.points[-RECENT_POINTS:]]
    assert newest == list(range(86_400 - RECENT_POINTS, 86_400))


def test_idle_is_how_long_no_counter_moved():
    made = course(reading(0, 0), reading(10, 100), reading(50, 100), reading(70, 100))
    assert made.idle == 60
    made.add(reading(80, 100, scanned=5))
    assert made.idle == 0


def test_what_another_console_remembered_a_moment_later_is_no_break():
    made = ProgressCurve(course(reading(0, 0), reading(100, 1000)).points, reading(100, 1000))
    assert made.add(reading(99, 990)) is False
    assert made.add(reading(101, 1010)) is False
    assert (made.seconds, made.points[-1].issued) == (101, 1010)


def test_what_was_remembered_is_continued_by_the_epoch_clock():
    old = course(reading(0, 0), reading(100, 1000))
    last = ProgressReading(T + 100, 0.0, True, 1000.0)
    made = ProgressCurve(old.points, last)
    made.add(ProgressReading(T + 400, 7.0, True, 4000.0))
    made.add(ProgressReading(T + 401, 8.0, True, 4010.0))
    assert made.seconds == 401
    assert made.points[-1].issued == 4010


def walk_unseen(begun: float, before: float | None) -> ProgressCurve:
    """Eight seconds of a metadata walk, then a sample an hour later that issues bytes."""
    made = course(*(reading(n, 0, scanned=n * 10.0, pass_start=T) for n in range(8)))
    later = {"scanned": 9000.0, "pass_start": T + begun, "before": before}
    assert not made.add(reading(3600, 160_000, **later))
    return made


def test_a_walk_that_ended_unseen_ends_with_the_pass():
    made = walk_unseen(2000, 0.0)
    assert [(p.x, p.issued, p.scanned) for p in made.points[-2:]] == [
        (2000, 0, 9000),
        (3600, 160_000, 9000),
    ]


def test_where_no_pass_began_meanwhile_it_is_not_known_when_the_walk_ended():
    assert [p.issued for p in walk_unseen(0, 0.0).points] == [*[0] * 8, 160_000]
    assert [p.issued for p in walk_unseen(2000, None).points] == [*[0] * 8, 160_000]


def test_bytes_that_fell_while_the_walk_ended_unseen_are_a_break():
    made = course(*(reading(n, n * 500, scanned=n * 10.0, pass_start=T) for n in range(8)))
    assert made.add(reading(3600, 100, scanned=9000.0, pass_start=T + 2000, before=0.0))


def test_bytes_issued_unseen_right_after_the_walk_took_their_time():
    made = course(*(reading(n, 0, scanned=min(n, 4) * 10.0) for n in range(8)))
    made.add(reading(3600, 160_000, scanned=40.0))
    assert made.points[-1].x == 3600


@pytest.mark.slow
@rows(("hours", "interval"), [(3, 1), (24, 5), (24 * 7, 60)])
def test_a_long_scan_is_known_all_along(hours, interval):
    """At a sample a second, nothing was kept of a day but its start and the last half hour."""
    made = course(*(reading(n, n) for n in range(0, hours * 3600, interval)))
    assert len(made.points) <= MAX_POINTS
    holes = [(b.x - a.x, made.points[-1].x - b.x) for a, b in pairwise(made.points)]
    assert max(hole for hole, _ in holes) <= hours * 3600 / 40
    late = RECENT_POINTS * interval
    assert all(hole <= max(4 * interval, ago / 4) for hole, ago in holes if ago > late)
