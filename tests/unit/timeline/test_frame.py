"""Data joined to a frame, devices that a suspended pool waits for, and facts of a scan."""

from __future__ import annotations

from datetime import datetime
from math import inf

from tests.factory import frame, mirror_pool, view
from tests.records import replace
from tests.table import rows
from tests.ui.drawn import LOOK, text
from tests.unit.timeline.following import T, resilver, sample, watched
from zconsole import units
from zconsole.diagnosis.device_errors.faults import Deltas, DeviceFault
from zconsole.output.text import status_report
from zconsole.pool.health import Health
from zconsole.pool.model import Activity, Event, SampleFailure, Scan
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import (
    ActivityView,
    Additions,
    Fact,
    result_facts,
    seconds_taken,
    time_taken,
)
from zconsole.ui.panes.scan import scan_lines

JOB = ActivityView(Activity("rebalance", "running"), flag="REBALANCE")


def event(t: float) -> Event:
    return Event(t, "console", f"at {t}")


def test_what_was_done_from_consoles_joins_in_order_and_a_job_at_work_has_a_flag():
    seen = frame(mirror_pool(), events=(event(10), event(30)), flags=("DEMO",))
    full = seen.joined(Additions((JOB, JOB), (event(20),)))
    assert [e.t for e in full.events] == [10, 20, 30]
    assert (full.activities, full.flags) == ((JOB, JOB), ("DEMO", "REBALANCE"))
    assert full.sample is seen.sample


def test_work_without_a_flag_has_a_line_and_leaves_the_events_as_they_are():
    job = ActivityView(Activity("rebalance", "interrupted"))
    seen = frame(mirror_pool(), events=(event(30), event(10)))
    full = seen.joined(Additions((job,)))
    assert (full.activities, full.flags, full.events) == ((job,), (), seen.events)


def test_a_disk_that_was_pulled_by_mistake_is_not_suspected_of_a_bad_cable():
    fault = DeviceFault("1", "sda", Deltas(), last=20.0, flaps=1)
    other = fault._replace(key="2", name="sdb")
    health = Health("ATTENTION", "warning", (fault.unsteady, other.unsteady))
    seen = frame(mirror_pool(), troubles=(fault, other), health=health)
    for until in (20.0, inf):
        full = seen.joined(Additions(pulled={"1": until}))
        assert full.troubles == (other,)
        assert full.health.reasons == (
            "sda: pulled by mistake during a swap",
            "sdb: disconnected, returned in the last hour",
        )
    assert seen.joined(Additions(pulled={"1": 19.0})).health == health, "it left again"


def test_a_frame_with_nothing_to_add_is_the_same():
    seen = frame(mirror_pool(), events=(event(30), event(10)))
    assert seen.joined(Additions()) is seen


GIB = 2**30
NIGHT = "22:00-06:00"


@rows(
    ("at", "fields", "eta", "low", "high"),
    [
        # Two of eight open hours are left: 3 h of work end an hour into the next night.
        ("04:00", {}, 19, 1, 20),
        ("23:00", {}, 3, 1, 4),
        ("12:00", {}, 13, 11, 14),
    ],
)
def test_of_a_scrub_that_is_kept_to_hours_only_these_count(at, fields, eta, low, high):
    lag = "rate rose 5m ago; ETA 2h if it holds"
    told = Estimate(3 * 3600.0, 3600.0, 4 * 3600.0, f"{lag}; checking at 100M/s")
    scan = Scan("scrub", "running", total_bytes=10 * GIB, issued_bytes=GIB, **fields)
    seen = frame(mirror_pool(scan), t=clock_time(at), scans=(view(scan, told, lag=lag),))
    found = seen.joined(Additions(hours=NIGHT)).scan.estimate
    assert found[:3] == (eta * 3600.0, low * 3600.0, high * 3600.0)
    assert found.reason == "with pauses outside 22:00-06:00; checking at 100M/s"
    left = seen.joined(Additions(hours=NIGHT)).scan.left
    assert left == 3 * 3600.0, "a resilver, which is foretold by its rate, keeps to no hours"
    resilver = view(scan._replace(function="resilver"), told)
    assert replace(seen, scans=(resilver,)).joined(Additions(hours=NIGHT)).scan == resilver


def test_a_scrub_that_is_paused_until_its_hours_ends_by_the_rate_it_had():
    t = clock_time("12:00")
    scan = Scan("scrub", "paused", total_bytes=10 * GIB, issued_bytes=4 * GIB, pass_issued=GIB)
    paused = scan._replace(pass_start=t - 9 * 3600, paused_since=t - 6 * 3600, pass_paused=7200.0)
    seen = frame(mirror_pool(paused), t=t, scans=(view(paused, nothing("paused")),))
    found = seen.joined(Additions(hours=NIGHT)).scan.estimate
    assert found.eta == 16 * 3600.0  # 10 h until the hours begin, 6 h at 1 GiB an hour
    assert found.low < found.eta < found.high
    assert seen.joined(Additions(hours=NIGHT)).scan.left is None
    assert found.reason.startswith("with pauses outside 22:00-06:00; it ran at 291K/s")
    assert seen.joined(Additions(flags=("SET",))).scan.estimate == nothing("paused")
    for hardly_begun in ({"pass_issued": 0}, {"pass_issued": 2**16}, {"total_bytes": None}):
        untold = replace(seen, scans=(view(paused._replace(**hardly_begun), nothing("paused")),))
        assert untold.joined(Additions(hours=NIGHT)).scan.estimate == nothing("paused")


def test_a_scrub_that_is_paused_until_its_hours_keeps_the_range_it_had():
    """The widest range let 4 h of work end 1h50m after the hours began."""
    noon = clock_time("12:00") + 60 * 86400 - T
    scan = resilver(0, noon - 6 * 3600, function="scrub", total_bytes=10 * GIB)
    course = [
        sample(noon - left, scan._replace(issued_bytes=int(GIB * (6 - left / 3600))))
        for left in range(6 * 3600, 0, -60)
    ]
    timeline = watched(*course)
    (ran,) = timeline.frame.scans
    paused = ran.scan._replace(state="paused", paused_since=T + noon - 30)
    waits = timeline.push(sample(noon, paused)).joined(Additions(hours=NIGHT)).scan.estimate
    until_hours = 10 * 3600.0
    assert waits[:3] == tuple(until_hours + each for each in ran.estimate[:3])
    assert waits.reason == f"with pauses outside 22:00-06:00; until paused, {ran.estimate.reason}"
    assert timeline.push(sample(noon + 60, ran.scan)).scan.until_paused is None


def clock_time(at: str) -> float:
    """Return a time at which this machine's clock shows ``at``."""
    return datetime.fromisoformat(f"2026-11-25T{at}").timestamp()


HUNG = SampleFailure("tank", T, T, "no answer", kstat="SUSPENDED")


def hung(sda: float | None, sdb: float | None):
    """Return a pool that does not answer, with the times at which its disks left."""
    base = frame(mirror_pool(), T)
    since = {"sda": sda, "sdb": sdb}
    rows = tuple(r._replace(missing_since=since.get(r.vdev.name)) for r in base.rows)
    return replace(base, rows=rows, failure=HUNG)


def named(shown):
    return [row.vdev.name for row in shown.missing_devices]


def test_the_disk_that_left_last_suspended_the_pool_not_one_that_is_away_for_long():
    assert named(hung(T - 7200, T - 5)) == ["sdb"]


def test_disks_that_leave_together_are_all_waited_for():
    assert named(hung(T - 20, T - 5)) == ["sda", "sdb"]


def test_nothing_is_named_where_nothing_was_seen_to_leave():
    assert named(hung(None, None)) == []


def test_a_pool_that_moves_waits_for_nothing():
    assert named(replace(hung(None, T - 5), failure=None)) == []


def test_of_a_pool_that_still_answers_all_that_are_away_are_named():
    pool = mirror_pool(state="SUSPENDED")
    top = pool.root.children[0]
    lost = top.children[1]._replace(state="UNAVAIL")
    root = pool.root._replace(children=(top._replace(children=(top.children[0], lost)),))
    assert named(frame(replace(pool, root=root), T)) == ["sdb"]


@rows(
    ("function", "word"),
    [("resilver", "resilvered"), ("rebuild", "rebuilt"), ("scrub", "repaired")],
)
@rows("state", ["running", "finished"])
def test_text_and_screen_have_one_word_for_what_a_scan_wrote(function, word, state):
    ended = {"end": T - 60, "duration": 3600.0} if state == "finished" else {}
    scan = Scan(function, state, total_bytes=9 * 2**30, processed_bytes=5 * 2**30, **ended)
    shown = frame(mirror_pool(scan), t=T, scans=(view(scan),))
    assert f"{word} 5G" in status_report(shown)
    assert f"{word} 5G" in text(scan_lines(shown, LOOK, 120))


def test_only_errors_that_there_are_are_bad():
    def found(errors: int | None) -> list[Fact]:
        return list(result_facts(Scan("scrub", "finished", errors=errors), units.size))

    assert found(None) == []
    assert found(0) == [Fact("errors", "0")]
    assert found(2) == [Fact("errors", "2", "error")]


def test_an_end_without_a_printed_duration_has_the_seconds_since_its_start():
    assert seconds_taken(Scan("scrub", "canceled", start=10.0, end=70.0)) == 60.0
    assert seconds_taken(Scan("scrub", "finished", start=10.0, end=70.0, duration=55.0)) == 55.0
    assert seconds_taken(Scan("scrub", "running", start=10.0)) is None


@rows(
    ("fields", "told"),
    [
        ({"state": "finished", "end": 36_000.0}, "took 10h00m"),
        ({"state": "finished", "end": 36_000.0, "pass_paused": 0.0}, "took 10h00m"),
        ({"state": "finished", "end": 36_000.0, "pass_paused": 18_000.0}, "ran 5h00m"),
        ({"state": "canceled", "end": 36_000.0, "paused_since": 28_800.0}, "ran 8h00m"),
        (
            {"state": "canceled", "end": 36_000.0, "pass_paused": 3600.0, "paused_since": 28_800.0},
            "ran 7h00m",
        ),
        ({"state": "paused", "pass_paused": 3600.0, "paused_since": 28_800.0}, ""),
    ],
)
def test_a_scan_that_was_paused_did_not_run_all_the_time(fields, told):
    """A comparison with the next scan leaves pauses out: the same scan had two durations."""
    assert time_taken(Scan("scrub", start=0.0, **fields), "took") == told
