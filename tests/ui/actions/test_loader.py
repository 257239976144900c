"""Code for actions is loaded after the first paint; until then, keys say why they do nothing."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC

from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.fakes import FakeFeed, screen_text
from zconsole.ui.actions.controller import ActionController
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import make_console

UTF8 = {"LANG": "en_US.UTF-8", "TERM": "xterm-256color", "HOME": "/nonexistent"}


async def test_of_a_recording_an_action_says_why_it_is_none():
    feed = FakeFeed()
    feed.put(frames.resilver(), live=False)
    app = make_console(feed, ConsoleOptions(zone=UTC), UTF8)
    async with app.run_test(size=(80, 60)) as pilot:
        await pilot.press("R")
        assert [n.message for n in app.messages] == ["this is a recording: nothing can be changed"]


async def test_a_console_that_only_watches_says_why_its_keys_are_gray():
    reason = "this pool can only be watched from here"
    feed = FakeFeed()
    feed.put(frames.resilver())
    app = make_console(feed, ConsoleOptions(zone=UTC), UTF8)
    async with app.run_test(size=(80, 70)) as pilot:
        await pilot.pause()
        assert app.view_state.denied == reason
        offered = {command.title: command.help for command in app.get_system_commands(app.screen)}
        assert offered["Replace the device at the cursor"] == f"R; not now: {reason}"
        await pilot.press("R")
        assert [n.message for n in app.messages] == [reason]
        await pilot.press("question_mark")
        assert f"Actions  not now: {reason}" in screen_text(app)


async def test_what_acts_is_made_after_the_first_frame_and_once():
    made = []

    def make_backend():
        made.append(feed.queue.empty())
        from zconsole.sim.backends.actions import simulated_backend
        from zconsole.sim.source import World

        return simulated_backend(World("mirror-scrub", 1))

    feed = FakeFeed((frames.resilver(),))
    app = make_console(feed, ConsoleOptions(zone=UTC), UTF8, make_backend)
    async with app.run_test(size=(80, 24)) as pilot:
        while app.actions.session is None:
            await pilot.pause()
        feed.put(frames.resilver())
        await pilot.pause()
        assert made == [True]


def test_the_first_paint_needs_nothing_that_acts():
    code = (
        "import sys, zconsole.cli.demo, zconsole.sim.probes, zconsole.ui.app;"
        "heavy = ('zconsole.actions.', 'zconsole.tunables.control', 'zconsole.ui.actions.session');"
        "sys.exit(any(m.startswith(heavy) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_console_that_is_opened_for_a_swap_begins_with_it_once(monkeypatch):
    begun = []
    monkeypatch.setattr(
        ActionController, "start", lambda _, app, flow, key: begun.append((flow, key))
    )
    async with acting("swap", swap_at=("tank", "77")) as a:
        await a.rest()
        a.feed.step(1.0)
        await a.rest()
        assert begun == [("swap", "77")]
        assert a.app.view_state.pool == "tank"
