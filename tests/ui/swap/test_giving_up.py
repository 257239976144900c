"""A swap that is abandoned by keys: the way back, the light, and what is left undone."""

from __future__ import annotations

import os

from tests.ui.swap.steps import Swapping, keys_of, main_line, question, ran, swapping
from zconsole.sim import commands
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.swap.swap_screen import GIVE_UP, SwapScreen
from zconsole.zfs.sources.base import Capabilities


async def test_the_way_back_puts_the_disk_online_and_then_closes():
    async with swapping() as s:
        await s.to_pull()
        assert "Switch on the light" in await s.read(s.do("Z"))
        assert "Take Slot 07 (serial" in await s.read(s.do("Z"))
        assert ran(s) == ["offline", "light", "online"]
        assert "nothing to undo" in await s.read(s.press("Z"))
        assert "X     Give up this swap: nothing is left to undo" in s.screen
        await s.do("X")
        assert s.store_new().state == "backed out"
        assert "Save the report" in s.screen
        await s.press("escape")
        assert await main_line(s) == ""


async def test_giving_up_before_the_first_step_says_that_nothing_has_been_done():
    async with swapping() as s:
        await s.begin()
        assert "X     Give up this swap: nothing has been done yet" in s.screen
        await s.press("X")
        assert "Nothing has been done yet." in await s.read(s.on(ConfirmScreen))


async def test_giving_up_amid_a_swap_takes_a_word_and_what_is_left_undone_stays_in_sight():
    async with swapping() as s:
        shown = await question(s, "X")
        assert "What was done stays as it is" in shown
        await s.press("escape")
        assert s.store_new().state == "open"
        await s.do("X", word=GIVE_UP)
        assert s.store_new().state == "backed out"
        assert "given up at step 2 of 9" in s.screen.splitlines()[0]
        assert "Enter save report" in s.screen.splitlines()[-1]
        said = await left_undone(s, "given up; left:")
        assert said.startswith("Slot 07 (serial RGYCXAL5) is still OFFLINE: run zpool online tank")
        commands.online(s.feed.world.pools[0], s.store_new().old.path)
        for _ in range(3):
            await s.pass_by(60.0)
        assert "is still OFFLINE" not in s.screen


async def test_giving_up_switches_the_light_off():
    async with swapping() as s:
        await s.to_pull()
        assert s.feed.world.lit
        await s.press("X")
        shown = await s.read(s.on(ConfirmScreen))
        assert "Give up this swap, and switch the light off?" in shown
        assert "The light of Slot 07 is still on" not in shown
        await s.press(*keys_of(GIVE_UP), "enter")
        await s.until(lambda: s.store_new().state == "backed out")
        assert not s.feed.world.lit
        undone = " ".join(s.store_new().undone)
        assert "OFFLINE" in undone
        assert "light" not in undone


async def test_a_disk_pulled_while_giving_up_is_asked_is_named_as_left_undone():
    async with swapping() as s:
        await s.begin()
        await s.press("X")
        assert "Nothing has been done yet" in await s.read(s.on(ConfirmScreen))
        s.swap.hands.pull("Slot 01")
        s.feed.step(1.0)
        await s.press("right", "enter")
        await s.until(lambda: s.store_new().state == "backed out")
        assert "Slot 01" in " ".join(s.store_new().undone)


async def test_giving_up_may_leave_the_light_on():
    async with swapping() as s:
        await s.to_pull()
        await s.press("X")
        await s.on(ConfirmScreen)
        await s.press("tab", "tab", "tab", "enter")
        assert "Give up this swap, and leave the light on?" in s.screen
        assert "The light of Slot 07 is still on" in s.screen
        await s.press(*keys_of(GIVE_UP), "enter")
        await s.until(lambda: s.store_new().state == "backed out")
        assert s.feed.world.lit
        assert "the light of Slot 07 is still on" in " ".join(s.store_new().undone)


async def test_a_light_that_was_left_on_is_switched_off_from_the_report():
    async with swapping() as s:
        await s.swapped()
        await s.seen("Switch off the light")
        await s.press("Y")
        asked = await s.read(s.on(ConfirmScreen))
        assert "Skips the step: the light stays on" in asked
        assert "Switch off" not in asked
        await s.press("escape")
        await s.on(SwapScreen)
        await s.do("Y")
        shown = await s.read(s.do("Y"))
        assert "The light of Slot 07 is still on; it goes off 4 hours after" in shown
        assert "H light" in shown
        await s.do("H")
        assert not s.feed.world.lit
        assert "is still on" not in await s.read(s.pass_by())


async def test_a_disk_that_is_out_is_named_on_the_main_screen_and_where_the_swap_is_given_up():
    async with swapping() as s:
        await s.begin()
        await s.pull("Slot 01")
        assert "Slot 01" in await s.read(s.do("Y", word="out"))
        said = await left_undone(s)
        assert said.startswith("Slot 01 (serial GSKHFHS4) is still out: put it back, then run")
        assert "zpool online tank " in said
        await s.press("C")
        await s.on(SwapScreen)
        await s.press("X")
        asked = await s.read(s.on(ConfirmScreen))
        assert "is still out: put it back, then run zpool online tank" in asked
        assert "then Z" not in asked  # the key does nothing here
        await s.press(*keys_of(GIVE_UP), "enter")
        await s.until(lambda: s.store_new().state == "backed out")
        await s.on(SwapScreen)
        shown = await s.read(s.pass_by())
        assert "Given up. Not undone:" in shown
        assert "✓" not in shown


async def test_leaving_the_demo_says_that_an_unfinished_swap_ends_with_it():
    async with swapping((80, 24)) as s:
        await s.begin()
        await s.press("escape")
        shown = " ".join((await s.read(s.press("q"))).split())
        assert "Quit?" in shown
        assert "The swap of Slot 07 (serial RGYCXAL5) ends with this demo" in shown
        await s.press("enter")
        assert s.app.is_running


async def test_leaving_amid_a_swap_that_is_kept_on_disk_asks_nothing():
    async with swapping((80, 24), capabilities=Capabilities("libzfs")) as s:
        await s.begin()
        await s.press("escape")
        await s.pilot.press("q")
        assert not s.app.is_running


async def left_undone(s: Swapping, label: str = "not undone:") -> str:
    """Return the main screen's text about a swap that was left undone, in one line."""
    await s.press("escape")
    shown = " ".join((await s.read(s.pass_by())).split())
    return shown.partition(f"disk swap {label} ")[2]


async def test_why_a_report_can_not_be_written_is_said(tmp_path, monkeypatch):
    """It was lost where the directory may not be written to: nothing happened."""
    tmp_path.chmod(0o777 if os.geteuid() == 0 else 0o555)  # root refuses what others may write to
    monkeypatch.chdir(tmp_path)
    async with swapping() as s:
        await s.begin()
        await s.do("X")
        await s.press("enter")
        assert "no report in" in await s.read(s.settled())
