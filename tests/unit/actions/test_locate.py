"""What lighting a bay, and making its disk blink, would do."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    FACTS,
    disk,
    new_disk,
    raidz2,
    said,
)
from zconsole.actions.locate import plan_blink, plan_lights_off, plan_locate
from zconsole.actions.plan import LightOrder, failing
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


def test_all_lights_go_off_without_a_device():
    assert plan_lights_off(raidz2()).steps[0].light == LightOrder(False)


@rows(
    ("leaf", "facts", "text"),
    [
        (disk("d00", 1000, "REMOVED"), LIT, "no longer sees it"),
        (disk("d00", 1000), replace(FACTS, devices=()), "no longer sees it"),
        (replace(disk("d00", 1000), kind="file"), LIT, "is a file: only a disk can blink"),
    ],
)
def test_what_cannot_blink_is_refused(leaf, facts, text):
    plan = plan_blink(raidz2(changes=(leaf,), facts=facts), "1000", on=True, busy={})
    assert text in (plan.refused or "not refused")


def test_blinking_only_reads_and_ends():
    plan = plan_blink(raidz2(facts=LIT), "1000", on=True, busy={})
    assert plan.steps[0].light == LightOrder(True, LED, blink=True)
    assert plan.warnings == ()
    for text in ("nothing is written", "for 30 minutes", "20 small reads a second", "off or quit"):
        assert text in said(plan)
    off = plan_blink(raidz2(facts=LIT), "1000", on=False, busy={})
    assert off.steps[0].light == LightOrder(False, LED, blink=True)


def test_blinking_proves_nothing_where_other_disks_are_busy():
    busy = {"sdb": 0.9, "sdc": 0.5, "sdd": 0.344, "sde": 0.1, "sdf": 0.03}
    (warning,) = plan_blink(raidz2(facts=LIT), "1000", on=True, busy=busy).warnings
    assert "proves nothing" in warning
    assert "(sdb 90 %, sdc 50 %, sdd 34 % and 2 more)" in warning
    (warning,) = plan_blink(raidz2(facts=LIT), "1000", on=True, busy={"sda": 0.9}).warnings
    assert "busy itself" in warning


def test_a_failed_disk_may_not_blink():
    s = raidz2(changes=(disk("d00", 1000, "FAULTED"),), facts=LIT)
    (warning,) = plan_blink(s, "1000", on=True, busy={}).warnings
    assert "may not answer" in warning


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
    """The path of a disk that was pulled may name the one that was put in since."""
    facts = replace(FACTS, devices=(replace(LED, serial="S9", contents=contents),))
    s = raidz2(changes=(disk("d00", 1000, "UNAVAIL"),), facts=facts)
    plans = (plan_locate(s, "1000", on=True), plan_blink(s, "1000", on=True, busy={}))
    for plan in plans:
        text = "the disk there now (serial S9) has no label of tank: it may be another disk"
        assert any(text in warning for warning in plan.warnings) == doubted
    well = plan_locate(raidz2(facts=facts), "1000", on=True)
    assert well.warnings == ()


def test_a_disk_that_has_another_node_by_now_does_not_blink():
    """A path survives that udev gives disks other nodes; the node read must be of that disk."""
    plan = plan_blink(raidz2(facts=LIT), "1000", on=True, busy={})
    renamed = replace(LIT, devices=(replace(LED, node="/dev/sdb"),))
    why = failing(plan.preconditions, raidz2(facts=renamed))
    assert why == "d00 is /dev/sdb now, not /dev/sda; plan again"
    assert failing(plan.preconditions, raidz2(facts=LIT)) is None
