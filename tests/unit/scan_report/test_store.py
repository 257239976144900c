from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Scan
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.report import MOST_POINTS, ScanReport
from zconsole.scan_report.store import KEPT, ReportStore, read_report
from zconsole.timeline.scrubs import ScrubAge
from zconsole.timeline.session import Session

EARLIER = Path(__file__).parents[2] / "fixtures" / "state" / "report.json"

RESILVERED = {"type": "root", "guid": 1, "vdev_stats": [0, 7, *[0] * 46]}
RESILVERED |= {"scan_stats": [2, 2, 600, 700, *[0] * 18], "children": []}
"""A pool whose last scan was a resilver."""


def changed(path: Path, **fields: object) -> Path:
    path.write_text(json.dumps({**json.loads(EARLIER.read_text()), **fields}))
    return path


def test_a_report_of_an_earlier_version_is_read():
    document = json.loads(EARLIER.read_text())
    report = read_report(EARLIER)
    assert (report.function, report.start, report.end) == ("resilver", document["start"], None)
    assert [moment.t for moment in report.moments] == [row["t"] for row in document["moments"]]
    assert [device.name for device in report.devices] == [
        row["name"] for row in document["devices"]
    ]
    assert report.limits == document["limits"]
    assert report.notes == tuple(document["notes"])


@rows(
    ("fields", "why"),
    [
        ({"issued_bytes": "many"}, "issued_bytes is not a whole number"),
        ({"moments": [{"t": 1.0}]}, r"moments\[0\]\.issue_rate is missing"),
        ({"limits": {"memory": "long"}}, r"limits\.memory is not a number"),
        ({"colour": "red"}, "colour is unknown"),
        ({"watched_from": -1.0}, "a time out of range"),
        ({"start": 1e18}, "a time out of range"),
        ({"format": 2}, "from another version"),
    ],
)
def test_the_reason_why_a_report_is_refused_names_the_field(tmp_path, fields, why):
    with pytest.raises(NotUnderstoodError, match=rf"odd: not a scan report \({why}\)$"):
        read_report(changed(tmp_path / "odd", **fields))


def test_a_report_with_too_many_points_keeps_the_first(tmp_path):
    points = [{"t": 1.0 + at, "issue_rate": 2.0} for at in range(MOST_POINTS + 1)]
    report = read_report(changed(tmp_path / "long", moments=points))
    assert [moment.t for moment in report.moments] == [row["t"] for row in points[:MOST_POINTS]]


def scrub(start: float, **fields) -> ScanReport:
    """Return the report of a scrub that took an hour."""
    base = ScanReport("tank", "42", "scrub", None, start, "finished", start, full=True)
    return replace(base, **{"end": start + 3600, **fields})


@pytest.fixture
def store(tmp_path):
    tmp_path.chmod(0o700)
    store = ReportStore(tmp_path)
    yield store
    store.close()


@pytest.mark.slow
def test_the_last_full_scrub_outlives_newer_reports_of_other_scans(store):
    store.save(scrub(1000.0))
    store.save(scrub(9000.0))
    for number in range(2 * KEPT):
        store.save(scrub(20_000.0 + number, state="canceled"))
    starts = [report.start for report in store.reports(guid="42")]
    assert len(starts) == KEPT + 1
    assert starts[-1] == 9000.0
    assert store.full_scrub("42") == 12_600.0


@pytest.mark.slow
def test_the_oldest_reports_go_where_a_newer_one_is_of_a_full_scrub(store):
    for number in range(2 * KEPT):
        store.save(scrub(1000.0 + number))
    assert len(store.reports(guid="42")) == KEPT


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "canceled"},
        {"state": "running", "end": None},
        {"function": "resilver"},
        {"full": False},
        {"guid": "43"},
        {"full": None},
    ],
)
def test_what_is_no_finished_full_scrub_is_passed_over(store, fields):
    store.save(scrub(1000.0))
    store.save(scrub(9000.0, **fields))
    assert store.full_scrub("42") == 4600.0
    assert store.full_scrub("44") is None


def test_a_later_session_knows_the_last_full_scrub_from_its_report(tmp_path):
    tmp_path.chmod(0o700)
    scrub = Scan("scrub", "running", start=100.0)
    keeper = ReportKeeper(ReportStore(tmp_path))
    for t, scan in ((200.0, scrub), (500.0, scrub._replace(state="finished", end=400.0))):
        keeper.push(frame(mirror_pool(scan), t))
    keeper.close()
    later = {"t": 900.0, "libzfs": {"name": "tank", "pool_guid": 1, "vdev_tree": RESILVERED}}
    for reader in (ReportStore(tmp_path), ReportStore(None, [tmp_path])):
        session = Session(reports=ReportKeeper(reader), scrub_overdue_after=499.0)
        (seen,) = session.advance([later])
        session.close()
        assert seen.scrub == ScrubAge(400.0, 500.0, overdue=True)
