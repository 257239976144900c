from __future__ import annotations

import pytest

from tests.factory import frame, mirror_pool, noisy_pool, view
from tests.records import replace
from tests.table import rows
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.health import SpareProblem, unreachable
from zconsole.pool.model import Activity, ErrorCounters, Pool, SampleFailure, Scan, Vdev
from zconsole.pool.scan_outcome import GRACE
from zconsole.timeline.alerts.rules import ERRORS_QUIET, QUIET, UNREACHABLE_AFTER, AlertRules
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.timeline.frame import ActivityView, Frame
from zconsole.timeline.scrubs import ScrubAge

RUNNING = Scan("resilver", "running", start=500.0)
FINISHED = Scan("resilver", "finished", start=500.0, end=900.0, errors=0)


def running(t, eta=3600.0, **fields):
    estimate = Estimate(eta, eta / 2, eta * 2, "issuing")
    pool = mirror_pool(RUNNING)
    return frame(pool, t, scans=(view(RUNNING, estimate, **fields),))


def kinds(alerts):
    return [alert.kind for alert in alerts]


def degraded(scan):
    pool = mirror_pool(scan, state="DEGRADED")
    top = pool.root.children[0]
    bad = replace(top.children[1], state="FAULTED")
    top = replace(top, children=(top.children[0], bad))
    return replace(pool, root=replace(pool.root, children=(top,)))


def test_the_end_of_a_good_scan_is_said_once_and_at_once():
    vigil = AlertRules()
    assert vigil.look([running(1000.0)]) == ()
    (alert,) = vigil.look([frame(mirror_pool(FINISHED), 1001.0)])
    assert (alert.kind, alert.pool, alert.severity) == ("finished", "tank", "notice")
    assert vigil.look([frame(mirror_pool(FINISHED), 1002.0)]) == ()


def test_a_good_end_names_the_device_that_collects_errors():
    vigil = Only("finished", "not-restored")
    vigil.look([running(1000.0)])
    (alert,) = vigil.look([frame(noisy_pool(FINISHED), 1001.0)])
    assert (alert.kind, alert.severity) == ("finished", "notice")
    assert alert.text.endswith("finished, the pool is safe; check sda: 12 checksum errors")


def test_a_lasting_condition_passes_and_what_happened_does_not():
    """ "no redundancy left" was shown for half a minute after the disk had come back."""
    vigil = AlertRules()
    vigil.look([running(1000.0)])
    found = vigil.look([frame(degraded(RUNNING), 1001.0)])
    assert not any(vigil.has_passed(alert) for alert in found)
    found += vigil.look([frame(mirror_pool(FINISHED), 1002.0)])
    vigil.look([frame(mirror_pool(FINISHED), 1003.0)])
    said = {alert.kind: vigil.has_passed(alert) for alert in found}
    assert said == {"device-error": True, "no-redundancy": True, "finished": False}


def test_a_scan_that_was_over_before_the_watch_is_no_news():
    vigil = AlertRules()
    assert vigil.look([frame(mirror_pool(FINISHED), 1.0)]) == ()
    assert vigil.look([frame(mirror_pool(FINISHED), 2.0)]) == ()


def test_a_scan_that_a_rewound_pool_knows_nothing_of_is_not_called_finished():
    older = replace(FINISHED, function="scrub", start=100.0, end=400.0)
    for left in ((), (older,), (replace(older, function="resilver"),)):
        vigil = AlertRules()
        vigil.look([running(1000.0, key="scan:resilver:")])
        scans = tuple(view(scan, key=f"scan:{scan.function}:") for scan in left)
        for t in (1001.0, 1001.0 + GRACE, 1100.0):
            assert vigil.look([frame(mirror_pool(*left), t, scans=scans)]) == ()


def test_an_end_is_told_of_a_scan_whose_vdev_or_start_is_shown_otherwise_by_then():
    sequential = replace(RUNNING, function="rebuild", vdev="replacing-0")
    done = replace(FINISHED, function="rebuild", vdev="sdb")
    for scan, last in ((sequential, done), (RUNNING, replace(FINISHED, start=None))):
        vigil = AlertRules()
        vigil.look([frame(mirror_pool(scan), 1000.0, scans=(view(scan),))])
        shown = frame(mirror_pool(last), 1001.0, scans=(view(last),))
        assert kinds(vigil.look([shown])) == ["finished"]


def test_of_another_pool_with_the_same_name_nothing_is_remembered():
    vigil = AlertRules()
    vigil.look([running(1000.0)])
    shown = frame(replace(mirror_pool(FINISHED), guid="another"), 1001.0, scans=(view(FINISHED),))
    assert vigil.look([shown]) == ()


def test_an_end_without_redundancy_is_told_after_it_had_time_to_settle():
    vigil = AlertRules()
    vigil.look([running(1000.0)])
    assert "not-restored" not in kinds(vigil.look([frame(degraded(FINISHED), 1001.0)]))
    late = vigil.look([frame(degraded(FINISHED), 1001.0 + GRACE, over_since=1001.0)])
    assert kinds(late) == ["not-restored"]
    assert late[0].severity == "error"


class Only:
    """The alert rules, filtered to the kinds that a test checks."""

    def __init__(self, *wanted):
        self.rules, self.wanted = AlertRules(), wanted

    def look(self, frames):
        return tuple(alert for alert in self.rules.look(frames) if alert.kind in self.wanted)


ENDS = ("finished", "not-restored")


def left_behind(pool):
    top = pool.root.children[0]
    pair = replace(top, name="replacing-0", kind="replacing")
    return replace(pool, root=replace(pool.root, children=(replace(top, children=(pair,)),)))


def test_an_end_that_left_the_replaced_device_behind_is_not_called_safe_at_first():
    """Its state is ONLINE; only what remains after a while shows that nothing was restored."""
    pool = left_behind(mirror_pool(replace(FINISHED, end=1000.5)))
    vigil = Only(*ENDS)
    vigil.look([running(1000.0)])
    assert vigil.look([frame(pool, 1001.0)]) == ()
    assert vigil.look([frame(pool, 1001.0 + GRACE / 2, over_since=1001.0)]) == ()
    assert kinds(vigil.look([frame(pool, 1001.0 + GRACE, over_since=1001.0)])) == ["not-restored"]


def test_a_scrub_after_a_resilver_that_restored_nothing_does_not_make_it_safe():
    scrub = Scan("scrub", "finished", start=1001.0, end=1100.0, errors=0)
    vigil = Only(*ENDS)
    vigil.look([running(1000.0)])
    vigil.look([frame(left_behind(mirror_pool(replace(scrub, state="running"))), 1001.0)])
    vigil.look([frame(left_behind(mirror_pool(scrub)), 1101.0)])
    alerts = vigil.look([frame(left_behind(mirror_pool(scrub)), 1101.0 + GRACE, over_since=1101.0)])
    assert kinds(alerts) == ["not-restored"]
    assert "replacing-0 still there and no resilver runs" in alerts[0].text


def test_what_is_left_is_not_safe_even_where_health_finds_nothing_wrong():
    vigil, pool = Only(*ENDS), left_behind(mirror_pool())
    vigil.look([running(1000.0)])
    vigil.look([frame(pool, 1001.0)])
    (alert,) = vigil.look([frame(pool, 1001.0 + GRACE, over_since=1001.0)])
    assert alert.kind == "not-restored"
    assert alert.text.endswith(": the device to replace is still in the pool")


def test_an_end_whose_replaced_device_goes_a_moment_later_is_good():
    pool = mirror_pool(replace(FINISHED, end=1000.5))
    vigil = Only(*ENDS)
    vigil.look([running(1000.0)])
    assert vigil.look([frame(left_behind(pool), 1001.0)]) == ()
    assert kinds(vigil.look([frame(pool, 1002.0)])) == ["finished"]


def test_a_follow_on_pass_is_no_end():
    vigil = AlertRules()
    vigil.look([running(1000.0)])
    vigil.look([frame(degraded(FINISHED), 1001.0)])
    vigil.look([running(1005.0)])
    assert "not-restored" not in kinds(vigil.look([running(1001.0 + 2 * GRACE)]))


def test_a_stall_is_said_once_while_it_lasts_and_again_after_it_had_gone():
    vigil = AlertRules(stalled_after=300.0)
    assert vigil.look([running(1000.0, stalled=200.0)]) == ()
    assert kinds(vigil.look([running(1100.0, stalled=300.0)])) == ["stalled"]
    assert vigil.look([running(1100.0 + QUIET, stalled=330.0)]) == ()
    vigil.look([running(1200.0)])
    assert kinds(vigil.look([running(1600.0, stalled=300.0)])) == ["stalled"]


def test_a_flicker_shorter_than_half_a_minute_is_not_told_twice():
    vigil = AlertRules(stalled_after=300.0)
    vigil.look([running(1000.0, stalled=300.0)])
    vigil.look([running(1010.0)])
    assert vigil.look([running(1020.0, stalled=300.0)]) == ()


def test_an_eta_that_moves_by_more_than_its_share_is_told_and_becomes_the_new_promise():
    vigil = AlertRules(slip=0.25)
    vigil.look([running(1000.0)])
    vigil.look([running(1060.0, 3600.0)])
    assert vigil.look([running(1120.0, 3600.0 + 800)]) == ()
    assert kinds(vigil.look([running(1180.0, 3600.0 + 900)])) == ["eta-slipped"]
    assert vigil.look([running(1240.0, 3600.0 + 900)]) == ()


@rows("leap", [3600.0, -3600.0])
def test_a_clock_that_is_set_makes_no_end_slip_and_hides_none(leap):
    vigil = AlertRules()
    late = []
    for second in range(0, 400, 20):
        slips = 1500.0 if second >= 300 else 0.0
        one = running(1000.0 + second, 3600.0 - second + slips)
        leapt = replace(one.sample, t=one.sample.t + leap) if second >= 100 else one.sample
        late += [(second, each.kind) for each in vigil.look([replace(one, sample=leapt)])]
    assert late == [(300, "eta-slipped")]


@rows("steady", [True, False])
def test_what_is_gone_and_comes_again_is_sent_again_though_the_clock_was_set_back(steady):
    vigil = AlertRules()
    told = []
    for second, stalled in ((0, 700.0), (40, None), (80, None), (120, 700.0)):
        one = running(5000.0 + second, stalled=stalled)
        t = 5000.0 + second - (3600.0 if second else 0.0)
        clock = one.sample.clock if steady else t
        told += vigil.look([replace(one, sample=replace(one.sample, t=t, clock=clock))])
    assert kinds(told) == ["stalled", "stalled"]


def test_the_first_minutes_guess_is_no_promise():
    vigil = AlertRules()
    vigil.look([running(1000.0, 60.0)])
    assert vigil.look([running(1030.0, 7200.0)]) == ()


def test_a_restart_is_told_whether_or_not_the_past_was_known():
    vigil = AlertRules()
    vigil.look([running(1000.0, restarts=None)])
    (alert,) = vigil.look(
        [running(1001.0, restarts=1, notes=("restarted 12:03 after sdc came back",))]
    )
    assert alert.kind == "restarted"
    assert "sdc came back" in alert.text
    assert vigil.look([running(1002.0, restarts=1)]) == ()


def test_restarts_of_before_the_watch_are_no_news():
    vigil = AlertRules()
    assert vigil.look([running(1000.0, restarts=3)]) == ()
    assert vigil.look([running(1001.0, restarts=3)]) == ()


def with_errors(count, t):
    pool = mirror_pool()
    top = pool.root.children[0]
    sda = replace(top.children[0], errors=ErrorCounters(0, 0, count))
    top = replace(top, children=(sda, top.children[1]))
    root = replace(pool.root, children=(top,))
    return frame(replace(pool, root=root), t)


def test_new_device_errors_are_told_old_ones_are_not_and_a_trickle_only_once():
    vigil = AlertRules()
    assert vigil.look([with_errors(5, 1000.0)]) == ()
    (alert,) = vigil.look([with_errors(7, 1001.0)])
    assert alert.kind == "device-error"
    assert "sda: 2 new errors" in alert.text
    assert vigil.look([with_errors(8, 1100.0)]) == ()
    assert vigil.look([with_errors(0, 1200.0)]) == ()
    assert kinds(vigil.look([with_errors(1, 1101.0 + ERRORS_QUIET)])) == ["device-error"]


def test_a_device_that_goes_is_told_though_it_counted_no_error_and_redundancy_is_left():
    vigil, good, bad = Only("device-error"), mirror_pool(FINISHED), degraded(FINISHED)
    assert vigil.look([frame(good, 2.0)]) == ()
    (alert,) = vigil.look([frame(bad, 3.0)])
    assert (alert.severity, alert.text) == ("error", "sdb is FAULTED now")
    assert vigil.look([frame(bad, 4.0)]) == ()
    vigil.look([frame(good, 5.0)])
    assert vigil.look([frame(bad, 6.0)]) == ()
    vigil.look([frame(good, 7.0 + ERRORS_QUIET)])
    assert kinds(vigil.look([frame(bad, 8.0 + ERRORS_QUIET)])) == ["device-error"]


def test_a_device_put_offline_is_told_to_nobody():
    vigil, pool = (
        Only("device-error"),
        mirror_pool(FINISHED),
    )
    top = pool.root.children[0]
    off = replace(top, children=(top.children[0], replace(top.children[1], state="OFFLINE")))
    vigil.look([frame(pool, 1.0)])
    assert vigil.look([frame(replace(pool, root=replace(pool.root, children=(off,))), 2.0)]) == ()


def test_no_redundancy_left_is_told_of_vdevs_that_should_have_some():
    assert kinds(Only("no-redundancy").look([frame(degraded(RUNNING), 1.0)])) == ["no-redundancy"]
    assert AlertRules().look([frame(mirror_pool(), 1.0)]) == ()


def test_a_suspended_pool_is_told_though_it_gives_no_sample():
    dead = frame(mirror_pool(), 1.0, problem="zpool would hang", kstat="SUSPENDED")
    vigil = AlertRules()
    assert kinds(vigil.look([dead])) == ["suspended"]
    assert vigil.look([dead]) == ()


def standing():
    """Return frames of each lasting condition, by kind."""
    full = frame(mirror_pool())
    stuck = ActivityView(Activity("removal", "running", "mirror-1"), None, nothing(""), 700.0)
    return {
        "no-redundancy": frame(degraded(RUNNING)),
        "device-error": frame(degraded(RUNNING)),
        "data-errors": frame(replace(mirror_pool(), error_count=2)),
        "free-floor": replace(full, balance=replace(full.balance, target_fill=0.99)),
        "scrub-overdue": overdue(1000.0),
        "spare": replace(full, spares=(IDLE,)),
        "stalled": replace(full, activities=(stuck,)),
        "unavailable": frame(replace(mirror_pool(), state="UNAVAIL")),
        "suspended": frame(replace(mirror_pool(), suspension="ERRORS")),
    }


def at(shown, clock, **fields):
    return replace(shown, t=clock, clock=clock, **fields)


def silent(shown, clock, **fields):
    """Return the same pool without a sample since second 0."""
    return replace(at(shown, 0.0), problem="no answer", stale_seconds=clock, **fields)


@rows("kind", lambda: list(standing()))
@rows("every", [1.0, 60.0])
@rows("lost", [1, 2, 40])
@pytest.mark.slow
def test_a_condition_that_lasts_is_told_once_though_samples_are_missed(kind, every, lost):
    shown, vigil, told = standing()[kind], Only(kind), []
    for turn in range(6 * (lost + 1)):
        clock = 1000.0 + 60.0 + every * turn
        missed = turn % (lost + 1) != 0
        told += vigil.look([silent(shown, clock) if missed else at(shown, clock)])
        if kind == "spare" and not turn:
            told += vigil.look([at(shown, clock - 60.0), at(shown, clock)])
    assert kinds(told) == [kind]


@rows("kind", lambda: list(standing()))
@rows("missed", [(), (1100.0,), (1300.0,), (2900.0,), (1100.0, 1300.0, 2900.0)])
def test_what_was_away_is_told_again_though_samples_were_missed_before_and_after(kind, missed):
    shown, well = standing()[kind], frame(mirror_pool(FINISHED))
    seen = {1000.0: shown, 1070.0: shown, 1200.0: well, 2800.0: well, 3000.0: shown, 3070.0: shown}
    vigil, told = Only(kind), []
    for clock in sorted((*seen, *missed)):
        before = shown if clock < 1200.0 else well
        told += vigil.look([at(seen[clock], clock) if clock in seen else silent(before, clock)])
    assert kinds(told) == [kind, kind]


@rows("word", ["UNAVAIL", "FAULTED", "SUSPENDED"])
def test_a_lost_pool_is_told_once_whether_it_is_read_or_not(word):
    kind = "suspended" if word == "SUSPENDED" else "unavailable"
    gated, read = mirror_pool(), replace(mirror_pool(), state=word)
    if word == "SUSPENDED":
        read = replace(mirror_pool(), suspension="ERRORS")
    for first in (frame(mirror_pool()), None):
        vigil = AlertRules()
        if first:
            assert vigil.look([at(first, 0.0)]) == ()
        (alert,) = vigil.look([lost(gated, 1.0, word)])
        assert (alert.kind, alert.severity, alert.t) == (kind, "error", 1.0)
        assert word in alert.text
        for clock in (2.0, 1000.0, 5000.0):
            assert vigil.look([lost(gated, clock, word)]) == ()
        assert vigil.look([at(frame(read), 5001.0)]) == ()
    assert kinds(AlertRules().look([frame(read)])) == [kind]


def lost(pool, clock, word):
    why = f"the pool is {word}: zpool would hang"
    shown = silent(frame(pool), clock)
    return replace(
        shown,
        failure=shown.failure._replace(kstat=word, text=why),
        health=unreachable(shown.failure._replace(kstat=word, text=why), clock),
    )


@rows("fields", [{}, {"kstat": "ONLINE"}])
def test_a_pool_that_gives_no_sample_for_minutes_is_told_once(fields):
    vigil, told = AlertRules(), []
    assert vigil.look([at(frame(mirror_pool()), 0.0)]) == ()
    for clock in range(60, 7200, 60):
        told += vigil.look([silent(frame(mirror_pool()), float(clock), **fields)])
    (alert,) = told
    assert (alert.kind, alert.severity) == ("unreachable", "error")
    assert alert.t == 60.0 + UNREACHABLE_AFTER
    assert alert.text == "no sample for 6m00s: no answer"
    assert vigil.look([at(frame(mirror_pool()), 7200.0)]) == ()


def test_a_pool_that_was_exported_is_told_of_by_nobody():
    vigil = AlertRules()
    assert vigil.look([at(frame(mirror_pool()), 0.0)]) == ()
    for clock in range(60, 7200, 60):
        assert vigil.look([silent(frame(mirror_pool()), float(clock), absent=True)]) == ()


def test_a_disk_that_drops_again_soon_after_it_was_back_is_told_again():
    vigil = Only("device-error")
    away, back = frame(degraded(FINISHED), 1.0), frame(mirror_pool())
    told = [bool(vigil.look([at(away, 0.0)]))]
    told += [bool(vigil.look([at(away if n < 60 else back, 60.0 * n)])) for n in range(1, 70)]
    told += [bool(vigil.look([at(away, 60.0 * n)])) for n in range(70, 80)]
    assert [n for n, found in enumerate(told) if found] == [0, 70]


@pytest.mark.slow
def test_a_machine_that_was_never_reached_is_told_and_samples_missed_now_and_then_are_not():
    never = SampleFailure("host", 0.0, 0.0, "ssh: no route")
    vigil, told = AlertRules(), []
    for clock in range(0, 3600, 60):
        failure = never._replace(t=float(clock), clock=float(clock))
        told += vigil.look([replace(frame(mirror_pool()), sample=None, failure=failure)])
    assert kinds(told) == ["unreachable"]
    vigil = AlertRules()
    for clock in range(0, 36000, 60):
        shown = frame(mirror_pool())
        good = clock % 240 == 0
        assert vigil.look([at(shown, clock) if good else silent(shown, clock)]) == ()


def test_what_was_lost_before_the_watch_is_told_at_first_sight():
    """After a reboot or a restart of the unit, a disk may be missing with redundancy left."""
    vigil = Only("device-error")
    (gone,) = vigil.look([frame(degraded(FINISHED), 1.0)])
    assert (gone.severity, gone.text) == ("error", "sdb is FAULTED now")
    assert vigil.look([frame(degraded(FINISHED), 2.0)]) == ()
    vigil, pool = Only("not-restored"), left_behind(mirror_pool(FINISHED))
    (alert,) = vigil.look([frame(pool, 5000.0)])
    assert alert.text.startswith("the pool is not restored: replacing-0 still there")
    for t in (5001.0, 9000.0):
        assert vigil.look([frame(pool, t)]) == ()


def test_a_spare_that_fails_is_one_alert():
    spare = Vdev("sds", "disk", guid="99", state="UNAVAIL", vclass="spare")
    root = mirror_pool().root
    pool = replace(mirror_pool(), root=replace(root, children=(*root.children, spare)))
    assert AlertRules().look([frame(pool)]) == ()


def test_the_free_floor_holds_until_there_is_clearly_room_again():
    def filled(fill, t):
        base = frame(mirror_pool(), t)
        return replace(base, balance=replace(base.balance, target_fill=fill))

    vigil = AlertRules(free_floor=0.05)
    assert vigil.look([filled(0.94, 0.0)]) == ()
    assert kinds(vigil.look([filled(0.96, 100.0)])) == ["free-floor"]
    assert vigil.look([filled(0.945, 200.0), filled(0.955, 300.0)]) == ()
    assert vigil.look([filled(0.93, 400.0)]) == ()
    assert kinds(vigil.look([filled(0.96, 500.0)])) == ["free-floor"]


IDLE = SpareProblem("idle", "sp", "spare sp is still INUSE")


SHARED = SpareProblem("elsewhere", "sp", "spare sp is INUSE, but not in this pool")


@rows(
    ("seen", "told"),
    [
        ({1000.0: (IDLE,), 1060.0: (IDLE,), 1061.0: (IDLE,)}, [1060.0]),
        ({1000.0: (IDLE,), 1030.0: (), 1060.0: (IDLE,)}, []),  # it was free again in time
        ({1000.0: (SHARED,), 1100.0: (SHARED,)}, []),  # another pool uses it
    ],
)
def test_a_spare_that_stays_in_trouble_is_told_once(seen, told):
    vigil, found = Only("spare"), []
    for t, spares in seen.items():
        found += vigil.look([frame(mirror_pool(), t, spares=spares)])
    assert [alert.t for alert in found] == told
    assert all(a.severity == "warning" and a.subject == "idle:sp" for a in found)
    assert all(a.text == IDLE.text for a in found)


def in_a_bay(pool, number, disk):
    """Return the pool with this disk on one side of its mirror."""
    top = pool.root.children[0]
    sides = list(top.children)
    sides[number] = replace(sides[number], disk=disk)
    top = replace(top, children=tuple(sides))
    return replace(pool, root=replace(pool.root, children=(top,)))


def cached(count: int) -> Pool:
    """Return the pool with a cache device that has counted errors."""
    errors = ErrorCounters(count, 0, 0)
    cache = Vdev("sdc", "disk", guid="77", state="ONLINE", vclass="cache", errors=errors)
    pool = mirror_pool()
    return replace(pool, root=replace(pool.root, children=(*pool.root.children, cache)))


BAY = LeafDisk(bay="Slot 07", serial="ZC1A")
SPACED = {"name": "my pool"}


@rows(
    ("before", "after", "text", "next_step"),
    [
        (
            in_a_bay(mirror_pool(), 0, BAY),
            in_a_bay(noisy_pool(), 0, BAY),
            "Slot 07 (serial ZC1A): 12 new errors",
            "zconsole swap tank sda",
        ),
        (
            in_a_bay(mirror_pool(), 1, BAY),
            in_a_bay(degraded(FINISHED), 1, BAY),
            "Slot 07 (serial ZC1A) is FAULTED now",
            "zconsole swap tank sdb",
        ),
        (
            replace(mirror_pool(), **SPACED),
            replace(noisy_pool(), **SPACED),
            "sda: 12 new errors",
            "zconsole swap 'my pool' sda",
        ),
        (cached(0), cached(5), "sdc: 5 new errors", ""),  # it holds no data
    ],
)
def test_an_alert_of_a_device_names_its_bay_its_serial_number_and_the_next_step(
    before, after, text, next_step
):
    rules = Only("device-error")
    rules.look([frame(before, 1.0)])
    (alert,) = rules.look([frame(after, 2.0)])
    assert alert.text.startswith(text)
    assert alert.next_step == next_step
    assert alert.words == alert.text + (f". Next: {next_step}" if next_step else "")


def test_an_expansion_that_is_stuck_is_an_alert_once_and_a_slow_one_none():
    vigil = AlertRules()
    work = Activity("expansion", "running", "raidz1-0", 500.0)
    slow = ActivityView(work, 10.0, nothing(""))
    stuck = ActivityView(work, None, nothing(""), 601.0, "bring back sdb")
    rounds = [replace(running(1000.0 + i), activities=(v,)) for i, v in enumerate((slow, stuck))]
    assert vigil.look([rounds[0]]) == ()
    (alert,) = vigil.look([rounds[1]])
    assert (alert.kind, alert.severity) == ("stalled", "warning")
    assert "the expansion of raidz1-0 made no progress for 10m01s: bring back sdb" in alert.text
    assert vigil.look([replace(rounds[1], t=1003.0)]) == ()


def overdue(t: float, *scans: Scan, **fields) -> Frame:
    scrub = ScrubAge(**{"age": 41 * 86400.0, "overdue": True, **fields})
    return frame(mirror_pool(*scans), t, scrub=scrub)


@rows(
    ("shown", "text"),
    [
        (overdue(1000.0), "scrub overdue: the last full scrub ended 41 days ago"),
        (
            overdue(1000.0, never=True),
            "scrub overdue: the pool was created 41 days ago, never scrubbed",
        ),
        (overdue(1000.0, Scan("scrub", "running", start=1.0)), None),
        (overdue(1000.0, overdue=False), None),
    ],
)
def test_an_overdue_scrub_is_said_once_and_not_while_one_runs(shown, text):
    rules = AlertRules()
    told = [(a.kind, a.severity, a.text) for a in rules.look([shown])]
    assert told == [("scrub-overdue", "warning", text)] * (text is not None)
    assert rules.look([replace(shown, t=1001.0)]) == ()
