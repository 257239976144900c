"""The console continues while the disk that holds the changed tunables doesn't answer."""

from __future__ import annotations

import threading

import pytest

from tests.ui.actions.acting import acting
from zconsole.tunables.store import SavedTunables, TunableStore

HANG = 30.0
"""Seconds that a read hangs, unless the test ends sooner."""


@pytest.mark.usefixtures("unwatched")
async def test_rounds_are_shown_and_keys_answered(monkeypatch):
    back, given_up = threading.Event(), []

    def peek(_self, era):
        given_up.append(not back.wait(HANG))
        return SavedTunables(era)

    async with acting("resilver") as a:
        await a.pass_time(60)
        shown = a.app.view_state.frame.t
        monkeypatch.setattr(TunableStore, "peek", peek)
        for _ in range(3):
            a.feed.step(60)
            await a.pilot.pause()
        await a.pilot.press("question_mark")
        await a.pilot.pause()
        assert "HELP" in a.screen
        assert a.app.view_state.frame.t >= shown + 180
        assert a.session.left_behind() == ()
        assert given_up == []
        back.set()
