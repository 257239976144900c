"""Which device is replaced, by what and how, asked by keys on the simulated pool."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import RUN, acting, commands, pick
from tests.ui.drawn import plain
from zconsole.ui.panes.devices import AWAITED


async def test_replacing_a_healthy_disk_while_another_has_failed_says_so_first():
    async with acting("failed-disk") as a:
        await a.to("bay04")
        await a.press("R", "enter")
        assert "bay04 shows no errors; bay05 has failed" in a.screen.splitlines()[2]


async def test_fresh_disks_come_before_the_hot_spare():
    async with acting("failed-disk", size=(100, 30)) as a:
        await a.to("bay05")
        said = await a.read(a.press("R"))
        assert said.index("bay15") < said.index("hot spare of this pool")
        assert said.index("hot spare of this pool") < said.index("more that can't be used here")
        assert "too small" not in said
        assert "too small" in await a.read(a.press("G", "enter"))
        await pick(a, "bay11")
        said = " ".join(a.screen.split())
        assert "hot spare bay11 only stands in" in said
        assert "until bay05 is replaced by another disk" in said


async def test_a_batch_is_put_together_and_run_as_one():
    async with acting("failed-disk", size=(110, 40)) as a:
        await a.to("bay09")
        await a.press("A")
        await pick(a, "Replace several devices")
        assert "REPLACE DEVICES OF mirror-1" in a.screen
        await a.press("enter")
        await pick(a, "bay16")
        assert "Plan these 1" in a.screen
        await a.press("G", "enter")
        assert "order: bay09" in a.screen
        assert (
            "leave bay09 plugged in until it finishes: it still counts for redundancy" in a.screen
        )
        await a.press(*RUN)
        assert commands(a)[0][0] == "replace"


@pytest.mark.parametrize(("version", "errs"), [("2.3.9", False), ("2.3.6", True)])
async def test_a_sequential_rebuild_comes_first_only_where_it_works(version, errs):
    """Another rebuild runs, which bars the healing way."""
    async with acting("sequential") as a:
        for pool in a.feed.world.pools:
            pool.version = version
        await a.to("mirror-2")
        await a.press("j", "R", "enter")
        assert ("Unavailable" in a.screen) == errs
        said = await a.read(a.press("v")) if errs else a.screen
        assert "zpool replace -s" in said
        assert ("(fixed in 2.3.7)" in " ".join(said.split())) == errs


async def test_a_refused_way_is_left_out_beside_one_that_works():
    async with acting("failed-disk") as a:
        await a.to("bay05")
        await a.press("R", "enter")
        assert "zpool replace" in a.screen
        assert "nother way" not in a.screen


@pytest.mark.parametrize(("row", "where"), [("the pool", "tank"), ("its vdev", "raidz2-0")])
async def test_replace_on_a_pool_or_vdev_takes_the_only_failed_disk_and_says_so(row, where):
    async with acting("failed-disk") as a:
        a.app.devices.focus()
        await a.press("g", *(("j",) if row == "its vdev" else ()))
        await a.press("R")
        title = f"REPLACE bay05 (FAULTED: the failed device of {where}) WITH"
        assert title in a.screen.splitlines()[0]


async def test_replace_on_a_healthy_pool_asks_for_a_device():
    async with acting("healthy") as a:
        a.app.devices.focus()
        await a.press("g", "R")
        assert any("has failed" in n.message for n in a.app.messages)


@pytest.mark.parametrize("row", ["pool", "logs"])
async def test_a_failed_device_that_is_being_replaced_is_not_said_to_be_well(row):
    async with acting("resilver") as a:
        a.app.devices.focus()
        await a.press("g")
        while row == "logs" and "logs" not in plain(a.app.devices.line_at(a.app.devices.cursor)):
            await a.press("j")
        await a.press("R")
        (told,) = (n.message for n in a.app.messages)
        assert told == (
            "bay03 is already being replaced by bay09 (45.7 %)."
            " C follows it; to replace another, select a device"
        )


async def test_replace_on_a_suspended_pool_says_that_it_is_and_what_comes_first():
    async with acting("suspended") as a:
        await a.pass_time(50.0, 10.0)
        a.app.devices.focus()
        await a.press("g", "R")
        assert [n.message for n in a.app.messages][-1] == (
            "backup is suspended: reconnect Slot 04, then clear the pool (A)"
        )


async def test_the_failed_disk_is_not_offered_as_its_own_replacement():
    async with acting("failed-disk") as a:
        await a.to("bay05")
        said = (await a.read(a.press("R", "G", "enter"))).splitlines()
        rows = [line for line in said if " 3.64T " in line or "failed disk" in line]
        assert "bay05" in rows[-1]
        assert "this is the failed disk" in rows[-1]


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_after_a_replace_the_cursor_is_on_the_disk_that_is_filled(size):
    async with acting("failed-disk", size) as a:
        await a.press("R", "enter", *RUN, "escape")
        await a.pass_time(6, 1)
        row = next(line for line in a.app.devices._items if line.row and line.row.vdev.unfilled)
        assert a.app.devices.current == row
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
        assert a.app.devices._being_filled()
        assert a.app.devices.awaits_filled


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_escape_from_typing_a_path_leads_back_to_the_list(size):
    async with acting("failed-disk", size) as a:
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
