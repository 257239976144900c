"""What the screen of a checklist says of the scan that it waits for."""

from __future__ import annotations

from tests.factory import view
from tests.records import replace
from tests.table import rows
from zconsole.pool.model import Scan
from zconsole.swap.checklist import PULL_FIRST, Checklist, SwapStage
from zconsole.swap.disk import SwapDisk
from zconsole.timeline.eta.estimate import Estimate, nothing
from zconsole.ui.swap.swap_lines import eta_note

KNOWN = Estimate(3600.0, 1800.0, 7200.0, "issuing at 124M/s")
BARE = Estimate(3600.0, None, None, "issuing at 124M/s")


def said(function: str, step: str, estimate: Estimate = KNOWN, **fields) -> str:
    scan = Scan(function, "running", start=1.0)
    return eta_note(view(scan)._replace(estimate=estimate), SwapStage(step, "Wait", **fields))


@rows(("function", "step"), [("resilver", "resilver"), ("scrub", "scrub")])
def test_the_end_of_the_scan_that_is_waited_for_has_its_range(function, step):
    assert said(function, step) == f"The {function} ends in about 1h00m (30m00s to 2h00m)."
    assert said(function, step, BARE) == f"The {function} ends in about 1h00m."


def test_before_there_is_an_eta_the_prediction_stands_in():
    scan = view(Scan("resilver", "running", start=1.0))._replace(estimate=nothing("no data"))
    c = Checklist("1", "tank", None, 1.0, SwapDisk("sda"), "raidz2-0", PULL_FIRST)
    known = replace(c, predicted=5400.0, basis="at the pace of the last scrub")
    stage = SwapStage("resilver", "Wait")
    said = "No ETA yet; predicted to take 1h30m in all (at the pace of the last scrub)."
    assert eta_note(scan, stage, known) == said
    assert eta_note(scan, stage, c) == ""
    assert eta_note(scan, SwapStage("pull", "Pull"), known) == ""


def test_a_scrub_that_nobody_waits_for_here_is_not_told_of():
    assert said("scrub", "pull") == ""


def test_a_resilver_of_other_disks_ends_before_that_of_this_one():
    assert "starts after the running one" in said("resilver", "resilver", deferred=True)
