"""What the scans that run are called in plans."""

from __future__ import annotations

from tests.table import rows
from zconsole.actions.running_scans import progress
from zconsole.pool.model import Scan


@rows(("stage", "said"), [("scanning", "0.0 %, metadata 2.2 %"), ("issuing", "0.0 %")])
def test_how_far_a_scan_is_includes_the_metadata_while_that_is_scanned(stage, said):
    scan = Scan("scrub", "running", stage=stage, percent=0.0, total_bytes=1000, scanned_bytes=22)
    assert progress(scan) == said
