"""Clicks: on a named key, on a pool's tab, on a pane; and the scroll wheel."""

from __future__ import annotations

import pytest
from textual.events import MouseScrollDown

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import until, view_state
from zconsole.ui.dialogs.screens import HelpScreen, PickScreen


def place(said: str, word: str, line: int = -1) -> tuple[int, int]:
    """Return the position of a word in a line of the screen."""
    lines = said.splitlines()
    return lines[line].index(word), line % len(lines)


async def test_a_click_on_a_key_of_the_footer_is_the_key_and_one_between_keys_does_nothing():
    async with view_state(frames.resilver()) as (app, pilot, read):
        for word in ("?", "help"):
            await pilot.click(offset=place(read(), word))
            assert isinstance(app.screen, HelpScreen)
            await pilot.click(offset=place(read(), "Esc"))
            assert app.main_on_top
        before = read()
        await pilot.click(offset=(0, 23))
        await pilot.click(offset=(79, 23))
        assert app.main_on_top
        assert read() == before


async def test_a_click_on_a_tab_shows_its_pool():
    made = (frames.resilver(), frames.healthy(), frames.imbalance())
    async with view_state(*made) as (app, pilot, read):
        tabs = next(i for i, line in enumerate(read().splitlines()) if "backup OK" in line)
        await pilot.click(offset=place(read(), "media", tabs))
        await until(pilot, lambda: " OK  media" in read())
        await pilot.click(offset=place(read(), "[", -1))
        await until(pilot, lambda: " OK  backup" in read())
        assert app.main_on_top


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_a_click_on_the_headline_leads_to_what_it_is_about(size):
    async with view_state(frames.resilver(), size=size) as (app, pilot, read):

        def at(word):
            lines = read().splitlines()
            row = next(i for i, line in enumerate(lines) if word in line)
            return lines[row].index(word), row

        await pilot.click(offset=at("ETA"))
        assert app.focused is app.main_screen.scan
        await pilot.click(offset=at("NEW ERRORS" if size[0] >= 80 else "ERR 1h"))
        assert app.devices.arrangement.sort == "errors"
        await pilot.click(offset=at("DEGRADED"))
        assert app.focused is app.main_screen.query_one("#events")
        assert app.focused.display


async def test_a_click_on_a_title_focuses_the_pane():
    async with view_state(frames.resilver()) as (app, pilot, read):
        title = next(i for i, line in enumerate(read().splitlines()) if "BALANCE" in line)
        await pilot.click(offset=(3, title))
        assert app.focused is app.main_screen.query_one("#balance")


async def test_the_wheel_scrolls_the_list():
    async with view_state(frames.many(200)) as (app, pilot, _):
        x, y = app.devices.region.offset
        event = MouseScrollDown(app.devices, x, y + 3, 0, 1, 0, False, False, False)
        app.devices.post_message(event)
        await until(pilot, lambda: app.devices.scroll_offset.y > 0)
        assert app.devices.scroll_offset.y > 0


async def test_a_click_moves_the_cursor_of_a_menu_and_a_double_click_chooses():
    async with acting("mirror-scrub") as a:
        await a.press("A")
        menu = a.app.screen
        assert isinstance(menu, PickScreen)
        await a.pilot.click(offset=(3, 3))
        assert menu.view.cursor == 2
        await a.pilot.click(offset=(3, 1), times=2)
        await a.rest()
        assert a.app.screen is not menu


async def test_a_double_click_on_a_tunable_asks_for_its_value():
    async with acting("mirror-scrub") as a:
        await a.press("T")
        await a.pilot.click(offset=(3, 3), times=2)
        assert (await a.read(a.rest())).startswith(" SET zfs_")


async def test_a_click_moves_the_cursor_of_the_devices_and_a_double_click_opens_the_detail():
    async with view_state(frames.resilver(), size=(100, 40)) as (app, pilot, _):
        await pilot.click("#devices", offset=(5, 4))
        assert app.devices.cursor == 3
        await pilot.click("#devices", offset=(5, 4), times=2)
        assert app.devices.expanded == {app.devices.current.key}
