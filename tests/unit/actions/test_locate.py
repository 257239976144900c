"""Plans for lighting a bay."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import FACTS, disk, new_disk, raidz2, said
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
LIT = replace(FACTS, devices=(LED,))


def test_locate_lights_the_bay_for_a_stated_time():
    plan = plan_locate(raidz2(facts=LIT), "1000", on=True)
    assert plan.steps[0].light == LightOrder(True, LED)
    assert plan.steps[0].argv == ("zconsole", "light", "on", "/dev/disk/by-id/d00")
    for text in ("for 4 hours", "over a reboot", "the state found before is restored", "fault LED"):
        assert text in said(plan)
    off = plan_locate(raidz2(facts=LIT), "1000", on=False)
    assert off.steps[0].light == LightOrder(False, LED)
    assert "whoever switched it on" in said(off)
    assert "one lit by zconsole is restored to what was found" in said(off)


def test_a_disk_in_a_bay_without_a_light_is_found_by_its_serial_number():
    dark = replace(FACTS, devices=(replace(LED, locate=None),))
    plan = plan_locate(raidz2(facts=dark), "1000", on=True)
    assert plan.refused == "d00 has no bay with an LED"
    (instead,) = plan.alternatives
    assert "serial number" in instead
    assert "on its label after S/N or SN" in instead


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
