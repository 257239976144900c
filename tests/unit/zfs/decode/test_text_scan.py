"""Every variant of the scan lines, and what is decoded when they are cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.table import rows
from tests.unit.zfs.decode.texts import pool
from zconsole.pool.model import Scan
from zconsole.zfs.decode.text_scan import scan_of

START = datetime(2014, 8, 3, 15, 14, 45, tzinfo=UTC).timestamp()
DATE = "Sun Aug  3 15:14:45 2014"
K, M, G, T = 1024, 1024**2, 1024**3, 1024**4


def read(text: str) -> Scan:
    scan = scan_of(text.splitlines(), UTC)
    assert scan is not None
    return scan


CASES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "solaris 10",
        "resilver in progress for 0h2m, 16.43% done, 0h13m to go",
        {"function": "resilver", "state": "running", "percent": 16.43, "zpool_eta": 780.0,
         "duration": 120.0, "stage": None, "two_stage": False, "start": None},
    ),
    (
        "solaris 10, no time yet",
        "scrub in progress, 0.02% done, 17h3m to go",
        {"function": "scrub", "percent": 0.02, "zpool_eta": 61380.0, "duration": None},
    ),
    (
        "solaris 10, nothing done yet",
        "resilver in progress for 0h0m, 0.00% done, 307445734561825860h35m to go",
        {"percent": 0.0, "zpool_eta": None},
    ),
    (
        "solaris 10 done",
        f"scrub completed after 1h2m with 3 errors on {DATE}",
        {"function": "scrub", "state": "finished", "duration": 3720.0, "errors": 3, "end": START},
    ),
    (
        "solaris 10 stopped",
        f"scrub stopped after 0h7m with 0 errors on {DATE}",
        {"state": "canceled", "end": START},
    ),
    (
        "0.6",
        f"scrub in progress since {DATE}\n    36.6G scanned out of 14.4T at 128M/s, 32h38m to go\n"
        "    0 repaired, 0.25% done",
        {"function": "scrub", "state": "running", "stage": None, "two_stage": False,
         "scanned_bytes": round(36.6 * G), "total_bytes": round(14.4 * T), "issued_bytes": None,
         "zpool_scan_rate": 128 * M, "zpool_eta": 117480.0, "processed_bytes": 0, "percent": 0.25,
         "resolution": pytest.approx(0.05 * G), "start": START},
    ),
    (
        "0.6 slow",
        f"resilver in progress since {DATE}\n    1.5G scanned out of 14.4T at 1K/s, (scan is slow,"
        " no estimated time)\n    12K resilvered, 0.01% done",
        {"zpool_eta": None, "zpool_scan_rate": K, "processed_bytes": 12 * K, "stage": None},
    ),
    (
        "0.7 paused",
        f"scrub paused since Sun Aug  3 15:20:00 2014\n\tscrub started on   {DATE}\n"
        "\t1.17T scanned out of 7.17T\n\t0B repaired, 16.32% done",
        {"state": "paused", "start": START, "paused_since": START + 315, "percent": 16.32,
         "zpool_eta": None, "stage": None, "two_stage": False},
    ),
    (
        "solaris 11.2, first stage",
        f"resilver in progress since {DATE}\n    4.58T scanned out of 12.9T at 3.51G/s, 0h40m to go"
        "\n    0 resilvered",
        {"stage": "scanning", "two_stage": True, "percent": None, "processed_bytes": 0,
         "zpool_eta": 2400.0},
    ),
    (
        "solaris 11.2, second stage",
        f"resilver in progress since {DATE}\n    12.9T scanned\n"
        "    638G resilvered at 129M/s, 29.01% done, 20h42m to go",
        {"stage": "issuing", "two_stage": True, "percent": 29.01, "processed_bytes": 638 * G,
         "zpool_issue_rate": 129 * M, "scanned_bytes": round(12.9 * T), "total_bytes": None,
         "zpool_eta": 74520.0},
    ),
    (
        "0.8",
        f"resilver in progress since {DATE}\n\t3.12T scanned at 3.9G/s, 1.5T issued at 200M/s,"
        " 4.00T total\n\t700G resilvered, 37.50% done, 0 days 03:38:27 to go",
        {"stage": "scanning", "issued_bytes": round(1.5 * T), "total_bytes": 4 * T,
         "zpool_eta": 13107.0, "zpool_issue_rate": 200 * M, "skipped_bytes": None,
         "resolution": pytest.approx(0.05 * T)},
    ),
    (
        "0.8 paused",
        f"scrub paused since Sun Aug  3 15:20:00 2014\n\tscrub started on {DATE}\n"
        "\t240M scanned, 31.0M issued, 240M total\n\t0B repaired, 12.91% done",
        {"state": "paused", "stage": None, "zpool_scan_rate": None, "issued_bytes": 31 * M},
    ),
    (
        "0.8, walk done but 0B/s printed",
        f"scrub in progress since {DATE}\n\t4.00T scanned at 0B/s, 3.9T issued at 200M/s,"
        " 4.00T total\n\t0B repaired, 97.50% done, no estimated completion time",
        {"stage": "issuing", "zpool_scan_rate": 0, "zpool_eta": None},
    ),
    (
        "2.1 rebuild, no `at` before its issue rate",
        f"resilver (mirror-0) in progress since {DATE}\n\t1.5G scanned at 100M/s, 1G issued 90M/s,"
        " 2G total\n\t900M resilvered, 75.00% done, 1 days 00:00:05 to go",
        {"function": "rebuild", "vdev": "mirror-0", "stage": "scanning", "zpool_issue_rate": 90 * M,
         "zpool_eta": 86405.0, "processed_bytes": 900 * M},
    ),
    (
        "2.2, skipped told by the two totals",
        f"resilver in progress since {DATE}\n\t642M / 642M scanned, 245M / 600M issued at 15.3M/s\n"
        "\t45.2M resilvered, 40.83% done, 00:00:25 to go",
        {"stage": "issuing", "total_bytes": 642 * M, "skipped_bytes": 42 * M,
         "to_issue_bytes": 600 * M, "zpool_scan_rate": None, "zpool_eta": 25.0},
    ),
    (
        "2.2, scanned short of the total without a rate: the walk is over",
        f"scrub in progress since {DATE}\n\t1.62T / 1.66T scanned, 704G / 1.66T issued at 1.2G/s\n"
        "\t0B repaired, 41.42% done, no estimated completion time",
        {"stage": "issuing"},
    ),
    (
        "2.2, just begun",
        f"scrub in progress since {DATE}\n\t0B / 1.66T scanned, 0B / 1.66T issued\n"
        "\t0B repaired, 0.00% done, no estimated completion time",
        {"stage": "scanning", "percent": 0.0},
    ),
    (
        "thorough",
        f"thorough scrub in progress since {DATE}\n\t1G / 2G scanned at 1M/s, 1G / 2G issued\n",
        {"function": "scrub", "state": "running", "total_bytes": 2 * G, "thorough": True},
    ),
    (
        "finished, 0.6",
        f"resilvered 12.9T in 35h29m with 0 errors on {DATE}",
        {"function": "resilver", "state": "finished", "duration": 127740.0, "errors": 0,
         "thorough": None,
         "processed_bytes": round(12.9 * T), "end": START, "stage": None},
    ),
    (
        "finished, 0.8",
        f"scrub repaired 0B in 0 days 01:24:38 with 2 errors on {DATE}",
        {"function": "scrub", "duration": 5078.0, "errors": 2, "processed_bytes": 0},
    ),
    (
        "finished rebuild",
        f"resilvered (draid1:4d:11c:1s-0) 1.5G in 00:00:09 with 0 errors on {DATE}",
        {"function": "rebuild", "vdev": "draid1:4d:11c:1s-0", "duration": 9.0, "end": START},
    ),
    (
        "finished, solaris 11.4",
        f"thorough scrub repaired 4K in 1m35s with 0 errors on {DATE}",
        {"function": "scrub", "duration": 95.0, "thorough": True, "name": "thorough scrub"},
    ),
    (
        "thorough, paused",
        f"thorough scrub paused since Sun Aug  3 15:20:00 2014\n\tthorough scrub started on {DATE}",
        {"state": "paused", "start": START, "thorough": True},
    ),
    (
        "thorough, canceled",
        f"thorough scrub canceled on {DATE}",
        {"function": "scrub", "state": "canceled", "thorough": True},
    ),
    (
        "canceled",
        f"scrub canceled on {DATE}",
        {"function": "scrub", "state": "canceled", "thorough": False, "name": "scrub"},
    ),
    (
        "canceled rebuild",
        f"resilver (mirror-1) canceled on {DATE}",
        {"function": "rebuild", "vdev": "mirror-1", "state": "canceled", "end": START},
    ),
    (
        "error scrub",
        f"error scrub in progress since {DATE}\n\t12.50% done, issued I/O for 7 error blocks",
        {"function": "errorscrub", "state": "running", "percent": 12.5, "stage": None},
    ),
    (
        "error scrub paused",
        f"error scrub paused since Sun Aug  3 15:20:00 2014\n\terror scrub started on {DATE}\n",
        {"function": "errorscrub", "state": "paused", "start": START},
    ),
    (
        "error scrub done",
        f"scrubbed 7 error blocks in 0 days 00:00:03 on {DATE}",
        {"function": "errorscrub", "state": "finished", "duration": 3.0, "end": START},
    ),
    (
        "error scrub canceled",
        f"error scrub canceled on {DATE}",
        {"function": "errorscrub", "state": "canceled"},
    ),
    (
        "decimal commas",
        f"scrub in progress since {DATE}\n\t9,12T scanned at 1,2G/s, 8,5T issued at 1,00G/s,"
        " 9,12T total\n\t0B repaired, 93,20% done, 00:10:40 to go",
        {"stage": "issuing", "scanned_bytes": round(9.12 * T), "percent": 93.2,
         "issued_bytes": round(8.5 * T), "zpool_scan_rate": round(1.2 * G)},
    ),
    (
        "nothing to do yet",
        f"scrub in progress since {DATE}\n\t0B / 0B scanned, 0B / 0B issued\n"
        "\t0B repaired, -nan% done, no estimated completion time",
        {"percent": None, "total_bytes": 0},
    ),
    (
        "beyond 100 %",
        f"scrub in progress since {DATE}\n\t2T / 1T scanned, 1.5T / 1T issued at 20M/s\n"
        "\t0B repaired, 150.00% done, no estimated completion time",
        {"percent": 150.0, "stage": "issuing"},
    ),
    ("snipped", "scrub repaired 0B in <snip>", {"state": "finished", "duration": None}),
]  # fmt: skip


@rows(("text", "expected"), [c[1:] for c in CASES])
def test_dialect(text: str, expected: dict[str, Any]) -> None:
    scan = read(text)
    assert {name: getattr(scan, name) for name in expected} == expected


@rows("text", ["none requested", "", "something new in 2.9"])
def test_no_scan(text: str) -> None:
    assert scan_of(text.splitlines(), UTC) is None


def test_dates_are_read_in_the_given_zone() -> None:
    scan = scan_of([f"scrub canceled on {DATE}"], ZoneInfo("Europe/Berlin"))
    assert scan is not None
    assert scan.end == START - 7200


def test_lines_that_were_broken_after_a_comma_are_read_whole() -> None:
    text = (
        f"resilver in progress since {DATE}\n\t3.12T scanned at 1.11G/s, 1.04T issued at 380M/s,"
        " 12.9T total\n\t210G resilvered, 8.06% done, 0 days 09:05:27 to go\n"
    )
    assert read(text.replace(", ", ",\n        ")) == read(text)
    assert read(text).total_bytes is not None


def test_a_line_that_is_cut_off_leaves_what_is_there() -> None:
    text = f"resilver in progress since {DATE}\n\t642M / 642M scanned, 24"
    scan = read(text)
    assert (scan.scanned_bytes, scan.total_bytes, scan.issued_bytes) == (642 * M, 642 * M, None)


DATED = (
    "  scan: resilvered 1.28M in 00:00:01 with 12 errors on Sun Aug  3 15:14:45 2014\n",
    "  scan: resilvered (draid1:4d:8c:1s-0) 211M in 00:00:24 with 0 errors on Sun Aug 13"
    " 15:14:45 2014\n",
    "  scan: scrub in progress since Sun Aug  3 15:14:45 2014\n\t1G / 2G scanned, 1G / 2G issued\n",
    "remove: Evacuation of /dev/disk/by-id/ata-WDC_WD40EFRX in progress since Sun Aug  3 15:14:45"
    " 2014\n\t8.69M copied out of 39.9M at 4.35M/s, 21.79% done, 0h0m to go\n",
)


@rows("section", DATED)
@rows("indent", ["", "\t"])
def test_a_date_that_a_window_or_a_mail_broke(section: str, indent: str) -> None:
    whole = pool(f"  pool: tank\n state: ONLINE\n{section}config:\n\n")
    line = section.partition("\n")[0]
    for at in range(line.index("in") + 9, len(line)):
        above, below = line[:at], line[at:]
        if indent and line[at - 1] != " ":
            continue  # mail programs wrap lines at blanks
        text = section.replace(line, f"{above}\n{indent}{below}")
        assert pool(f"  pool: tank\n state: ONLINE\n{text}config:\n\n") == whole, (above, below)
