"""The console goes on while the disk that knows what was set doesn't answer."""

from __future__ import annotations

import threading
import time

from tests.ui.actions.acting import acting
from zconsole.tunables.store import SavedTunables, VolatileTunableStore

HANG = 6.0
"""Seconds a look takes, unless the test is over sooner."""


async def test_rounds_are_shown_and_keys_answered(monkeypatch):
    back = threading.Event()

    def peek(_self, era):
        back.wait(HANG)
        return SavedTunables(era)

    async with acting("resilver") as a:
        await a.pass_time(60)
        shown = a.app.view_state.frame.t
        monkeypatch.setattr(VolatileTunableStore, "peek", peek)
        began = time.monotonic()
        for _ in range(3):
            a.feed.step(60)
            await a.pilot.pause()
        await a.pilot.press("question_mark")
        await a.pilot.pause()
        assert "HELP" in a.screen
        assert a.app.view_state.frame.t >= shown + 180
        assert a.controller.context.left_behind() == ()
        assert time.monotonic() - began < HANG
        back.set()
