"""Plans for lighting a bay."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import FACTS, disk, new_disk, raidz2
from zconsole.actions.locate import plan_lights_off, plan_locate
from zconsole.actions.plan import LightOrder
from zconsole.hardware.device import Contents

LED = new_disk(
    path="/dev/disk/by-id/d00",
    node="/dev/sda",
    aliases=("/dev/disk/by-id/d00-part1",),
    locate="/sys/x/locate",
    contents=Contents(zfs_pool="tank"),
)


def test_all_lights_go_off_without_a_device():
    assert plan_lights_off(raidz2()).steps[0].light == LightOrder(False)


@rows(
    ("contents", "doubted"),
    [
        (Contents(), True),
        (Contents(zfs_pool="other"), True),
        (Contents(zfs_pool="tank"), False),
        (Contents(zfs_pool=""), False),
        (Contents(unread=True), False),
    ],
)
def test_another_disk_may_sit_where_a_failed_one_was(contents, doubted):
    """The path of a pulled disk may name the one that was inserted later."""
    facts = replace(FACTS, devices=(replace(LED, serial="S9", contents=contents),))
    s = raidz2(changes=(disk("d00", 1000, "UNAVAIL"),), facts=facts)
    text = "the disk there now (serial S9) has no label of tank: it may be another disk"
    warnings = plan_locate(s, "1000", on=True).warnings
    assert any(text in warning for warning in warnings) == doubted
    well = plan_locate(raidz2(facts=facts), "1000", on=True)
    assert well.warnings == ()
