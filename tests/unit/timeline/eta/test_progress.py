from __future__ import annotations

from itertools import pairwise

import pytest

from tests.table import rows
from zconsole.pool.model import Activity, Scan, Vdev
from zconsole.timeline.eta.progress import (
    MAX_POINTS,
    RECENT_POINTS,
    ProgressCurve,
    ProgressReading,
    activity_work,
    issued_bytes,
    repaired_share,
    scan_reading,
    scan_work,
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
    """Return eight seconds of a metadata walk, then a sample an hour later that issues bytes."""
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
@rows(("hours", "interval"), [(3, 1), (24, 10), (24 * 7, 60)])
def test_a_long_scan_is_known_all_along(hours, interval):
    """At a sample per second, only the start and the last half hour of a day were kept."""
    made = course(*(reading(n, n) for n in range(0, hours * 3600, interval)))
    assert len(made.points) <= MAX_POINTS
    assert (made.points[0].x, made.points[-1].x) == (0, hours * 3600 - interval)
    newest = [made.points[-1].x - p.x for p in made.points[-RECENT_POINTS:]]
    assert newest == [n * interval for n in reversed(range(RECENT_POINTS))]
    holes = [(b.x - a.x, made.points[-1].x - b.x) for a, b in pairwise(made.points)]
    assert max(hole for hole, _ in holes) <= hours * 3600 / 40
    late = RECENT_POINTS * interval
    assert all(hole <= max(4 * interval, ago / 4) for hole, ago in holes if ago > late)


TIB = 2**40


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", **fields)


def root(*tops: Vdev) -> Vdev:
    return Vdev("tank", "root", children=tops)


def test_exact_bytes_are_taken_as_they_are():
    scan = Scan("scrub", "running", total_bytes=1000, issued_bytes=300, percent=30.1)
    assert issued_bytes(scan) == (300.0, 0.0)


def test_the_percentage_is_finer_than_rounded_bytes_of_a_large_pool():
    scan = Scan(
        "scrub",
        "running",
        total_bytes=10 * TIB,
        issued_bytes=TIB,
        percent=10.42,
        resolution=0.005 * TIB,
    )
    done, step = issued_bytes(scan)
    assert done == pytest.approx(1.042 * TIB)
    assert step == pytest.approx(0.00005 * 10 * TIB)


def test_one_stage_dialects_work_as_they_scan():
    scan = Scan("scrub", "running", total_bytes=1000, scanned_bytes=400, two_stage=False)
    assert issued_bytes(scan) == (400.0, 0.0)
    assert scan_work(scan, root()).issued == 400


def test_what_walks_metadata_takes_turns_and_exact_counters_say_what_is_left_to_walk():
    walks = Scan("scrub", "running", "scanning", total_bytes=9, issued_bytes=1, skipped_bytes=0)
    assert (scan_work(walks, root()).alternates, scan_work(walks, root()).to_scan) == (True, 9)
    for fields in ({"stage": "issuing"}, {"two_stage": False}, {"function": "rebuild"}):
        assert not scan_work(walks._replace(scanned_bytes=1, **fields), root()).alternates, fields
    for fields in ({"printed": True}, {"resolution": 1.0}, {"skipped_bytes": None}):
        assert scan_work(walks._replace(**fields), root()).to_scan is None, fields


def test_nothing_known_is_no_work():
    assert scan_work(Scan("scrub", "running"), root()) is None
    assert scan_reading(1.0, 1.0, Scan("scrub", "running")) is None
    assert scan_work(Scan("scrub", "running", issued_bytes=5), root()) is None


def test_skipped_bytes_are_off_the_total():
    scan = Scan("resilver", "running", total_bytes=1000, skipped_bytes=400, issued_bytes=5)
    assert scan_work(scan, root()).total == 600


def test_repaired_bytes_too_coarse_to_follow_are_left_out():
    fine = Scan("resilver", "running", total_bytes=2**40, issued_bytes=2**38, processed_bytes=2**36)
    assert scan_work(fine, root()).processed == 2**36
    coarse = Scan(
        "resilver",
        "running",
        total_bytes=100 * TIB,
        issued_bytes=10 * TIB,
        processed_bytes=int(1.31 * TIB),
        percent=10.0,
        resolution=0.05 * TIB,
    )
    assert scan_work(coarse, root()).processed == 0


RAIDZ = Vdev(
    "raidz2-0",
    "raidz2",
    children=(
        disk("a"),
        disk("b"),
        disk("c"),
        Vdev("replacing-3", "replacing", children=(disk("d"), disk("e", resilvering=True))),
        disk("f"),
    ),
)


def test_the_share_of_issued_bytes_that_is_repaired():
    scan = Scan("resilver", "running")
    mirror = Vdev("mirror-0", "mirror", children=(disk("a"), disk("b", resilvering=True)))
    assert repaired_share(scan, root(RAIDZ)) == 0.2
    assert repaired_share(scan, root(mirror, Vdev("mirror-1", "mirror"))) == 1.0
    assert repaired_share(scan, root(RAIDZ, mirror)) is None
    assert repaired_share(scan, root(disk("a"))) is None


def test_the_share_of_a_rebuild_is_that_of_its_own_vdev():
    mirror = Vdev("mirror-1", "mirror", children=(disk("a"), disk("b")))
    scan = Scan("rebuild", vdev="mirror-1")
    assert repaired_share(scan, root(RAIDZ, mirror)) == 1.0
    assert repaired_share(Scan("rebuild", vdev="gone"), root(mirror)) is None
    assert repaired_share(Scan("rebuild", vdev="d"), root(Vdev("d", "draid1"))) is None


def test_the_share_of_a_draid_rebuild_is_that_of_the_groups_it_does_not_skip():
    spare = Vdev("draid1-0-0", "dspare", resilvering=True)
    group = Vdev("spare-0", "spare", children=(disk("a", state="OFFLINE"), spare))
    others = (disk("b", resilvering=True), disk("c", resilvering=True), disk("d"))
    draid = Vdev("d", "draid1", data_disks=2, children=(group, *others))
    assert repaired_share(Scan("rebuild", vdev="d"), root(draid)) == pytest.approx(1 / 3)
    unknown = draid._replace(data_disks=None)
    assert repaired_share(Scan("rebuild", vdev="d"), root(unknown)) is None


def test_what_a_rebuild_skips_it_need_not_issue():
    scan = Scan("rebuild", total_bytes=1000, scanned_bytes=500, issued_bytes=400)
    told = Scan("rebuild", total_bytes=1000, scanned_bytes=500, issued_bytes=400, skipped_bytes=100)
    assert scan_work(told, root()).total == 800  # 2.3 says what was skipped, 2.1 does not
    assert scan_work(scan, root()).total == 800
    begun = Scan("rebuild", total_bytes=1000, scanned_bytes=0, issued_bytes=0)
    assert scan_work(begun, root()).total == 1000


def test_an_activity_needs_its_total():
    assert activity_work(Activity("removal", "running", done_bytes=5)) is None
    assert activity_work(Activity("removal", "running", done_bytes=5, total_bytes=9)).total == 9


def test_a_raidz_whose_devices_are_cut_off_tells_no_share():
    scan = Scan("resilver", "running", processed_bytes=5)
    assert repaired_share(scan, root(Vdev("raidz1-0", "raidz1", resilvering=True))) is None


def test_a_metaslab_that_a_rebuild_issues_while_nobody_looks_is_no_break():
    """It issues a whole metaslab, and the devices work it off; a busy machine samples late."""
    curve, issued, t = ProgressCurve(), 0, 0.0
    for n in range(200):
        t += 9.0 if n % 50 == 49 else 2.0
        issued += 64 * 2**20 if n % 50 == 49 else 0
        scan = Scan("rebuild", state="running", start=0.0, total_bytes=2**30, issued_bytes=issued)
        reading = scan_reading(t, t, scan)
        assert reading is not None
        assert not curve.add(reading), n
    assert curve.points[-1].issued - curve.points[0].issued == issued
