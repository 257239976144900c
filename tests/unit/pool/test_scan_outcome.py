from __future__ import annotations

from tests.table import rows
from zconsole.pool.model import Activity, Pool, Scan, Vdev
from zconsole.pool.scan_outcome import (
    GRACE,
    LastScan,
    ScanOutcome,
    last_scan,
    not_restored,
    scan_notes,
    scan_outcome,
    settling,
    skipped_devices,
)

GOOD = Scan("resilver", "finished", start=1.0, end=2.0, errors=0)
BAD = Scan("resilver", "finished", start=1.0, end=2.0, errors=3)
CANCELED = Scan("scrub", "canceled", start=1.0, end=2.0)
PAIR = (Vdev("sda", "disk"), Vdev("sdb", "disk"))
WHOLE = Vdev("tank", "root", children=PAIR)
LEFT = Vdev("tank", "root", children=(Vdev("replacing-0", "replacing", children=PAIR),))
WAITING = Vdev("tank", "root", children=(Vdev("sda", "disk", awaiting_resilver=True),))


def test_nothing_is_said_while_a_scan_runs():
    found = scan_outcome(GOOD, LEFT, "OK", None)
    assert found == ScanOutcome(False, None, left_behind=True, canceled=False)


def test_a_good_end_is_known_at_once():
    found = scan_outcome(GOOD, WHOLE, "OK", 0.0)
    assert found == ScanOutcome(True, True, left_behind=False, canceled=False)


@rows(
    ("scan", "root", "word"),
    [
        (BAD, WHOLE, "OK"),
        (CANCELED, WHOLE, "OK"),
        (GOOD, LEFT, "OK"),
        (GOOD, WAITING, "OK"),
        (None, WHOLE, "DEGRADED"),
    ],
)
def test_what_is_wrong_has_time_to_pass_before_it_is_said(scan, root, word):
    assert scan_outcome(scan, root, word, 0.0).restored is None
    assert scan_outcome(scan, root, word, GRACE - 1).restored is None
    assert scan_outcome(scan, root, word, GRACE).restored is False


def test_devices_that_collect_errors_leave_a_repair_restored():
    assert scan_outcome(GOOD, WHOLE, "ATTENTION", 0.0).restored is True
    assert scan_outcome(BAD, WHOLE, "ATTENTION", GRACE).restored is False


def test_a_scan_never_seen_leaves_a_whole_pool_whole():
    assert scan_outcome(None, WHOLE, "OK", 0.0).restored is True


def test_only_ends_of_a_moment_ago_are_settling():
    assert settling(100.0, None, 100.0)
    assert settling(100.0, 101.0 - GRACE)
    assert not settling(100.0, 100.0 - GRACE, None)
    assert not settling(100.0, 200.0)


REBUILT = Scan("rebuild", "finished", start=10.0, end=50.0, errors=0)
OWN = Scan("scrub", "finished", start=51.0, end=90.0, errors=0, processed_bytes=8192)


def said(*scans):
    return list(not_restored(Pool("tank", "ONLINE", root=WHOLE, scans=scans), 1000.0))


def test_a_rebuild_whose_scrub_had_to_repair_wants_another_scrub():
    assert said(REBUILT, OWN) == ["the scrub after the rebuild repaired 8K: scrub again"]


def test_a_scrub_that_repairs_nothing_or_is_not_of_the_rebuild_says_nothing():
    assert said(REBUILT, OWN._replace(processed_bytes=0)) == []
    assert said(REBUILT, OWN._replace(start=50.0 + GRACE)) == []
    assert said(REBUILT, OWN._replace(state="running")) == []
    assert said(OWN) == []


def pool_after(*scans, root=WHOLE):
    return Pool("tank", "ONLINE", root, scans=scans)


@rows(
    ("scan", "root", "word", "result"),
    [
        (GOOD, WHOLE, "OK", "restored"),
        (BAD, WHOLE, "OK", "not restored"),
        (GOOD, LEFT, "OK", "not restored"),
        (GOOD, WHOLE, "DEGRADED", "not restored"),
        (CANCELED, WHOLE, "OK", "canceled"),
    ],
)
def test_a_last_scan_says_how_it_ended(scan, root, word, result):
    found = last_scan(pool_after(scan, root=root), scan, word, 2.0 + GRACE)
    assert found == LastScan(scan.function, result, 2.0, 1.0, scan.errors)


def test_a_scan_is_no_last_scan_while_its_result_may_change():
    assert last_scan(pool_after(BAD), BAD, "OK", 2.0 + GRACE - 1) is None
    running = Scan("scrub", "running", start=3.0)
    assert last_scan(pool_after(running, GOOD), GOOD, "OK", 100.0) is None
    assert last_scan(pool_after(running), running, "OK", 100.0) is None


def test_text_prints_the_duration_of_a_scan_without_its_start():
    printed = GOOD._replace(start=None, duration=7.0)
    found = last_scan(pool_after(printed), printed, "OK", 100.0)
    assert found is not None
    assert found.duration == 7.0


@rows(("activities", "said"), [((), True), ((Activity("checkpoint", "exists"),), False)])
def test_a_replacing_vdev_without_a_resilver_says_what_starts_one(activities, said):
    scrub = Scan("scrub", "finished", start=1.0, end=2.0, errors=0)
    pool = Pool("tank", "ONLINE", LEFT, scans=(scrub,), activities=activities)
    assert ("resilver again: zpool resilver tank" in list(not_restored(pool, 1e9))) == said


def replacing(name, **new):
    return Vdev("replacing", "replacing", children=(PAIR[0], Vdev(name, "disk", **new)))


FILLS = Scan("resilver", "running", percent=50.0, issued_bytes=4096, processed_bytes=0)


def test_a_newcomer_is_passed_over_where_others_are_filled_and_nothing_marks_it():
    filled, waits = replacing("sdc", resilvering=True), replacing("sdd", awaiting_resilver=True)
    root = Vdev("tank", "root", children=(filled, replacing("sde"), waits))
    assert skipped_devices(root, FILLS) == ("sde",)
    assert skipped_devices(root, FILLS._replace(state="paused")) == ()
    assert skipped_devices(root, FILLS._replace(percent=1.0)) == ()
    assert skipped_devices(root._replace(children=(replacing("sde"),)), FILLS) == ()


def test_of_several_newcomers_each_that_nothing_fills_is_named():
    news = [Vdev("sdc", "disk", state="ONLINE"), Vdev("sdd", "disk", state="UNAVAIL")]
    three = Vdev("r", "replacing", children=(Vdev("sda", "disk"), news[1], news[0]))
    root = Vdev("tank", "root", children=(three,))
    pool = Pool("tank", "DEGRADED", root, scans=(GOOD,))
    assert any("no resilver fills sdd (UNAVAIL)" in why for why in not_restored(pool, 1e6))


def test_a_resilver_that_fills_no_device_is_odd():
    assert len(list(scan_notes(WHOLE, FILLS))) == 1
    assert list(scan_notes(WHOLE, FILLS._replace(state="paused"))) == []
    assert list(scan_notes(WHOLE, FILLS._replace(processed_bytes=1))) == []
    assert list(scan_notes(LEFT, FILLS)) == []
