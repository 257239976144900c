from __future__ import annotations

import json
from pathlib import Path

import pytest

from zconsole.errors import NotUnderstoodError
from zconsole.scan_report.report import MOST_POINTS
from zconsole.scan_report.store import read_report

KEPT = Path(__file__).parents[2] / "fixtures" / "state" / "report.json"


def changed(path: Path, **fields: object) -> Path:
    path.write_text(json.dumps({**json.loads(KEPT.read_text()), **fields}))
    return path


def test_a_report_of_an_earlier_version_is_read():
    document = json.loads(KEPT.read_text())
    report = read_report(KEPT)
    assert (report.function, report.start, report.end) == ("resilver", document["start"], None)
    assert [moment.t for moment in report.moments] == [row["t"] for row in document["moments"]]
    assert [device.name for device in report.devices] == [
        row["name"] for row in document["devices"]
    ]
    assert report.limits == document["limits"]
    assert report.notes == tuple(document["notes"])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"issued_bytes": "many"}, "issued_bytes is not a whole number"),
        ({"moments": [{"t": 1.0}]}, r"moments\[0\]\.issue_rate is missing"),
        ({"limits": {"memory": "long"}}, r"limits\.memory is not a number"),
        ({"colour": "red"}, "colour is unknown"),
        ({"watched_from": -1.0}, "a time out of range"),
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
