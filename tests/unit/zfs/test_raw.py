"""What is asked of raw forms before they are decoded."""

from __future__ import annotations

from struct import pack
from typing import Any

from tests.table import rows
from zconsole.zfs.raw import has_active_scan

REBUILD = "org.openzfs:rebuild_stats"


def config(*scan: int, **top: Any) -> dict[str, Any]:
    return {"libzfs": {"vdev_tree": {"scan_stats": scan, "children": [top, {}]}}}


def document(**scan: Any) -> dict[str, Any]:
    return {"status": {"pools": {"tank": {"scan_stats": scan}}}}


@rows(
    ("form", "active"),
    [
        (config(2, 1, 100, 0), True),
        (config(2, 2, 100, 200), False),
        (config(), False),
        (config(1, 2, **{REBUILD: pack("2Q", 1, 1)}), True),
        (config(1, 2, **{REBUILD: (0, 1)}), False),
        (document(function="SCRUB", state="SCANNING"), True),
        (document(function="SCRUB", state="FINISHED", err_scrub_state="CANCELED"), False),
        (document(rebuild_stats={"mirror-0": {"state": "ACTIVE"}}), True),
        ({"status": {"pools": {"tank": {}}}}, False),
        ({"text": "  scan: resilver (mirror-0) in progress since Sun Nov 22"}, True),
        ({"text": "  scan: scrub repaired 0B in 00:00:01 with 0 errors on Sun Nov 22"}, False),
        ({"problem": "no answer"}, False),
    ],
)
def test_a_scan_or_rebuild_that_runs_is_seen_in_every_form(form, active):
    assert has_active_scan(form) == active
