from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.timeline.following import (
    MIB,
    MONTH,
    TOTAL,
    WAITING,
    T,
    ended,
    names,
    resilver,
    running,
    sample,
    scrub,
    view,
    watched,
)
from zconsole.pool.model import Scan, Vdev
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.scan_rate import LEAST_PRESENT, LEVEL_TREND, PRESENT_SECONDS
from zconsole.units import duration, parse_duration, rate

pytestmark = pytest.mark.slow


def test_rates_and_estimate_follow_the_samples():
    samples = running(range(60))
    found = view(watched(*samples))
    assert found.issue_rate == pytest.approx(50 * MIB, rel=0.01)
    assert found.estimate.eta == pytest.approx(141, rel=0.05)
    assert found.estimate.reason.startswith("resilvering at 50M/s over ")
    assert found.window is not None


def test_the_rate_is_that_of_now_and_the_estimate_says_which_it_is_based_on():
    slow, fast = 1 * MIB, 2 * MIB
    samples = changed_rate(slow, fast, 1800, (*range(0, 1700, 10), *range(1700, 1871)))
    found = view(watched(*samples))
    assert found.issue_rate == pytest.approx(fast, rel=0.01)
    assert found.window == PRESENT_SECONDS
    assert found.past.rates[-1] == pytest.approx(fast, rel=0.01)
    assert f"resilvering at {rate(found.issue_rate)}" not in found.estimate.reason


def test_counters_that_another_source_rounds_otherwise_have_not_jumped():
    exact = running(range(20))
    printed = [
        replace(seen, pool=replace(seen.pool, scans=(_printed(seen.pool.scans[0]),)))
        for seen in running(range(20, 30))
    ]
    for samples in ((*exact, *printed), (*printed, *running(range(30, 40)))):
        assert view(watched(*samples)).notes == ()


def _printed(scan: Scan) -> Scan:
    rounded = [int(count * 0.99) for count in (scan.scanned_bytes or 0, scan.issued_bytes or 0)]
    return replace(scan, scanned_bytes=rounded[0], issued_bytes=rounded[1], printed=True)


def changed_rate(before: float, after: float, at: int, seconds: Iterable[int]):
    return [sample(n, resilver(min(n, at) * before + max(0, n - at) * after)) for n in seconds]


@rows("held", [20, 40, 120])
def test_tunables_put_back_show_the_rate_since_then(held):
    """For half a minute RATE had an arrow up, at more than twice the disks' actual rate."""
    up, back = 600, 600 + held
    timeline = PoolTimeline()
    for second in (*range(0, up - 120, 5), *range(up - 120, back + 90)):
        issued = (10 * second + 10 * min(max(0, second - up), held)) * MIB
        tunables = {"zfs_vdev_scrub_max_active": 9 if up <= second < back else 3}
        timeline.push(replace(sample(second, resilver(issued)), tunables=tunables))
        found, after = timeline.frame.scans[0], second - back
        if after >= LEAST_PRESENT:
            assert found.issue_rate == pytest.approx(10 * MIB, rel=0.01), after
            assert found.past.trend is None or found.past.trend < LEVEL_TREND, after
        if after == 45:
            assert found.past.trend < -LEVEL_TREND


@rows(("before", "after", "way"), [(1, 2, "rose"), (2, 1, "fell")])
def test_an_eta_that_lags_the_rate_says_so_with_what_that_rate_would_give(before, after, way):
    at, last = 1800, 1926
    samples = changed_rate(before * MIB, after * MIB, at, range(0, last, 5))
    found = view(watched(*samples))
    left = TOTAL - samples[-1].pool.scans[0].issued_bytes
    assert found.estimate.eta is not None
    assert found.estimate.eta / (left / found.issue_rate) != pytest.approx(1, abs=0.1)
    words = re.fullmatch(r"rate (\w+) (\w+) ago; ETA (\w+) if it holds", found.lag)
    assert (words[1], words[3]) == (way, duration(left / found.issue_rate))
    assert parse_duration(words[2]) == pytest.approx(last - at, abs=PRESENT_SECONDS)
    assert found.estimate.reason.startswith(found.lag)


def test_an_eta_that_has_followed_is_no_more_than_an_eta():
    samples = changed_rate(1 * MIB, 2 * MIB, 600, range(0, 2400, 10))
    found = view(watched(*samples))
    assert not found.lag
    assert found.estimate.reason.startswith("resilvering at")


def test_pause_and_resume_are_told_and_leave_the_estimate_out():
    scrub = resilver(100 * MIB, function="scrub")
    samples = [*(sample(n, replace(scrub, issued_bytes=n * 50 * MIB)) for n in range(2, 40))]
    paused = replace(scrub, state="paused", issued_bytes=39 * 50 * MIB)
    samples += [sample(n, paused) for n in range(40, 400)]
    timeline = watched(*samples)
    found = view(timeline)
    assert (found.estimate.eta, found.estimate.reason) == (None, "paused")
    assert found.stalled is None
    after = [sample(n, replace(scrub, issued_bytes=(n - 360) * 50 * MIB)) for n in range(400, 420)]
    for one in after:
        timeline.push(one)
    left = TOTAL - 59 * 50 * MIB
    eta = view(timeline).estimate.eta
    assert eta == pytest.approx(left / (50 * MIB), rel=0.1)
    assert names(timeline) == ["scrub_pause", "scrub_resume"]


@rows("seen", [5, 30, 300])
def test_a_clock_that_is_set_back_neither_hides_nor_freezes_the_estimate(seen):
    """By the wall clock the scan was young again, so that later samples did not count."""
    timeline, total = watched(), 40_000 * MIB
    for n in (*range(1, seen + 100), *range(seen + 100, seen + 400, 5)):
        issued = (50 * min(n, seen) + 5 * max(0, n - seen)) * MIB
        scan = resilver(issued, total_bytes=total, scanned_bytes=total)
        one = sample(n, scan)
        timeline.push(one if n <= seen else replace(one, t=one.t - 3600))
        if n == seen + 60:
            assert timeline.frame.scans[0].estimate.eta is not None
    eta = timeline.frame.scans[0].estimate.eta
    assert eta > 0.5 * (total - issued) / (5 * MIB)


def test_no_byte_for_a_minute_is_a_stall():
    samples = running(range(2, 60))
    still = [sample(n, resilver(59 * 50 * MIB)) for n in range(60, 125)]
    timeline = watched(*samples, *still[:50])
    assert view(timeline).stalled is None
    for one in still[50:]:
        timeline.push(one)
    found = view(timeline)
    assert found.stalled == 65
    assert found.estimate.reason == "stalled: no progress for 1m05s"


def test_rounding_is_no_stall():
    """At 100 KB/s, a scan of terabytes prints the same bytes for hours."""
    slow = resilver(2**40, resolution=5 * 2**30, percent=9.09, total_bytes=11 * 2**40)
    average = replace(slow, zpool_issue_rate=100_000.0)
    samples = [sample(10 * n, average) for n in range(100)]
    assert view(watched(*samples)).stalled is None
    quick = replace(slow, zpool_issue_rate=100e6)
    samples = [sample(10 * n, quick) for n in range(100)]
    assert view(watched(*samples)).stalled == 990


def test_while_metadata_is_scanned_there_is_no_estimate_but_a_reason():
    walking = [
        sample(n, resilver(0, stage="scanning", scanned_bytes=n * 100 * MIB)) for n in range(2, 30)
    ]
    found = view(watched(*walking))
    assert found.estimate.eta is None
    assert found.estimate.reason == "finding blocks, nothing issued yet"


def test_while_metadata_is_scanned_the_time_of_an_earlier_scan_is_told_as_such():
    timeline = watched(ended(0, 400, "scrub"))
    walking = {"stage": "scanning", "scanned_bytes": 100 * MIB, "function": "scrub"}
    for n in range(MONTH + 2, MONTH + 22):
        timeline.push(sample(n, resilver(0, MONTH, **walking)))
    found = timeline.frame.scans[0].estimate
    assert found.eta is None
    assert found.lacking == "not known yet"
    assert found.reason == "last scrub took 6m40s; finding blocks, nothing issued yet"


def alternating(source: str):
    samples = []
    for n in range(2, 60):
        turn, rest = divmod(n, 10)
        scanned = (turn * 5 + min(rest, 5)) * 100 * MIB
        issued = (turn * 5 + max(0, rest - 5)) * 90 * MIB
        scan = resilver(issued, stage="scanning", scanned_bytes=scanned)
        samples.append(sample(n, scan, source=source))
    return samples


def stages(samples) -> list[str | None]:
    timeline = PoolTimeline()
    found = []
    for one in samples:
        timeline.push(one)
        found.append(view(timeline).stage)
    return found


def test_a_live_source_says_which_stage_is_at_work():
    found = stages(alternating("libzfs"))
    assert set(found[8:]) == {"scanning", "issuing"}
    assert found[57 - 2 + 2 - 1] == "issuing"
    assert set(stages(alternating("replay"))) == {"scanning"}


@rows("interval", [5, 15])
def test_seldom_sampled_stages_are_told_apart_as_well(interval):
    samples = [
        sample(n * interval, resilver(n * MIB, stage="scanning", scanned_bytes=5000 * MIB))
        for n in range(2, 8)
    ]
    assert set(stages(samples)[1:]) == {"issuing"}


def test_while_nothing_is_counted_the_stage_is_the_one_that_counted_last():
    counts = [(900, 0), (1000, 0), (1000, 500), *[(1000, 600)] * 15]
    samples = [
        sample(n, resilver(issued * MIB, stage="scanning", scanned_bytes=scanned * MIB))
        for n, (scanned, issued) in enumerate(counts)
    ]
    assert stages(samples)[-1] == "issuing"


def test_deferred_devices_put_full_redundancy_a_whole_pass_later():
    samples = running(range(2, 100), leaves=WAITING)
    found = view(watched(*samples))
    assert found.full is not None
    assert found.full.eta == pytest.approx(found.estimate.eta + 200, rel=0.05)
    assert found.full.low <= found.full.eta <= found.full.high
    assert "1 device waits" in found.full.reason
    assert found.full_redundancy
    plain = running(range(2, 100))
    assert view(watched(*plain)).full is None


def test_redundancy_is_full_though_a_whole_device_still_waits_to_be_replaced():
    whole = Vdev("sda", "disk", state="ONLINE")
    waits = Vdev("sdz", "disk", state="ONLINE", awaiting_resilver=True)
    group = Vdev("replacing-0", "replacing", state="ONLINE", children=(whole, waits))
    samples = running(range(2, 100), leaves=(group, WAITING[1]))
    found = view(watched(*samples))
    assert "1 device waits" in found.full.reason
    assert not found.full_redundancy
    failed = replace(group, children=(replace(whole, state="FAULTED"), waits))
    assert view(watched(*running(range(2, 100), leaves=(failed, WAITING[1])))).full_redundancy


def test_one_sample_has_zpools_averages():
    only = sample(500, resilver(50 * MIB, zpool_scan_rate=9.0, zpool_issue_rate=7.0 * MIB))
    found = view(watched(only))
    assert (found.scan_rate, found.issue_rate, found.window) == (9.0, 7.0 * MIB, None)
    assert found.estimate.eta is not None


def test_a_rebuild_that_has_issued_nothing_is_not_walking_metadata():
    rebuild = resilver(0, function="rebuild", vdev="mirror-0", stage="scanning", scanned_bytes=MIB)
    only = sample(5, rebuild)
    assert view(watched(only)).estimate.reason == "nothing issued yet"


def test_a_scan_without_counters_has_no_estimate_however_long_it_is_watched():
    samples = [sample(n, Scan("resilver", "running", start=T, percent=5.0)) for n in range(5)]
    found = view(watched(*samples))
    assert found.estimate.reason == "no estimate: the number of bytes done is unknown"


def test_the_past_rates_go_on_through_a_restart_which_is_marked():
    samples = [*running(range(2, 60)), *running(range(61, 90), start=60.0)]
    past = view(watched(*samples)).past
    assert past.begin == T + 2
    assert past.end == T + 90
    assert [(mark.t - T, mark.text) for mark in past.marks] == [(60.0, "restart")]
    assert past.rates[-1] == pytest.approx(50 * MIB, rel=0.01)


def test_pauses_and_the_end_of_the_metadata_walk_are_marked_where_they_were():
    walking = {"stage": "scanning", "scanned_bytes": TOTAL // 2}
    samples = [sample(n, resilver(n * MIB, **walking)) for n in range(2, 10)]
    samples += running(range(10, 20), rate=MIB)
    samples += [sample(n, resilver(19 * MIB, state="paused")) for n in range(20, 25)]
    samples += [sample(25, resilver(19 * MIB))]
    past = view(watched(*samples)).past
    assert [(m.t - T, m.text) for m in past.marks] == [
        (10, "resilvering"),
        (20, "paused"),
        (25, "resumed"),
    ]
    assert past.rates[18:23] == (0.0,) * 5


def test_before_anything_is_issued_the_rate_is_zero_and_not_unknown():
    walking = {"stage": "scanning", "scanned_bytes": TOTAL // 2}
    samples = [sample(n, resilver(0, **walking)) for n in range(2, 6)]
    assert view(watched(*samples)).past.rates == (0.0,) * 4


def test_tunables_changed_while_it_runs_are_marked():
    def at(second, **tunables):
        return replace(sample(second, resilver(second * MIB)), tunables=tunables)

    samples = [
        at(2, zfs_a=1, zfs_b=1, zfs_c=1),
        at(3, zfs_a=2, zfs_b=1, zfs_c=1),
        at(4, zfs_a=2, zfs_b=1, zfs_c=1),
        at(5),
        at(6, zfs_a=3, zfs_b=3, zfs_c=3),
        at(7, zfs_a=3, zfs_b=4, zfs_c=4),
    ]
    past = view(watched(*samples)).past
    assert [(m.t - T, m.text) for m in past.marks] == [
        (3, "zfs_a=2"),
        (6, "3 tunables changed"),
        (7, "zfs_b=4, zfs_c=4"),
    ]


def test_the_second_scrub_is_foretold_within_a_twentieth_from_its_first_minute():
    once = [*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub")]
    again = scrub(range(MONTH + 2, MONTH + 60), MONTH, 50 * MIB)
    timeline = watched(*once)
    for one in again:
        timeline.push(one)
        found = timeline.frame.scans[0]
        assert found.estimate.eta == pytest.approx(T + MONTH + 200 - one.t, rel=0.05)
    assert found.comparison.took == pytest.approx(200, abs=1)
    assert found.estimate.reason.startswith("last scrub took 3m20s, this one is as fast; ")


def test_ahead_is_the_scan_that_ends_sooner_than_the_last_took():
    timeline = watched(*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub"))
    for seconds, each in enumerate(scrub(range(MONTH + 2, MONTH + 60), MONTH, 80 * MIB), 2):
        timeline.push(each)
        found = timeline.frame.scans[0]
        whole = seconds + found.estimate.eta
        assert found.comparison.ahead == pytest.approx(found.comparison.took - whole, abs=1)
    assert "ahead" in found.comparison.words


def test_a_resilver_learns_from_a_scrub_and_not_the_other_way_round():
    timeline = watched(*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub"))
    timeline.push(running(range(MONTH, MONTH + 3), MONTH)[-1])
    assert timeline.frame.scans[0].comparison.function == "scrub"
    other = watched(*running(range(2, 200, 3)), ended(0, 200))
    for one in scrub(range(MONTH + 2, MONTH + 5), MONTH, 50 * MIB):
        other.push(one)
    assert other.frame.scans[0].comparison is None


def test_a_resilver_of_minutes_tells_nothing_of_one_of_hours():
    timeline = watched(*running(range(2, 30), rate=400 * MIB), ended(0, 30))
    for one in running(range(MONTH + 2, MONTH + 60), MONTH, rate=MIB):
        timeline.push(one)
    found = timeline.frame.scans[0]
    assert found.comparison is None
    assert found.estimate.reason.startswith("resilvering at ")


def test_a_scan_beyond_its_total_has_no_estimate_from_the_past_either():
    timeline = watched(*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub"))
    for one in scrub(range(MONTH + 2, MONTH + 260, 3), MONTH, 50 * MIB):
        timeline.push(one)
    assert timeline.frame.scans[0].estimate.eta is None
    assert timeline.frame.scans[0].estimate.reason == "past 100 %: remaining unknown"


def test_a_pause_before_anybody_watched_is_not_time_it_ran():
    timeline = watched(*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub"))
    start, paused = MONTH, 86400.0
    for n in range(100, 130):
        scan = resilver(n * 50 * MIB, start, function="scrub", pass_start=T + start)
        timeline.push(sample(start + paused + n, scan._replace(pass_paused=paused)))
    found = timeline.frame.scans[0]
    assert found.estimate.eta == pytest.approx(71, rel=0.1)
    assert 129 + found.estimate.eta + found.comparison.ahead == pytest.approx(200, abs=1)


def test_the_last_scan_is_called_so_only_if_it_was():
    timeline = watched(*scrub(range(2, 200, 3), 0, 50 * MIB), ended(0, 200, "scrub"))
    timeline.push(ended(MONTH, 500, "scrub"))
    for one in scrub(range(2 * MONTH + 2, 2 * MONTH + 40), 2 * MONTH, 50 * MIB):
        timeline.push(one)
    assert timeline.frame.scans[0].comparison.words.startswith(
        "an earlier scrub took 3m20s, this one"
    )


def test_an_hour_unseen_in_which_the_walk_ended_counts_from_there():
    """Half an hour of it issued at 20 MiB/s; the walk before does not count."""
    size, walk, speed = 400_000 * MIB, 1800, 20 * MIB
    scans = [
        resilver(0, stage="scanning", scanned_bytes=n * MIB, total_bytes=size, pass_start=T)
        for n in range(2, 10)
    ]
    timeline = watched(*(sample(n, scan) for n, scan in enumerate(scans, 2)))
    for n in range(3600, 3603):
        done = (n - walk) * speed
        scan = resilver(done, total_bytes=size, scanned_bytes=size, pass_issued=done)
        timeline.push(sample(n, scan._replace(pass_start=T + walk)))
    found = timeline.frame.scans[0].estimate
    assert found.eta == pytest.approx((size - done) / speed, rel=0.1)


def test_a_scan_that_walks_and_issues_by_turns_has_the_rate_its_counter_moves_by():
    total, issued, scanned, samples = 4 * TOTAL, 0.0, 0.0, []
    for n in range(900):
        samples.append(
            sample(n, resilver(issued, stage="scanning", total_bytes=total, scanned_bytes=scanned))
        )
        fast = 3 if n < 800 else 1
        issued, scanned = issued + (n >= 300) * fast * MIB, scanned + (n < 300) * 8 * MIB
    found = view(watched(*samples))
    assert found.issue_rate == pytest.approx(MIB, rel=0.01)
    assert not found.lag


def test_a_forecast_is_counted_down_until_it_would_differ_and_made_anew_where_something_changed():
    samples = running(range(20, 320), rate=MIB / 2)
    timeline = watched(*samples[:-1])
    told = view(timeline).estimate
    timeline.push(samples[-1])
    after = view(timeline).estimate
    assert after == (told.eta - 1, told.low - 1, told.high - 1, told.reason)
    paused = sample(320, replace(samples[-1].pool.scans[0], state="paused"))
    timeline.push(paused)
    assert view(timeline).estimate.reason == "paused"
