"""Why a pool's word of health is what it is."""

from __future__ import annotations

from tests.table import rows
from tests.ui import frames
from tests.ui.frames.making import disk, frame, group
from zconsole.pool.health import Health
from zconsole.pool.redundancy import Redundancy
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.reasons import all_reasons


@rows(("repaired", "left", "told"), [(True, 0, True), (False, 0, False), (True, 1, False)])
def test_an_old_disk_that_does_not_count_is_named_where_no_redundancy_is_left(repaired, left, told):
    """In a resilver the headline said NONE, and no word why: the old disk was still there."""
    old, new = disk("old", resilvering=repaired), disk("new", resilvering=True)
    top = group("raidz1-0", "raidz1", group("replacing-0", "replacing", old, new), disk("other"))
    made = frame(
        group("tank", "root", top),
        health=Health("ERRORS", "error", ("3 data errors: files are damaged",)),
        redundancy=(Redundancy("raidz1-0", left, ("other",)),),
        scans=frames.resilver().scans,
    )
    why = "old is repaired, too: until its replacement is filled, it doesn't count"
    assert (why in all_reasons(made, DisplayFormat(), 80)) == told
