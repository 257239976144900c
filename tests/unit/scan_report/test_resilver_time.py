from __future__ import annotations

import pytest

from tests.table import rows
from zconsole.pool.model import Scan, Vdev
from zconsole.scan_report.report import DeviceReport, ScanReport
from zconsole.scan_report.resilver_time import member_duration, paces, resilver_duration

TIB, MIB = 1 << 40, 1 << 20
HOUR = 3600.0


def raidz2(alloc: float = 12.9, size: float = 16.3) -> Vdev:
    leaves = tuple(Vdev(f"d{i}", "disk") for i in range(6))
    top = Vdev(
        "raidz2-0",
        "raidz2",
        size_bytes=round(size * TIB),
        alloc_bytes=round(alloc * TIB),
        children=leaves,
    )
    return Vdev("tank", "root", children=(top,))


def report(start: float, rate: float, seconds: float = HOUR, **fields: object) -> ScanReport:
    devices = (
        DeviceReport("new", True, 0.0, rate * seconds, seconds, 0.99, 0.01, 0.02),
        DeviceReport("old", False, 9e12, 0.0, seconds, 0.4, 0.01, 0.02),
    )
    fields = {"state": "finished", "function": "resilver", "devices": devices} | fields
    return ScanReport("tank", "1", vdev=None, start=start, watched_from=start, **fields)


DONE = Scan("resilver", "finished", total_bytes=round(12.9 * TIB), duration=35.48 * HOUR)


def test_a_resilver_is_told_from_how_fast_the_last_one_went():
    """The first report: 12.9T on six disks in 35h29m; a disk of the old size was just as full."""
    found = resilver_duration(raidz2(), round(2.73 * TIB), paces(raidz2(), [DONE]))
    assert found.eta == pytest.approx(35.48 * HOUR, rel=0.02)
    assert found.low < found.eta < found.high


def test_what_was_seen_written_to_a_new_disk_goes_before_what_a_scan_did_as_a_whole():
    known = paces(raidz2(), [DONE], [report(1000.0, 100.0 * MIB)])
    found = member_duration(raidz2().children[0], known)
    assert found.eta == pytest.approx(12.9 * TIB / 6 / (100 * MIB))
    assert "100M/s per disk" in found.reason


def test_the_newest_report_is_the_pace_and_all_of_them_the_range():
    known = paces(raidz2(), [], [report(1000.0, 50.0 * MIB), report(9000.0, 100.0 * MIB)])
    found = member_duration(raidz2().children[0], known)
    need = 12.9 * TIB / 6
    assert found.eta == pytest.approx(need / (100 * MIB))
    assert found.low == pytest.approx(0.85 * need / (100 * MIB))
    assert found.high == pytest.approx(1.2 * need / (50 * MIB))
    assert "2 recorded" in found.reason


def test_a_resilver_goes_before_a_newer_scrub():
    scrub = Scan("scrub", "finished", total_bytes=TIB, duration=60.0, start=2e9)
    assert paces(raidz2(), [scrub, DONE])[0].text == "the last resilver"


@rows(
    "useless",
    [
        report(0.0, 100.0 * MIB, state="running"),
        report(0.0, 100.0 * MIB, seconds=5.0),
        report(0.0, 1000.0),
        report(0.0, 100.0 * MIB, function="scrub"),
    ],
)
def test_reports_that_tell_nothing_of_a_new_disk_are_left_out(useless):
    assert paces(raidz2(), [Scan("scrub", "canceled", duration=5.0)], [useless]) == ()


def test_nothing_known_or_nothing_there_is_no_time():
    assert resilver_duration(raidz2(), TIB, ()) is None
    assert member_duration(raidz2(alloc=0.0).children[0], paces(raidz2(), [DONE])) is None
