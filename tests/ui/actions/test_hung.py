"""The console goes on while the disk that knows what was set doesn't answer."""

from __future__ import annotations

import threading
import time

from tests.ui.actions.acting import acting
from zconsole.tunables.memory import Book, Volatile

HANG = 6.0
"""Seconds a look takes, unless the test is over sooner."""


async def test_rounds_are_shown_and_keys_answered(monkeypatch):
    back = threading.Event()

    def peek(self, era):
        back.wait(HANG)
        return Book(era)

    async with acting("resilver") as a:
        await a.pass_time(60)
        shown = a.app.showing.frame.t
        monkeypatch.setattr(Volatile, "peek", peek)
        began = time.monotonic()
        for _ in range(3):
            a.feed.step(60)
            await a.pilot.pause()
        await a.pilot.press("question_mark")
        await a.pilot.pause()
        assert "HELP" in a.screen
        assert a.app.showing.frame.t >= shown + 180
        assert a.actor.left_behind() == ()
        assert time.monotonic() - began < HANG
        back.set()
