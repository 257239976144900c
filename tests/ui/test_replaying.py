"""A replay on the console: its position, pause, speed and moving about."""

from __future__ import annotations

import json

import pytest

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, console, screen_text, until, view_state
from zconsole.timeline.feed import ReplayFeed
from zconsole.timeline.session import Session
from zconsole.ui.keys import SHIPPED
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import ReplaySource


def said(app):
    return [message.message for message in app.messages]


POOL = "  pool: tank\n state: ONLINE\n"


@pytest.fixture
def feed(tmp_path):
    path = tmp_path / "r"
    # With a sample every ten minutes it stays at the first one, however busy the machine is.
    lines = (json.dumps({"t": 1795166186 + t, "text": POOL}) for t in range(0, 1_200_000, 600))
    path.write_text("".join(f"{line}\n" for line in lines))
    return ReplayFeed(ReplaySource(str(path), 1.0), Session(), Session)


async def test_it_says_where_it_is_and_keys_move_it(feed):
    app = console(feed)
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "0.0 %" in screen_text(app))
        line = screen_text(app).splitlines()[-2]
        assert line.startswith(" plays  1x")
        assert "2026-11-20 " in line
        assert ", . 1 %  < > 10 %  { } speed" in line
        await pilot.press("p", "right_curly_bracket")
        await until(pilot, lambda: " paused 2x" in screen_text(app))
        assert "PAUSED" in screen_text(app).splitlines()[0]
        for key, share in (("greater_than_sign", "10.0"), ("comma", "9.1"), ("full_stop", "10.1")):
            await pilot.press(key)
            await until(pilot, lambda share=share: f" {share} %" in screen_text(app))
        await pilot.press("p")
        assert app.view_state.frozen is None
        assert not feed.playback.paused


async def test_after_its_end_it_can_be_moved_back(feed):
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "0.0 %" in screen_text(app))
        feed.playback.speed = 1e9
        await pilot.press(*("greater_than_sign",) * 10)
        await until(pilot, lambda: "ENDED" in screen_text(app))
        assert "100.0 %" in screen_text(app)
        assert ", . 1 %  < > 10 %  { } speed" in screen_text(app)
        feed.playback.speed = 1.0
        await pilot.press("less_than_sign")
        await until(pilot, lambda: "90.0 %" in screen_text(app))
        assert "ENDED" not in screen_text(app)


async def test_a_recording_without_places_says_so(feed):
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "0.0 %" in screen_text(app))
        feed.playback.span = None
        await pilot.press("full_stop")
        await until(pilot, lambda: "no seeking" in screen_text(app))
        assert "1.0 %" not in screen_text(app)


@pytest.mark.parametrize(
    ("key", "written"),
    [("comma", ","), ("greater_than_sign", ">"), ("left_curly_bracket", "{")],
)
async def test_without_a_replay_these_keys_say_that_they_do_nothing(key, written):
    async with view_state(frames.healthy()) as (app, pilot, read):
        before = read()
        await pilot.press(key)
        assert said(app) == [f"Key {written} does nothing here; ? lists the keys"]
        assert read().splitlines()[:-1] == before.splitlines()[:-1]


async def test_space_pauses_a_replay_wherever_the_focus_is(feed):
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "0.0 %" in screen_text(app))
        assert "Space pause" in screen_text(app).splitlines()[-1]
        for paused in (True, False):
            await pilot.press("space")
            assert feed.playback.paused is paused
            app.main_screen.action_show_pane("events")
        assert not app.devices.arrangement.folded


async def test_a_recording_offers_no_actions():
    recording = Capabilities("replay", live=False)
    async with acting("resilver", capabilities=recording) as a:
        actions = a.app.view_state.look.keys.actions
        line = a.screen.splitlines()[-1]
        assert [key.short for key in actions if key.short in line] == []
        offered = {command.title.lower() for command in a.app.get_system_commands(a.app.screen)}
        acting_keys = [key for key in SHIPPED.rows if key.name == "act"]
        assert [key.text for key in acting_keys if key.text.lower() in offered] == []
        await a.resize((100, 200))
        said = await a.read(a.press("question_mark"))
        assert "command palette" in said
        assert [key.text for key in acting_keys if key.text in said] == []


async def test_a_demo_says_which_keys_change_its_speed_and_they_do():
    feed, steps = FakeFeed((frames.healthy(),)), []
    feed.faster = steps.append
    async with view_state(feed=feed) as (_, pilot, screen):
        await until(pilot, lambda: "{ } demo speed" in screen())
        await pilot.press("right_curly_bracket", "left_curly_bracket")
        assert steps == [1, -1]
        await pilot.press("question_mark")
        await pilot.press("right_curly_bracket")  # also over another screen
        assert steps == [1, -1, 1]
