"""Whole swaps by keys in scenarios whose disks are named by bay."""

from __future__ import annotations

from collections.abc import Sequence

from tests.ui.swap.steps import Swapping, swapping
from tests.unit.swap.playing import Play, with_second_pool
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap.swap_screen import SwapScreen


def serial(drawer: Sequence[str], text: str) -> str:
    """Return the serial number of the first disk of the drawer with this text."""
    return next(disk for disk in drawer if text in disk).rpartition(" ")[2]


async def begin_way(s: Swapping, number: int) -> str:
    """Press C, then choose the way with this number, counted from 1."""
    await s.choose()
    await s.press(*["v"] * (number - 1), "right", "enter")
    await s.on(SwapScreen)
    return await s.read(s.pass_by())


async def skip_until(s: Swapping, seen: str) -> str:
    """Press f, which lets the demo skip hours, until the screen shows a text."""
    for _ in range(12):
        if seen in s.screen:
            return s.screen
        await s.press("f")
        await s.pass_by()
        await s.pass_by(30.0)
    raise AssertionError(s.screen)


def words(s: Swapping) -> str:
    """Return the text of the screen's right column as one line."""
    return " ".join(" ".join(line[34:] for line in s.screen.splitlines()).split())


async def test_esc_in_the_choice_of_a_bay_goes_back_to_the_choice_of_a_disk():
    async with swapping((80, 24)) as s:
        await s.begin()
        await s.press("I")
        await s.on(PickScreen)
        await s.press("j", "enter")
        await s.until(lambda: "into which bay?" in s.screen)
        await s.press("escape")
        await s.until(lambda: "insert which disk" in s.screen)
        assert s.app.screen.view.cursor == 1
        await s.press("escape")
        await s.on(SwapScreen)


async def test_a_failed_disk_is_pulled_first_and_a_wrong_one_caught(tmp_path):
    async with swapping((80, 24), scenario="failed-disk") as s:
        assert "Switch on the light of bay05" in await begin_way(s, 3)
        assert "Pull bay05 (serial" in await s.read(s.do())
        assert "WRONG DISK: put bay06" in await s.read(s.pull("bay06"))
        new = serial(s.swap.hands.drawer(), "new: WDC")
        await s.insert(new, "bay06")
        assert f"bay06 holds serial {new}: not the one." in words(s)
        await s.pull("bay06")
        assert "Bring bay06" in await s.read(s.insert("pulled", "bay06"))
        assert "Wait until bay06" in await s.read(s.do())
        await skip_until(s, "Pull bay05")
        small = serial(s.swap.hands.drawer(), "new: INTEL")
        await s.pull("bay05")
        assert "does not fit" in await s.read(s.insert(small, "bay05"))
        await s.pull("bay05")
        await s.insert(new, "bay05")
        assert f"Replace serial D65WFFEL with serial {new} in bay05" in words(s)
        assert "not new" not in words(s)
        assert f"Wait until bay05 (serial {new}) is filled" in await s.read(s.do())
        await skip_until(s, "Switch off the light")
        assert "Scrub tank" in await s.read(s.do())
        await s.do()
        await skip_until(s, "Save the report as a file")
        await s.press("enter")
        await s.settled()
        (report,) = tmp_path.glob("zconsole-*.md")
        said = report.read_text()
        assert "wrong disk: bay06 (serial G4PXTEXR) left the machine" in said
        assert f"bay05 (serial {new}) has replaced bay05 (serial D65WFFEL)" in said


async def test_a_free_disk_replaces_first_and_the_old_one_is_pulled_afterwards(tmp_path):
    async with swapping((80, 24), scenario="failed-disk") as s:
        assert "Replace bay05 (serial D65WFFEL) with" in await begin_way(s, 1)
        assert "H light" not in s.screen
        assert "Wait until bay14" in await s.read(s.do())
        assert "though ZFS doesn't read from it" in words(s)
        await skip_until(s, "Switch on the light of bay05")
        assert "Pull bay05 (serial" in await s.read(s.do())
        assert "No way back: the old disk has left the pool already" in words(s)
        assert "WRONG DISK: put bay04" in await s.read(s.pull("bay04"))
        assert "Bring bay04" in await s.read(s.insert("pulled", "bay04"))
        await s.do()
        await skip_until(s, "Pull bay05 (serial")
        assert "Switch off the light" in await s.read(s.pull("bay05"))
        assert "Scrub tank" in await s.read(s.do())
        assert "Save the report as a file" in await s.read(s.do("Y"))
        await s.press("enter")
        await s.settled()
        (report,) = tmp_path.glob("zconsole-*.md")
        assert "has replaced bay05 (serial D65WFFEL)" in report.read_text()


async def test_a_disk_with_devices_of_two_pools_is_swapped_and_the_other_one_offered():
    async with swapping((80, 24)) as s:
        second = with_second_pool(Play(world=s.feed.world), "Slot 07", "Slot 08")
        s.feed.step()
        await s.settled()
        await s.choose()
        shown = await s.read(s.press("v"))
        await s.press("pagedown")
        shown = " ".join(f"{shown} {s.screen}".split())
        assert "may fail in mirror-0 of fast without losing data" in shown
        assert "fast needs a swap of its own afterwards" in shown
        await s.press("right", "enter")
        await s.on(SwapScreen)
        assert "of tank offline" in " ".join((await s.read(s.pass_by())).split())
        await s.do()
        assert "of fast offline" in words(s)
        await s.do()
        assert second.tops[0].lost() == 1
        await s.do()
        new = serial(s.swap.hands.drawer(), "new: WDC")
        assert "Insert the new disk" in await s.read(s.pull("Slot 07"))
        assert "Replace serial" in await s.read(s.insert(new, "Slot 07"))
        await s.do()
        await skip_until(s, "Switch off the light")
        await s.do()
        assert "n other pool" in await s.read(s.do("Y"))
        await s.press("n")
        assert "SWAP" in await s.read(s.on(ConfirmScreen))
