from __future__ import annotations

import json
import math
import random
import sys
from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.bench.eta import judge, recordings, table, verdict
from tests.bench.synthetic import KINDS, Plan, plans, samples
from tests.records import replace
from tests.table import rows
from zconsole import units
from zconsole.pool.model import Sample, Scan, Vdev
from zconsole.timeline.eta.estimate import (
    evened_out,
    forecast,
    longest_still,
)
from zconsole.timeline.eta.progress import ProgressCurve, ProgressReading, Work, scan_work
from zconsole.tunables.hold_latency import INTERVAL, Steering, steered

MIB = 2**20
GIB = 2**30
START = 1_800_000_000


def course(rates: list[float], processed_share: float = 0.0, step: float = 1.0) -> ProgressCurve:
    """Return a curve with these bytes per second, one after another."""
    made, issued = ProgressCurve(), 0.0
    made.add(ProgressReading(1000.0, 0.0, True, 0.0))
    for n, rate in enumerate(rates, 1):
        issued += rate * step
        made.add(
            ProgressReading(
                1000.0 + n * step, n * step, True, issued, issued, issued * processed_share
            )
        )
    return made


def told(made: ProgressCurve, total: float, **fields):
    return forecast(made, Work(total, made.points[-1].issued, start=1000.0, **fields))


def test_a_steady_scan_ends_when_its_bytes_run_out():
    found = told(course([10 * MIB] * 100), 2000 * MIB)
    assert found.estimate.eta == pytest.approx(100, rel=0.05)
    assert found.rate == pytest.approx(10 * MIB, rel=0.01)


def test_rates_below_what_zpool_answers_for_are_estimated_too():
    found = told(course([0.5 * MIB] * 100), 100 * MIB)
    assert found.estimate.eta == pytest.approx(100, rel=0.05)


def test_a_change_of_speed_is_followed_within_a_minute():
    found = told(course([4 * MIB] * 300 + [16 * MIB] * 60), 1200 * MIB + 3200 * MIB)
    assert found.estimate.eta == pytest.approx(140, rel=0.25)


@pytest.mark.slow
def test_a_steady_eta_falls_a_second_a_second():
    rates = [20 * MIB] * 200
    etas = [told(course(rates[:n]), 6000 * MIB).estimate.eta for n in range(20, 200)]
    assert all(a > b for a, b in pairwise(etas))


@rows(("sure", "off"), [(True, 0.02), (False, 0.05)])
def test_the_repaired_bytes_tell_what_is_queued(sure, off):
    """For a rebuild they are exact; otherwise as exact as the queue was ever empty."""
    made = ProgressCurve()
    for n in range(100):
        done = n * 10 * MIB
        issued = math.ceil((n + 1) / 13) * 130 * MIB
        made.add(ProgressReading(1000.0 + n, n, True, issued, issued, done * 0.25))
    left = 2000 * MIB - 99 * 10 * MIB
    issued, repaired = made.points[-1].issued, 99 * 2.5 * MIB
    work = Work(2000 * MIB, issued, repaired, share=0.25, sure=sure, start=1000.0)
    assert forecast(made, work).estimate.eta == pytest.approx(left / (10 * MIB), rel=off)


def test_padding_that_a_raidz_allocates_for_small_blocks_is_not_queued():
    """Of 100 bytes issued to a raidz2 of five, 18.6 are written to the new disk, not 20."""
    made, share = ProgressCurve(), 0.186
    for n in range(100):
        made.add(ProgressReading(1000.0 + n, n, True, n * 10.0 * MIB, 0.0, n * 10 * share * MIB))
    leaf = Vdev("new", "disk", resilvering=True)
    top = Vdev("raidz2-0", "raidz2", children=(leaf, *(Vdev(f"d{n}", "disk") for n in range(4))))
    scan = Scan(
        "resilver",
        "running",
        start=1000.0,
        total_bytes=1000 * MIB,
        issued_bytes=990 * MIB,
        processed_bytes=int(990 * share * MIB),
    )
    work = scan_work(scan, Vdev("tank", "root", children=(top,)))
    assert forecast(made, work).estimate.eta == pytest.approx(1, abs=0.5)


def test_bytes_that_were_issued_and_repaired_nothing_do_not_tell_what_is_queued():
    """A resilver may have skipped most of what it counted as issued before it was watched."""
    made, before = ProgressCurve(), 1000 * GIB
    for n in range(100):
        issued = before + n * 60 * MIB
        made.add(ProgressReading(1000.0 + n, n, True, issued, 0.0, GIB + n * 10 * MIB))
    work = Work(issued + 600 * MIB, issued, GIB + 990 * MIB, share=1 / 6, start=900.0)
    assert forecast(made, work).estimate.eta == pytest.approx(10, rel=0.1)


def test_what_ends_within_a_second_is_foretold_to_end_as_that_second_begins():
    """The kernel writes the end in whole seconds, rounded down."""
    made = course([10 * MIB] * 100, processed_share=0.25)
    work = Work(1050 * MIB, 1000 * MIB, 250 * MIB, share=0.25, start=1000.0)
    assert forecast(made, work).estimate.eta == pytest.approx(5, abs=0.1)


@pytest.mark.slow
@rows("seconds", [60, 120, 300])
def test_the_range_is_wide_while_a_load_lasts(seconds):
    before, over = 300, 300 + seconds
    rates = [20 * MIB] * before + [8 * MIB] * seconds

    def width(at: int) -> float:
        found = told(course(rates[:at]), 15_000 * MIB).estimate
        return (found.high - found.low) / found.eta

    assert min(width(over - 20), width(over)) > 1.3 * width(before)


@pytest.mark.slow
@rows("seconds", [60, 120, 300])
def test_the_range_holds_the_end_whether_a_load_lasts_or_is_over(seconds):
    rates = [20 * MIB] * 300 + [8 * MIB] * seconds
    left = 15_000 * MIB - sum(rates)
    found = told(course(rates), 15_000 * MIB).estimate
    half_of_the_time = (20 * MIB + 8 * MIB) / 2
    assert found.low < left / half_of_the_time
    assert found.high > left / (8 * MIB)
    over = told(course(rates + [20 * MIB] * 60), 15_000 * MIB).estimate
    assert over.low < left / (20 * MIB) - 60 < over.high


@rows("total", [0.0, 1.0])
def test_a_scan_that_issued_nothing_of_nothing_has_no_estimate(total):
    assert forecast(course([0.0] * 9), Work(total, 0.0)).estimate.eta is None


def test_two_roundings_make_no_rate():
    """At 12.9T a printed digit is 50 GiB: in a minute nothing measurable has happened."""
    made = ProgressCurve()
    for n in range(92):
        made.add(ProgressReading(1000.0 + n, n, True, 1000 * GIB + (50 * GIB if n > 30 else 0)))
    work = Work(2000 * GIB, 1050 * GIB, start=0.0, resolution=25 * GIB, average=100 * MIB)
    found = forecast(made, work)
    assert found.window is None
    assert found.rate == 100 * MIB
    assert "zpool averages 100M/s" in found.estimate.reason
    assert found.estimate.eta == pytest.approx(950 * 1024 / 100, rel=0.01)


def test_beyond_the_total_nobody_knows_what_remains():
    found = told(course([MIB] * 50), 10 * MIB)
    assert found.estimate.eta is None
    assert found.estimate.reason == "past 100 %: remaining unknown"


def test_a_wait_between_bursts_leaves_as_much_to_do_as_there_is():
    """Between two bursts the fitted line is ahead of the bytes issued."""
    burst = [100 * MIB, *[0.0] * 11]
    made = course(burst * 5)
    for _ in range(7):
        made.add(ProgressReading(made.last.t + 1, made.last.clock + 1, True, made.last.issued, 0.0))
    found = told(made, 510 * MIB)
    assert found.estimate.eta is not None
    assert found.estimate.eta >= 10 * MIB / (100 * MIB / 12)


def test_a_rebuild_that_has_issued_a_whole_metaslab_has_hardly_begun():
    """Seen on a dRAID: everything was issued within a second, and rebuilt in the next 30 s."""
    made = ProgressCurve()
    made.add(ProgressReading(1000.0, 0.0, True, 0.0))
    for n in range(1, 21):
        made.add(ProgressReading(1000.0 + n, n, True, 300 * MIB, 500 * MIB, n * 4 * MIB))
    work = Work(360 * MIB, 300 * MIB, 80 * MIB, share=1 / 3, sure=True, start=1000.0)
    left = 120 * MIB - 80 * MIB
    assert forecast(made, work).estimate.eta == pytest.approx(left / (4 * MIB), rel=0.2)


def test_a_rebuild_first_seen_between_two_metaslabs_is_measured_once():
    made = ProgressCurve()
    for n in range(200):
        issued = (450 if n < 150 else 500) * MIB
        made.add(ProgressReading(1000.0 + n, n, True, issued, issued, (200 + n) * MIB))
        work = Work(1000 * MIB, issued, (200 + n) * MIB, share=1.0, sure=True, start=100.0)
        if n >= 30:
            left = 1000 - 200 - n
            assert forecast(made, work).estimate.eta == pytest.approx(left, rel=0.1), n


def test_one_sample_has_only_zpools_average():
    single = course([])
    assert forecast(single, Work(100.0, 10.0)).estimate.reason == "no estimate yet: 1 sample"
    found = forecast(single, Work(100 * MIB, 0.0, average=MIB))
    assert found.estimate.eta == pytest.approx(100, abs=5)
    assert found.estimate.reason == "zpool averages 1M/s over this pass (1 sample)"


def test_the_metadata_walk_before_the_first_byte_is_no_part_of_the_speed():
    walked = course([0.0] * 600 + [50 * MIB] * 60)
    assert told(walked, 6000 * MIB).estimate.eta == pytest.approx(60, rel=0.1)


def test_nothing_that_moves_has_no_wild_estimate():
    still = ProgressCurve()
    for n in range(100):
        still.add(ProgressReading(1000.0 + n, n, True, 5 * MIB))
    found = forecast(still, Work(100 * MIB, 5 * MIB))
    assert found.estimate.eta is None
    assert "no progress" in found.estimate.reason


@pytest.mark.slow
@given(
    st.lists(st.floats(0, 5e9), min_size=0, max_size=80),
    st.floats(1, 1e16),
    st.floats(0, 2),
    st.sampled_from([0.5, 1.0, 7.0, 60.0]),
    st.floats(0, 1e10),
)
@example([sys.float_info.min, 0.0], 1.0, 0.0, 7.0, 0.0)
@example([*[sys.float_info.min] * 40, *[5e9] * 40], 1e16, 0.0, 60.0, 0.0)
def test_no_course_gives_a_senseless_estimate(rates, total, share, step, resolution):
    made = course(rates, share, step)
    last = made.points[-1]
    work = Work(total, last.issued, last.processed, start=1000.0, resolution=resolution)
    found = forecast(made, work)
    assert found.rate is None or (found.rate > 0 and math.isfinite(found.rate))
    estimate = found.estimate
    if estimate.eta is None:
        assert estimate.low is None
        assert estimate.high is None
    else:
        assert 0 <= estimate.low <= estimate.eta <= estimate.high < math.inf
    assert estimate.reason


@pytest.mark.slow
def test_made_up_scans_of_every_kind_are_told_better_than_zpool_tells_them():
    rows = []
    for plan in plans(seed=3):
        short = plan.seconds < 400
        rows += judge(plan.kind, samples(replace(plan, interval=2.0), 3)) if short else []
    assert {row.name for row in rows} >= set(KINDS)
    text = "\n".join(table(rows))
    ours = sum(sum(r.ours) / len(r.ours) for r in rows)
    zpool = sum(sum(r.zpool) / len(r.zpool) for r in rows)
    assert ours < 0.8 * zpool, text
    covered = [c for row in rows for c in row.covered]
    assert sum(covered) / len(covered) >= 0.8, text


@pytest.mark.slow
@rows("exact", [True, False])
def test_hours_of_a_large_pool_in_either_form(exact):
    plan = Plan("steady", 3 * 3600, 400 * MIB, interval=60.0, walk=0.05, exact=exact)
    (row,) = judge("long", samples(plan, 1))
    assert sum(row.ours) / len(row.ours) < 0.1
    assert verdict([row])


def test_bytes_skipped_during_the_walk_are_no_speed():
    """Before 2.2 a resilver of one vdev of four counts the data of the others as issued at once."""
    made = ProgressCurve()
    for n in range(200):
        issued = 0.0 if n < 5 else 7500 * MIB + (n - 5) * 5 * MIB
        repaired = max(0, n - 5) * 1.25 * MIB
        made.add(ProgressReading(1000.0 + n, n, True, issued, min(n, 6) * 2000 * MIB, repaired))
    last = made.points[-1]
    left = (10_000 * MIB - last.issued) / (5 * MIB)
    for share in (0.25, None):
        work = Work(10_000 * MIB, last.issued, last.processed, share, start=1000.0, walked=True)
        assert forecast(made, work).estimate.eta == pytest.approx(left, rel=0.05)


def test_a_little_past_the_total_it_is_about_to_end():
    found = told(course([10 * MIB] * 100), 998 * MIB)
    assert found.estimate.eta == pytest.approx(0, abs=5)


EMPTY = [
    {"text": ""},
    {"text": "no pools available\n"},
    {"text": "cannot open 'tank': no such pool\n"},
    {"text": "", "status": {"pools": {}}},
    {"text": "", "status": {}},
    {"text": "", "status": None},
    {"libzfs": None},
]


@pytest.mark.slow
@pytest.mark.parametrize("empty", EMPTY)
def test_a_recording_goes_on_after_the_pool_was_exported(empty, tmp_path):
    raws = [
        {"t": START + n, "status": {"pools": {"tank": {"name": "tank"} | _status(n)}}}
        for n in range(100)
    ]
    raws[40:60] = [{"t": START + n, **empty} for n in range(40, 60)]
    path = tmp_path / "exported.jsonl"
    path.write_text("".join(f"{json.dumps(raw)}\n" for raw in raws))
    ((_, samples),) = recordings(path)
    assert sum(isinstance(sample, Sample) for sample in samples) == 80
    (row,) = judge("exported", samples)
    assert len(row.ours) == 69


def _status(second: int) -> dict[str, object]:
    over = second >= 98
    scan = {
        "function": "SCRUB",
        "state": "FINISHED" if over else "SCANNING",
        "start_time": START,
        "end_time": START + 98 if over else 0,
        "to_examine": 980 * MIB,
        "examined": 980 * MIB,
        "issued": min(98, second) * 10 * MIB,
        "pass_start": START,
        "issued_bytes_per_scan": second * 10 * MIB,
    }
    root = {"name": "tank", "vdev_type": "root", "guid": "1", "state": "ONLINE", "vdevs": {}}
    return {"state": "ONLINE", "pool_guid": "1", "scan_stats": scan, "vdevs": {"tank": root}}


@pytest.mark.slow
@rows("interval", [10, 60])
def test_the_nights_of_a_long_scan_are_told_however_often_it_was_sampled(interval):
    """At a sample every ten seconds, all but the last hours was forgotten: twice the true time."""
    done, left, made, now = 0.0, 3.5e12, ProgressCurve(), 36 * 3600
    for t in range(0, now, interval):
        made.add(ProgressReading(START + t, t, True, done))
        done += by_hour(t) * interval
    work, end = Work(done + left, done, start=START), now
    while left > 0:
        left, end = left - by_hour(end) * 60, end + 60
    assert forecast(made, work).estimate.eta == pytest.approx(end - now, rel=0.1)


def by_hour(t: float) -> float:
    """Return bytes/s, faster at night."""
    return 50e6 if 7 <= (START + t) % 86400 / 3600 < 22 else 125e6


SECONDS = [float(n) for n in range(80)]
ISSUED = [120.0 * (1 + n // 16) for n in range(80)]
"""Bytes issued: 120 at once every 16 seconds, first at 0."""


def test_between_bursts_the_devices_work_evenly():
    level = evened_out(SECONDS, ISSUED)
    speeds = [b - a for a, b in pairwise(level[16:])]
    assert speeds == pytest.approx([120 / 16] * len(speeds))


def test_what_was_issued_before_a_burst_is_done_when_it_begins():
    level = evened_out(SECONDS, ISSUED)
    assert level[31] == ISSUED[31]
    assert all(done <= issued for done, issued in zip(level, ISSUED, strict=True))


def test_a_burst_that_takes_longer_than_usual_is_done_but_no_more():
    xs = [*SECONDS, *(80.0 + n for n in range(60))]
    level = evened_out(xs, [*ISSUED, *[ISSUED[-1]] * 60])
    assert level[-1] == ISSUED[-1]


def test_of_two_bursts_nobody_knows_the_period():
    assert evened_out(SECONDS[:34], ISSUED[:34]) is None


@rows("still", [8, 20, 90])
def test_a_scan_that_has_stopped_does_not_advance_in_bursts(still):
    for before in ([10 * MIB] * 30, [10 * MIB] * 30 + [0.0] * 3 + [10 * MIB] * 9):
        found = told(course([*before, *[0.0] * still]), 1000 * MIB, average=MIB).estimate
        assert f"no progress for {units.duration(still)}" in found.reason


@rows("waited", [0, 7, 14])
def test_between_bursts_a_scan_advances_in_bursts(waited):
    for start in ([120 * MIB, *[0.0] * 15] * 2, [10 * MIB] * 20 + [0.0] * 15):
        found = told(course([*start, MIB, *[0.0] * waited]), 1000 * MIB, average=MIB).estimate
        assert "it advances in bursts" in found.reason


@rows("speed", [(7, 7, 7, 7), (7, 2, 20, 5)])
def test_levels_without_a_standstill_are_no_bursts(speed):
    issued = [0.0]
    for n in range(79):
        issued.append(issued[-1] + speed[n // 20])
    assert evened_out(SECONDS, issued) is None


def test_the_longest_standstill():
    assert longest_still(SECONDS, ISSUED) == 15
    assert longest_still([0.0, 1.0], [0.0, 1.0]) == 0


def steps_of_an_autopilot(seed: int, seconds: int = 1200) -> list[float]:
    """Return the level at each second, holding 40 ms with applications that come and go."""
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
    assert evened_out([float(n) for n in range(len(issued))], issued) is None
    made, half = ProgressCurve(), len(levels) // 2
    for n in range(half):
        made.add(ProgressReading(1000.0 + n, n, True, issued[n], issued[n]))
    found = forecast(made, Work(issued[-1], issued[half - 1], start=1000.0)).estimate
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
    level = evened_out(xs, issued)
    steps = [b - a for a, b in pairwise(issued)]
    begun = [n for n in range(1, len(steps)) if steps[n] > 0 >= steps[n - 1]]
    assert [level[n] for n in begun] == [issued[n] for n in begun]
    speeds = [b - a for a, b in pairwise(level[begun[0] : begun[-1]])]
    assert min(speeds) > 0


def test_hours_of_walking_between_what_is_issued_are_no_burst():
    made, issued, scanned = ProgressCurve(), 0.0, 0.0
    for n in range(600):
        walking = n // 100 in (1, 3)
        issued, scanned = issued + 1e8 * (not walking), scanned + 5e8 * walking
        made.add(ProgressReading(60.0 * n, 60.0 * n, True, issued, scanned))
    work = Work(2 * issued, issued, start=0.0, walked=True, average=1e6, to_scan=scanned)
    found = forecast(made, work).estimate
    assert "bursts" not in found.reason
    assert found.low < 400 * 60 < found.high


def test_the_rate_is_of_bytes_also_where_what_is_in_memory_says_what_they_cost():
    made, issued, scanned = ProgressCurve(), 0.0, 0.0
    for n in range(400):
        walking = n // 50 % 2 == 0
        issued, scanned = issued + 6e9 * (not walking), scanned + 5e9 * walking
        made.add(ProgressReading(60.0 * n, 60.0 * n, True, issued, scanned))
    work = Work(2 * issued, issued, start=0.0, alternates=True, to_scan=2 * scanned)
    assert forecast(made, work).rate == pytest.approx(5e7, rel=0.2)


WALK, ISSUE, TURN = 100.0, 10.0, 1000.0
TOTAL = 20_000.0


def by_turns(seconds: float, step: float = 2.0) -> ProgressCurve:
    """Walk 1000 bytes in 10 s, then issue them in 100 s, and so on."""
    made, scanned, issued, t = ProgressCurve(), 0.0, 0.0, 0.0
    while t < seconds:
        made.add(ProgressReading(1000.0 + t, t, True, issued, scanned))
        if scanned - issued >= TURN or (issued % TURN and scanned > issued):
            issued = min(scanned, issued + ISSUE * step)
        else:
            scanned += WALK * step
        t += step
    return made


def test_the_estimate_is_the_same_wherever_in_a_turn():
    for seconds in range(600, 720, 10):
        made = by_turns(seconds)
        last = made.points[-1]
        work = Work(TOTAL, last.issued, start=0.0, alternates=True, to_scan=TOTAL)
        left = (TOTAL - last.scanned) / WALK + (TOTAL - last.issued) / ISSUE
        assert forecast(made, work).estimate.eta == pytest.approx(left, rel=0.05)
