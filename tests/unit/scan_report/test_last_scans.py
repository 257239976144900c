from __future__ import annotations

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from zconsole.pool.model import Scan
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.store import LastScans, ReportStore

SCRUB = Scan("scrub", "finished", start=100.0, end=400.0, errors=0)
RESILVER = Scan("resilver", "finished", start=500.0, end=600.0, errors=0)
CANCELED = Scan("scrub", "canceled", start=700.0, end=710.0, errors=0)


def results(found):
    return {(scan.function, scan.end): scan.result for scan in found}


def report(scan, **fields):
    base = ScanReport("tank", "1", scan.function, scan.vdev, scan.start, scan.state, scan.start)
    return replace(base, **{"end": scan.end, "errors": scan.errors, "health": "OK", **fields})


def test_the_last_scan_of_each_function_is_kept_though_zfs_forgets_it():
    last = LastScans()
    last.push(frame(mirror_pool(SCRUB)))
    found = last.push(frame(mirror_pool(RESILVER)))
    assert results(found) == {("scrub", 400.0): "restored", ("resilver", 600.0): "restored"}


def test_a_canceled_scrub_is_the_last_one_until_another_ends():
    last = LastScans()
    last.push(frame(mirror_pool(SCRUB)))
    assert results(last.push(frame(mirror_pool(CANCELED)))) == {("scrub", 710.0): "canceled"}
    last.recall("1", [report(SCRUB)])
    assert results(last.push(frame(mirror_pool()))) == {("scrub", 710.0): "canceled"}
    last.push(frame(mirror_pool(replace(SCRUB, start=800.0, end=900.0))))
    assert results(last.push(frame(mirror_pool()))) == {("scrub", 900.0): "restored"}


def test_what_fails_later_does_not_change_how_a_scan_ended():
    last = LastScans()
    last.push(frame(mirror_pool(SCRUB)))
    assert results(last.push(frame(mirror_pool(SCRUB, state="DEGRADED")))) == {
        ("scrub", 400.0): "restored"
    }


def test_what_a_scan_left_behind_may_go_away_later():
    last = LastScans()
    found = last.push(frame(mirror_pool(SCRUB, state="DEGRADED")))
    assert results(found) == {("scrub", 400.0): "not restored"}
    assert results(last.push(frame(mirror_pool(SCRUB)))) == {("scrub", 400.0): "restored"}


def test_a_pool_that_does_not_answer_keeps_its_last_scans():
    last = LastScans()
    seen = frame(mirror_pool(SCRUB))
    last.push(seen)
    assert len(last.push(replace(seen, problem="no answer"))) == 1


@rows(
    ("fields", "result"),
    [
        ({}, "restored"),
        ({"health": "ATTENTION"}, "restored"),
        ({"health": "NOT RESTORED"}, "not restored"),
        ({"errors": 2}, "not restored"),
        ({"state": "canceled"}, "canceled"),
    ],
)
def test_a_stored_report_says_how_its_scan_ended(fields, result):
    last = LastScans()
    last.recall("1", [report(SCRUB, **fields)])
    (found,) = last.push(frame(mirror_pool(RESILVER)))[:1]
    assert (found.function, found.result, found.duration) == ("scrub", result, 300.0)


@rows("fields", [{"state": "running"}, {"state": "restarted"}, {"end": None}])
def test_a_report_of_a_scan_without_an_end_says_nothing(fields):
    last = LastScans()
    last.recall("1", [report(SCRUB, **fields)])
    assert last.push(frame(mirror_pool())) == ()


def test_a_report_is_as_good_as_its_scan_in_zfs():
    """In text its end is a whole second; only one of the two may be counted."""
    last = LastScans()
    last.push(frame(mirror_pool(SCRUB)))
    last.recall("1", [report(SCRUB, end=401.0, health="DEGRADED")])
    assert results(last.push(frame(mirror_pool(SCRUB)))) == {("scrub", 400.0): "restored"}


def test_reports_are_wanted_once_for_each_guid():
    last, seen = LastScans(), frame(mirror_pool())
    assert last.wanted(seen) == "1"
    last.recall("1", [])
    assert last.wanted(seen) is None
    assert last.wanted(frame(replace(mirror_pool(), guid=None))) is None


def test_the_next_run_knows_what_this_one_recorded(tmp_path):
    """The scrub ends DEGRADED, then a resilver runs: after that only the report has the scrub."""
    store = ReportStore(tmp_path)
    keeper = ReportKeeper(store)
    running = replace(SCRUB, state="running", end=None)
    keeper.push(frame(mirror_pool(running), t=200.0))
    keeper.push(frame(mirror_pool(SCRUB, state="DEGRADED"), t=1000.0))
    keeper.close()
    later = LastScans()
    later.recall("1", ReportStore(None, (tmp_path,)).reports(guid="1"))
    found = later.push(frame(mirror_pool(RESILVER)))
    assert results(found) == {("scrub", 400.0): "not restored", ("resilver", 600.0): "restored"}
