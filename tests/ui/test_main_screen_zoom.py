"""Panes that are shown, hidden, and zoomed to the whole screen."""

from __future__ import annotations

import pytest
from textual import events

from tests.records import replace
from tests.ui import frames
from tests.ui.fakes import view_state
from zconsole.pool.model import Activity
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import ActivityView, Frame


async def test_the_scan_zoomed_on_a_small_screen_is_told_whole():
    async with view_state(frames.resilver(), size=(60, 15)) as (_, pilot, screen):
        assert "finding blocks" not in screen()
        await pilot.press("shift+tab", "z")
        assert "finding blocks" in screen()
        await pilot.press("z")
        assert "finding blocks" not in screen()


async def test_the_zoomed_scan_says_that_there_is_more_below():
    async with view_state(frames.flaky(), size=(60, 15)) as (_, pilot, screen):
        await pilot.press("shift+tab", "z")
        title = next(line for line in screen().splitlines() if "resilvering" in line)
        assert title.endswith(" ↓")
        assert "12.9T" in title, "nothing of it is covered"
        while "new errors" not in screen():
            before = screen()
            await pilot.press("down")
            assert screen() != before


async def test_tab_goes_round_the_panes():
    async with view_state(frames.resilver(), size=(80, 30)) as (app, pilot, _):
        seen = [app.focused.id]
        for _ in range(4):
            await pilot.press("tab")
            seen.append(app.focused.id)
        assert seen == ["devices", "scan", "balance", "events", "devices"]
        await pilot.press("shift+tab")
        assert app.focused.id == "events"


async def test_tabs_that_come_in_one_packet_go_as_far():
    """On a slow link, keys typed one after another arrive in one packet."""
    async with view_state(frames.resilver(), size=(80, 30)) as (app, pilot, screen):
        for key in ("tab", "tab", "tab", "z"):
            app.post_message(events.Key(key, None if key == "tab" else key))
        await pilot.pause()
        assert app.focused.id == "events"
        assert "EVENTS" in screen()
        assert "BALANCE" not in screen()


def with_trims(state: str) -> Frame:
    """Return eight devices that are being trimmed, or whose trim was paused."""
    trims = [Activity("trim", state, f"sd{n}", total_bytes=2, done_bytes=1) for n in "abcdefgh"]
    views = tuple(ActivityView(a, None, Estimate(60.0, 50.0, 70.0, "")) for a in trims)
    return replace(frames.healthy(), scans=(), activities=views)


async def test_what_is_beyond_the_room_is_counted_and_zoom_shows_it_all():
    async with view_state(with_trims("paused"), size=(60, 15)) as (app, pilot, screen):
        assert "+6 more" in screen()
        assert screen().count("ETA") == 2
        app.query_one("#scan").focus()
        await pilot.press("z")
        assert "+" not in screen()
        assert screen().count("ETA") == 5


async def test_many_devices_at_one_work_are_told_together_and_zoom_shows_each():
    async with view_state(with_trims("running"), size=(60, 15)) as (app, pilot, screen):
        assert "trim of 8 devices running" in screen()
        assert screen().count("ETA") == 1
        app.query_one("#scan").focus()
        await pilot.press("z")
        assert "8 devices" not in screen()
        assert screen().count("ETA") == 5


async def test_the_line_of_keys_tells_those_of_the_pane_in_focus():
    async with view_state(frames.resilver(), size=(80, 24)) as (app, pilot, screen):
        assert "Enter detail" in screen()
        app.set_focus(app.main_screen.query_one("#scan"))
        await pilot.pause()
        last = screen().splitlines()[-1]
        assert "Left older  Right newer  End now  z zoom" in last
        assert "Enter detail" not in last
        app.set_focus(app.devices)
        await pilot.pause()
        assert "Enter detail" in screen()


async def test_a_scan_without_a_graph_names_no_keys_of_one():
    async with view_state(frames.healthy(), size=(80, 24)) as (app, pilot, screen):
        app.set_focus(app.main_screen.query_one("#scan"))
        await pilot.pause()
        assert "older" not in screen().splitlines()[-1]


@pytest.mark.parametrize("pane", ["scan", "devices", "balance", "events"])
async def test_the_whole_screen_of_a_pane_names_the_key_that_leaves_it(pane):
    async with view_state(frames.resilver(), size=(80, 40)) as (app, pilot, screen):
        app.set_focus(app.main_screen.panes[pane])
        await pilot.press("z")
        assert "? help  z zoom out" in screen().splitlines()[-1]
        assert screen().splitlines()[-1].count(" z ") == 1
        await pilot.press("z")
        assert "zoom out" not in screen()
