"""Alerts of a wakeful feed, on the screen and at the terminal."""

from __future__ import annotations

from tests.ui import frames
from tests.ui.fakes import FakeFeed, console
from zconsole.timeline.alerts.rules import Alert
from zconsole.timeline.feed import Update
from zconsole.zfs.sources.base import Capabilities

ALERT = Alert("stalled", "tank", 12.0, "[b]it\x1b stands still", "warning", "scan")


async def test_an_alert_is_shown_as_it_is_and_rings_once(monkeypatch):
    feed, written = FakeFeed(), []
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        monkeypatch.setattr(app._driver, "write", written.append)
        shown = (frames.resilver(),)
        feed.queue.put_nowait(Update(shown, Capabilities("demo"), (ALERT,), "\aring"))
        feed.queue.put_nowait(Update(shown, Capabilities("demo")))
        for _ in range(3):
            await pilot.pause()
        (note,) = app.messages
        assert note.message == "tank: [b]it\\x1b stands still"
        assert note.severity == "warning"
        assert written.count("\aring") == 1


async def test_what_cannot_be_kept_on_disk_is_told():
    feed = FakeFeed()
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        note = "tank: history not kept: /s: No space left on device"
        feed.queue.put_nowait(Update((frames.resilver(),), Capabilities("demo"), notes=(note,)))
        for _ in range(3):
            await pilot.pause()
        assert [each.message for each in app.messages] == [note]


async def test_a_feed_without_a_vigil_says_nothing():
    feed = FakeFeed((frames.resilver(),))
    app = console(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert list(app.messages) == []
