"""A job and a plan with all fields set, for tests of how they are drawn."""

from __future__ import annotations

from tests.records import replace
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory, PredictedFill
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.plan_screen import plan_lines

ODD = "/tank/a\x1b[31m\udcff" + "x" * 300


SETTINGS = Settings((ODD, "/tank/b"), limits=Limits(rate=5e6, until_spread=0.05))


JOB = JobView(
    job="abc123",
    state="running",
    settings=SETTINGS,
    limits=SETTINGS.limits,
    engine="copy",
    files_done=20,
    files_total=40,
    files_skipped=12,
    files_failed=1,
    bytes_handled=1 << 30,
    bytes_total=4 << 30,
    rate=1e6,
    eta_seconds=3600.0,
    current=ODD,
    before={"raidz1-0": 0.93, "raidz1-1": 0.0},
    skipped={"open for writing": 3, "changed": 9},
    failed={"No space left on device": 1},
    left_out=(
        {"path": ODD, "outcome": "failed", "reason": "No space left on device"},
        {"path": "/tank/b/log", "outcome": "skipped", "reason": "open for writing"},
    ),
    days=({"day": "2026-11-20", "moved_bytes": 5, "files_done": 1, "spread": 0.5},),
    notes=("new snapshot of tank/\x1b: what moves from now on stays allocated twice",),
)


EMPTY = PlannedDirectory(
    dir="/tank/b",
    dataset="tank/b",
    files=5,
    bytes=1 << 30,
    skipped={},
    sampled={},
    engine=None,
    why="dedup is on",
    space_needed_bytes=0,
    pinned_bytes={"snapshots": None},
    next_incremental_bytes=None,
    allocated_bytes=0,
    differs=(),
    old_bytes=None,
    below=(),
)


PLAN = PlanDocument(
    (
        replace(
            EMPTY,
            dir=ODD,
            files=10,
            bytes=1 << 40,
            engine="copy",
            why="no rewrite",
            skipped={"special file": 2},
            pinned_bytes={"snapshots": 1 << 30},
            next_incremental_bytes=7,
            sampled={"opened": 40, "open for writing": 3},
        ),
        EMPTY,
    ),
    spread_before=0.93,
    spread_after=0.1,
    target_spread=0.05,
    available_bytes=1 << 40,
    vdevs=(PredictedFill("raidz1-0", 0.93, 0.7), PredictedFill("raidz1-1", 0.0, 0.6)),
    notes=("a scrub is running: the job waits for its end",),
    refused=f"{ODD}: not possible",
)


LOOK = DisplayFormat()


def shown(plan, denied="", look=LOOK, width=100, settings=SETTINGS, pace=None):
    return plan_lines(plan, settings, pace, "zconsole …", denied, look, width)
