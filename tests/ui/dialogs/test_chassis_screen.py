"""The screen with the map of the chassis, operated by keys."""

from __future__ import annotations

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, console, screen_text
from zconsole.ui.panes.chassis import ChassisScreen


async def test_the_cursor_starts_on_the_bay_of_the_device_and_goes_by_slots_to_another_one():
    async with acting("failed-disk", (80, 24)) as a:
        await a.to("bay05")
        said = await a.read(a.press("c"))
        assert isinstance(a.app.screen, ChassisScreen)
        assert "bay05 of tank: FAULTED" in said
        assert "fault on" in said
        assert "Slot 06 of" in await a.read(a.press("l"))
        assert "Slot 10 of" in await a.read(a.press("j"))
        assert "Slot 09 of" in await a.read(a.press("left"))
        assert "Slot 24 of" in await a.read(a.press("G", "l", "l", "l", "l"))
        assert a.app.screen.copies() == (), "the slot is empty"
        await a.press("enter")
        assert isinstance(a.app.screen, ChassisScreen)
        assert "Slot 01 of" in await a.read(a.press("g", "left", "left", "left", "left"))
        assert dict(a.app.screen.copies())["bay"] == "bay01"
        await a.press("l", "l", "enter")
        assert not isinstance(a.app.screen, ChassisScreen)
        item = a.app.devices.current
        assert item is not None
        assert item.row is not None
        assert item.row.vdev.name == "bay03"


async def test_the_map_goes_on_living_and_marks_a_light_that_was_switched_on():
    async with acting("failed-disk", (80, 24)) as a:
        assert "02*    ONLINE" not in await a.read(a.press("c", "l"))
        enclosure = a.app.screen._bay.enclosure.key
        a.feed.world.lit.add((enclosure, "Slot 02"))
        await a.press("escape")
        said = await a.read(a.press("c", "l"))
        assert "02*    ONLINE" in said
        assert "locate on, fault off" in said
        assert "10 empty" in said
        (pool,) = a.feed.world.pools
        leaf = next(leaf for leaf in pool.leaves() if leaf.name == "bay02")
        leaf.present = False
        a.feed.step()
        assert "11 empty" in await a.read(a.rest())


async def test_without_enclosures_it_says_why_there_is_no_map():
    app = console(FakeFeed((frames.healthy(),)))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("c")
        await pilot.pause()
        assert "no chassis to show" in screen_text(app)
