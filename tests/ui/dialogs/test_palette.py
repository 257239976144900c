"""The palette may be closed at any moment of its search."""

from __future__ import annotations

import pytest
from textual.command import CommandList
from textual.css.query import NoMatches

from tests.ui import frames
from tests.ui.fakes import until, view_state
from zconsole.ui.themed_app import ConsolePalette


async def opened(app, pilot):
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(app.screen, ConsolePalette) and app.focused)
    return app.screen


async def test_a_search_that_begins_as_its_list_goes_away_ends_nothing():
    async with view_state(frames.healthy()) as (app, pilot, screen):
        palette = await opened(app, pilot)
        await palette.query_one(CommandList).remove()
        worker = palette._gather_commands("")
        await until(pilot, lambda: worker.is_finished)
        await pilot.press("escape")
        assert app.is_running
        assert "OK  backup" in screen()


async def test_a_failure_of_the_search_itself_is_one():
    async def fails():
        raise NoMatches("another part")

    async with view_state(frames.healthy()) as (app, pilot, _):
        palette = await opened(app, pilot)
        with pytest.raises(NoMatches, match="another part"):
            await palette._while_open(fails)
