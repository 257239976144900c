"""The questions before a replace: which device, by what and how; by script and by keys."""

from __future__ import annotations

import re

import pytest

from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession
from zconsole.errors import ZconsoleError
from zconsole.sim.backends.swap import simulated_swap
from zconsole.swap.choice import free_disks
from zconsole.ui.actions.replace_flow import OTHER, STANDS_IN, batch_flow, replace_flow
from zconsole.ui.panes.devices import AWAITED


async def test_a_device_is_picked_and_its_plan_run_and_followed():
    ui = ScriptedSession("failed-disk", "bay15", AGREED)
    assert await replace_flow(ui, ui.key("bay05"))
    assert "1 more device may fail in raidz2-0" in ui.plan
    assert re.search(r"the resilver takes about \d+h\d+m, estimated from the last \w+'s", ui.plan)
    assert "The console tells you when the resilver ends." in ui.ran[0]
    assert [command[0] for command in ui.commands] == ["replace"]
    assert ui.silent.awaited == 1
    ui.pass_time(2 * 86400.0, 3600.0)
    done = "bay15 (serial 3ZUV9EJ0) is in place and complete"
    assert ui.messages == [f"tank no longer uses bay05: {done}"], "the news is not cut off"


async def test_what_the_plan_predicted_stands_in_for_the_eta_until_there_is_one():
    """Blocks were being found for half an hour, and only: ETA not known yet."""
    async with acting("failed-disk", (80, 24)) as a:
        await a.to("bay05")
        await a.press("R", "enter")
        (said,) = re.findall(r"takes about (\d+h\d\dm),", await a.read(a.rest()))
        await a.press("right", "enter")
        await a.press("escape")
        a.feed.step(60.0)
        screen = await a.read(a.rest())
        assert "finding blocks" in screen
        assert "ETA not known yet" in screen.splitlines()[1]
        assert f"predicted {said} in all" in screen.splitlines()[2]
        a.feed.step(3600.0 * 3)
        a.feed.step(60.0)
        screen = await a.read(a.rest())
        assert "predicted" not in screen
        assert re.search(r"ETA \d+h", screen)


async def test_the_list_says_that_a_disk_is_part_of_a_replace_already():
    ui = ScriptedSession("failed-disk", "bay15", AGREED)
    await replace_flow(ui, ui.key("bay05"))
    ui.pass_time(60.0)
    for bay, said in (
        ("bay05", "already being replaced"),
        ("bay15", "it replaces another"),
    ):
        ui.answers.append(ESC)
        await replace_flow(ui, ui.key(bay))
        assert ui.shown[-1].startswith(f"REPLACE {bay} ({said}) WITH")


async def test_a_plan_that_is_only_read_leads_back_to_the_list():
    ui = ScriptedSession("failed-disk", "bay15", ESC, "bay14", ESC, ESC)
    assert not await replace_flow(ui, ui.key("bay05"))
    assert [text.splitlines()[0] for text in ui.shown] == [
        "REPLACE bay05 WITH",
        "Replace bay05 with bay15 (serial 3ZUV9EJ0)",
        "REPLACE bay05 WITH",
        "Replace bay05 with bay14 (serial 860JCF11)",
        "REPLACE bay05 WITH",
    ]
    assert ui.commands == []


async def test_replacing_a_healthy_disk_while_another_has_failed_says_so_first():
    ui = ScriptedSession("failed-disk", "bay15")
    await replace_flow(ui, ui.key("bay04"))
    assert "bay04 shows no errors; bay05 has failed" in ui.shown[1].splitlines()[2]


async def test_fresh_disks_come_before_the_hot_spare_and_the_failed_disk_itself_last():
    ui = ScriptedSession("failed-disk", "bay11")
    await replace_flow(ui, ui.key("bay05"))
    listed, plan = ui.shown[0], ui.plan
    assert listed.index("bay15") < listed.index("hot spare of this pool")
    assert listed.index("hot spare of this pool") < listed.index("too small")
    assert "hot spare bay11 only stands in" in plan
    assert "until bay05 is replaced by another disk" in plan
    rows = [line for line in listed.splitlines() if " 3.64T " in line]
    assert rows[-1].startswith("bay05")
    assert "this is the failed disk" in rows[-1]


async def test_every_line_says_what_a_hot_spare_is_for_where_there_is_one():
    async with acting("failed-disk", (80, 24)) as a:
        await a.to("bay05")
        await a.press("R")
        assert STANDS_IN in await a.read(a.rest())
        await a.press("down", "down")
        assert STANDS_IN in await a.read(a.rest())


async def test_a_batch_is_put_together_and_run_as_one():
    ui = ScriptedSession("failed-disk", "bay09", "bay16", "Plan these 1", AGREED)
    assert await batch_flow(ui, ui.key("bay09"))
    assert ui.shown[0].startswith("REPLACE DEVICES OF mirror-1")
    assert "replaces bay09" in ui.plan
    assert "the resilver takes is unknown: nothing is known to be allocated" in ui.plan
    assert "leave bay09 plugged in until it finishes: it still counts for redundancy" in ui.plan
    assert ui.commands[0][0] == "replace"


async def test_what_is_chosen_for_one_device_is_not_offered_for_the_next():
    ui = ScriptedSession("failed-disk", "bay09", "bay16", "bay10", ESC, ESC)
    assert not await batch_flow(ui, ui.key("bay09"))
    assert any(line.startswith("bay16") for line in ui.shown[1].splitlines())
    assert not any(line.startswith("bay16") for line in ui.shown[3].splitlines())


@pytest.mark.parametrize(("version", "errs"), [("2.3.9", False), ("2.3.6", True)])
async def test_a_sequential_rebuild_comes_first_only_where_it_works(version, errs):
    """Another rebuild is running, which rules out the healing resilver."""

    def _released(world):
        for pool in world.pools:
            pool.version = version

    ui = ScriptedSession("sequential", "ata-", prepare=_released)
    frame = ui.frame
    keys = [row.key for row in frame.rows]
    await replace_flow(ui, keys[keys.index(ui.key("mirror-2")) + 1])
    assert "zpool replace -s" in ui.plan
    assert ("Unavailable" in ui.plan) == errs
    assert ("(fixed in 2.3.7)" in ui.plan) == errs


async def test_a_refused_way_is_left_out_beside_one_that_works():
    ui = ScriptedSession("failed-disk", "bay14")
    await replace_flow(ui, ui.key("bay05"))
    assert ui.plan.count("zpool replace") == 1
    assert "Unavailable" not in ui.plan


@pytest.mark.parametrize("row", ["tank", "raidz2-0"])
async def test_replace_on_a_pool_or_vdev_takes_the_only_failed_disk_and_says_so(row):
    ui = ScriptedSession("failed-disk")
    await replace_flow(ui, ui.key(row))
    assert ui.said.startswith(f"REPLACE bay05 (FAULTED: the failed device of {row}) WITH")


async def test_replace_on_a_healthy_pool_asks_for_a_device():
    ui = ScriptedSession("healthy")
    with pytest.raises(ZconsoleError, match=r"has failed\. Select a device"):
        await replace_flow(ui, ui.key("vault"))


@pytest.mark.parametrize("row", ["tank", ""])
async def test_a_failed_device_that_is_being_replaced_is_not_said_to_be_well(row):
    ui = ScriptedSession("resilver")
    with pytest.raises(ZconsoleError) as told:
        await replace_flow(ui, ui.key(row) if row else "")
    assert str(told.value) == (
        "bay03 is already being replaced by bay09 (45.7 %)."
        " C follows it; to replace another, select a device"
    )


async def test_replace_on_a_suspended_pool_says_that_it_is_and_what_comes_first():
    ui = ScriptedSession("suspended")
    ui.pass_time(50.0, 10.0)
    with pytest.raises(ZconsoleError) as told:
        await replace_flow(ui, ui.key("backup"))
    assert str(told.value) == (
        "backup is suspended: reconnect Slot 04 (serial S5RSVHXM), then clear the pool (A)"
    )


async def test_a_path_is_asked_for_until_it_is_one_or_left_and_leads_back_to_the_list():
    ui = ScriptedSession("failed-disk", OTHER, "sdx", "/tmp/file", ESC, OTHER, ESC, ESC)
    assert not await replace_flow(ui, ui.key("bay05"))
    asked = [text.splitlines()[0].split()[0] for text in ui.shown]
    assert asked == ["REPLACE", "PATH", "PATH", "Replace", "REPLACE", "PATH", "REPLACE"]
    assert ui.messages == ["sdx: not an absolute path"]
    assert "/tmp/file" in ui.shown[3]


async def test_where_no_disk_fits_the_cursor_is_on_the_path_and_a_disk_is_asked_for():
    ui = ScriptedSession("swap", ESC)
    await replace_flow(ui, ui.key("RGYCXAL5"))
    assert "No disk of this machine fits here: insert one" in ui.said
    async with acting("swap", (80, 24)) as a:
        await a.to("RGYCXAL5")
        await a.press("R")
        shown = await a.read(a.rest())
        assert f"› {OTHER}" in shown
        assert "10 more that can't be used here" in shown


async def test_after_a_replace_the_cursor_is_on_the_group_and_the_disk_that_is_filled_in_sight():
    async with acting("failed-disk", (80, 24)) as a:
        await a.press("R", "enter", *RUN, "escape")
        await a.pass_time(6, 1)
        row = next(line for line in a.app.devices._items if line.row and line.row.vdev.unfilled)
        assert a.app.devices.current.row.vdev.kind == "replacing"
        assert f" {row.row.vdev.name} " in a.screen
        await a.press("g")
        await a.pass_time(3, 1)
        assert a.app.devices.cursor == 0


async def test_a_disk_is_awaited_for_some_samples_only():
    async with acting("failed-disk") as a:
        a.app.await_filled()
        for _ in range(AWAITED - 1):
            await a.pass_time(1, 1)
        assert a.app.devices.awaits_filled
        await a.pass_time(1, 1)
        assert not a.app.devices.awaits_filled


async def test_a_pool_that_comes_on_show_has_no_disk_that_begins_to_be_filled():
    async with acting("two-pools") as a:
        a.app.await_filled()
        for pool in (1, 0):
            a.app.action_show_pool(pool)
            await a.rest()
        assert a.app.devices._filled
        assert a.app.devices.awaits_filled


async def test_escape_from_typing_a_path_leads_back_to_the_list():
    async with acting("failed-disk", (60, 15)) as a:
        listed = await a.read(a.press("R", "G", "k"))
        assert "PATH" in await a.read(a.press("enter"))
        assert await a.read(a.press("escape")) == listed
        await a.press("escape")
        assert a.app.main_on_top


async def test_replace_without_a_row_at_the_cursor_takes_the_only_failed_disk():
    async with acting("failed-disk") as a:
        await a.press("2")
        assert a.app.devices.current is None
        assert "REPLACE bay05 (FAULTED: the failed device of tank)" in await a.read(a.press("R"))


async def test_a_disk_that_failed_is_listed_last_with_the_reason_and_its_plan_says_so():
    ui = ScriptedSession("failed-disk", "bay15", AGREED)
    await replace_flow(ui, ui.key("bay05"))
    ui.pass_time(2 * 86400.0, 3600.0)
    why = "failed in tank: FAULTED, 637 errors"
    ui.answers.extend(("bay05", ESC, ESC))
    assert not await replace_flow(ui, ui.key("bay04"))
    listed = ui.shown[-1]
    rows = listed.splitlines()
    assert next(row for row in rows if row.startswith("bay05")).endswith(why)
    assert rows[1].startswith("bay14")
    assert listed.index("hot spare of this pool") < listed.index("bay05 ") < listed.index("in this")
    assert f"the new disk {why}" in ui.plan


async def test_a_swap_does_not_offer_a_disk_that_failed():
    ui = ScriptedSession("failed-disk", "bay14", AGREED, "bay15", AGREED)
    await replace_flow(ui, ui.key("bay05"))
    ui.pass_time(2 * 86400.0, 3600.0)
    await replace_flow(ui, ui.key("bay14"))
    ui.pass_time(2 * 86400.0, 3600.0)
    ui.swaps.machine_swaps = simulated_swap(ui.world)
    view = await ui.swaps.session.view(lambda _: True)
    assert view is not None
    target = view.target(ui.key("bay15"))
    assert target is not None
    assert [device.bay for device in free_disks(view, target)] == ["bay14"]
