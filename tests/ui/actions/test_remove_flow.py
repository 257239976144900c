"""Removing by the menu: what the plan says, what becomes of it, and a checkpoint before an add."""

from __future__ import annotations

from tests.table import rows
from tests.ui.actions.acting import acting, commands, pick
from tests.ui.actions.scripted import AGREED, Run, ScriptedSession
from tests.ui.actions.test_add_flow import marking, scripted
from tests.ui.drawn import flat
from zconsole.ui.actions.add_flow import add_flow
from zconsole.ui.actions.menu import actions_flow

DAY = 24 * 3600.0


async def test_a_vdev_is_evacuated_to_its_end_and_its_disks_are_named():
    ui = ScriptedSession("mirror-scrub", "Remove mirror-2 from the pool", Run(typed="mirror-2"))
    await actions_flow(ui, ui.key("GC6M572Y"))
    assert "the copy takes about 7h02m, estimated from the running scrub's speed" in ui.plan
    assert "memory for the table of moved blocks: about 384M" in ui.plan
    assert "(serial GC6M572Y), " in ui.plan
    assert ui.asked_for == "mirror-2"
    assert ui.commands == [["remove", "mirrors", "mirror-2"]]
    ui.pass_time(60.0)
    (view,) = ui.frame.activities
    assert (view.activity.kind, view.activity.vdev) == ("removal", "mirror-2")
    ui.pass_time(3 * DAY, 600.0)
    bays = "mirrors no longer uses Slot 05, Slot 06"
    assert ui.messages == [f"{bays}: mirror-2 is no longer part of mirrors"]
    assert "mirror-2" not in [row.vdev.name for row in ui.frame.rows]


@rows("row", ["bay19", "bay21", "mirror-4"])
async def test_a_spare_a_cache_and_a_log_are_removed_at_once(row):
    ui = ScriptedSession("healthy", "Remove", AGREED)
    await actions_flow(ui, ui.key(row))
    ui.pass_time(10.0, 2.0)
    assert row not in [row.vdev.name for row in ui.frame.rows]
    assert f"{row} is no longer part of vault" in ui.messages[0]


async def test_a_removal_is_canceled_and_that_alone_is_told():
    ui = ScriptedSession("mirror-scrub", "Remove mirror-2", Run(typed="mirror-2"))
    await actions_flow(ui, ui.key("mirror-2"))
    ui.pass_time(600.0)
    ui.answers.extend(("Cancel the removal", AGREED))
    await actions_flow(ui, ui.key("mirror-2"))
    ui.pass_time(10.0, 2.0)
    assert ui.messages == ["no removal is running any more"]
    assert "mirror-2" in [row.vdev.name for row in ui.frame.rows]


async def test_a_vdev_is_added_after_a_checkpoint_that_is_discarded_again():
    ui = scripted("mirror-scrub", 2, "mirror of 2 disks like the others", marking(2), Run(way=1))
    assert await add_flow(ui, "")
    assert [command[:2] for command in ui.commands] == [
        ["checkpoint", "mirrors"],
        ["add", "mirrors"],
    ]
    assert "zpool import --rewind-to-checkpoint mirrors" in ui.plan
    ui.pass_time(120.0)
    assert ui.frame.seen.checkpoint is not None
    ui.answers.extend(("Discard the checkpoint", Run(typed="mirrors")))
    await actions_flow(ui, "")
    ui.pass_time(120.0)
    assert ui.frame.seen.checkpoint is None
    assert "the checkpoint of mirrors is discarded" in ui.messages


@rows(("scenario", "layout", "disks"), [("mirror-scrub", "log", 2), ("resilver", "raidz2", 6)])
async def test_no_checkpoint_is_offered_where_none_helps_or_a_resilver_runs(
    scenario, layout, disks
):
    ui = scripted(scenario, disks, layout, marking(disks))
    await add_flow(ui, "")
    assert ui.plans
    assert "zpool add " in ui.plan
    assert "checkpoint" not in ui.plan


async def test_the_plan_of_a_vdev_is_read_and_run_by_keys_where_it_is_narrow():
    async with acting("mirror-scrub", (60, 15)) as a:
        await a.to("mirror-2")
        await a.press("A")
        await pick(a, "Remove mirror-2")
        assert "Remove mirror-2 from mirrors" in a.screen
        assert "zpool remove mirrors mirror-2" in flat(a.screen)
        await a.press("tab", *"mirror-2", "enter")
        assert commands(a) == [["remove", "mirrors", "mirror-2"]]
        assert "Started." in a.screen


async def test_the_age_of_a_checkpoint_is_told():
    async with acting("not-restored", (100, 40)) as a:
        assert "checkpoint exists for " in a.screen
