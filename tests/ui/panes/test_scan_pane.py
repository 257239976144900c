"""The scan pane in focus: its graph goes back through the time of the scan."""

from __future__ import annotations

import re

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.fakes import FakeFeed, view_state


def span(screen):
    """The time span beside the one row of the graph."""
    row = next(line for line in screen.splitlines() if line.startswith(" rate "))
    return re.search(r"(last \S+|(to )?\S+ ago|\S+ to \S+)$", row.strip())[0]


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("", "last 40m32s"),
        ("left", "to 4m16s ago"),
        ("pageup", "to 20m16s ago"),
        ("pageup pageup pagedown", "to 20m16s ago"),
        ("pageup end", "last 40m32s"),
        ("home escape", "last 40m32s"),
        ("pageup pagedown right", "last 40m32s"),
        ("home", "5h33m-4h53m ago"),
        ("home left pageup", "5h33m-4h53m ago"),
    ],
)
async def test_keys_go_through_the_time_of_the_scan(keys, shown):
    async with view_state(frames.resilver()) as (app, pilot, screen):
        app.main_screen.scan.focus()
        for key in keys.split():
            await pilot.press(key)
        await pilot.pause()
        assert span(screen()) == shown


@pytest.mark.parametrize(("keys", "told"), [("left", False), ("home left", True)])
async def test_the_beginning_of_the_history_is_told_and_no_key_does_nothing(keys, told):
    async with view_state(frames.resilver(), notifications=True) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press(*keys.split())
        await pilot.pause()
        assert ("no older history" in screen()) == told


async def test_a_time_gone_back_to_stays_while_samples_come():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("pageup")
        base = frames.resilver()
        past = base.scans[0].past
        later = base.scans[0]._replace(past=past._replace(rates=(*past.rates, 1.0, 1.0)))
        feed.put(replace(base, scans=(later,)))
        await pilot.pause()
        assert span(screen()) == "to 20m16s ago"


async def test_a_scan_that_ended_shows_now_when_the_next_one_runs():
    feed = FakeFeed((frames.resilver(),))
    async with view_state(feed=feed) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("pageup")
        feed.put(frames.unrestored())
        await pilot.pause()
        base = frames.resilver()
        past = base.scans[0].past
        late = past._replace(begin=past.begin + 7 * 3600)
        feed.put(replace(base, scans=(base.scans[0]._replace(past=late),)))
        await pilot.pause()
        assert span(screen()) == "last 40m32s"


async def test_the_past_of_a_scan_that_ended_is_in_its_pane_zoomed_and_can_be_scrolled():
    async with view_state(frames.unrestored()) as (app, pilot, screen):
        assert "⣿⣿" not in screen()
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        drawn = [line for line in screen().splitlines() if "⣿⣿" in line]
        assert len(drawn) > 10
        axis = next(line for line in screen().splitlines() if "0 ┴" in line)
        assert not axis.endswith("now")
        await pilot.press("pageup")
        await pilot.pause()
        assert next(line for line in screen().splitlines() if "0 ┴" in line) != axis
        await pilot.press("end")
        await pilot.pause()
        assert next(line for line in screen().splitlines() if "0 ┴" in line) == axis


async def test_the_past_of_a_scan_that_ended_is_drawn_where_rows_are_free():
    async with view_state(frames.unrestored(), size=(120, 50)) as (_, _, screen):
        assert sum("⣿⣿" in line for line in screen().splitlines()) == 4


async def test_a_scan_of_which_no_rate_is_known_has_no_graph_once_it_is_over():
    async with view_state(frames.healthy(), size=(120, 50)) as (app, pilot, screen):
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        assert "┤" not in screen()


async def test_the_keys_of_the_list_do_not_move_the_graph():
    async with view_state(frames.resilver()) as (_, pilot, screen):
        await pilot.press("left", "pageup", "home")
        assert span(screen()) == "last 40m32s"


async def test_the_first_line_shows_the_focus():
    async with view_state(frames.resilver()) as (app, pilot, _):
        scan = app.main_screen.scan
        assert {s.role for s in scan._at(0, 0)[0] if "resilver" in s.text} == {"title"}
        await pilot.press("tab")
        assert {s.role for s in scan._at(0, 0)[0] if "resilver" in s.text} == {"focus"}


async def test_a_tall_screen_draws_several_rows_and_a_zoomed_scan_more():
    async with view_state(frames.resilver(), size=(120, 40)) as (app, pilot, screen):
        assert sum("⣿⣿" in line for line in screen().splitlines()) == 4
        app.main_screen.scan.focus()
        await pilot.press("z")
        await pilot.pause()
        assert sum("⣿⣿" in line for line in screen().splitlines()) > 10
