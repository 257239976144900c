"""The log of commands on the screen."""

from __future__ import annotations

import threading

import pytest

from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import ScriptedSession
from tests.ui.fakes import until
from zconsole.rebalance.planning.settings import Settings
from zconsole.ui.actions import log_flow


async def test_a_rebalance_from_here_and_what_was_asked_of_it_are_listed():
    ui = ScriptedSession("added-vdev")
    desk = ui.jobs.rebalance_backend
    job = await desk.start(Settings(("/storage/films",)))
    await desk.order(job, "pause")
    await log_flow.log_flow(ui, "")
    _, pause, run = ui.shown[-1].splitlines()
    assert "done    zconsole rebalance pause " in pause
    assert "begun   zconsole rebalance run /storage/films" in run


async def test_what_was_run_is_listed_with_its_result_and_can_be_copied():
    async with acting("mirror-scrub") as a:
        assert "no command was run" in await a.read(a.press("L"))
        await a.press("S", "g", "j", "enter", *RUN, "escape")
        await a.press("T", "F", *RUN, "escape", "escape")
        said = (await a.read(a.press("L"))).splitlines()
        assert said[0].startswith(" COMMANDS RUN")
        assert "done    zconsole tunables set" in said[1]
        assert "done    zpool scrub" in said[2]
        await a.press("j", "y")
        assert a.app.clipboard.startswith("zpool scrub")
        said = await a.read(a.press("enter"))  # the whole command is already shown below
        assert said.startswith(" COMMANDS RUN")
        assert "Key Enter does nothing here" in said
        await a.press("escape")
        assert a.app.main_on_top


@pytest.mark.usefixtures("unwatched")
async def test_a_log_that_does_not_answer_keeps_nobody_waiting(monkeypatch):
    back = threading.Event()
    monkeypatch.setattr(log_flow, "PATIENCE", 0.05)
    async with acting("mirror-scrub") as a:
        await a.press("S", "escape")
        log = a.session.backend.log
        monkeypatch.setattr(type(log), "recent", lambda _: back.wait() and [])
        await a.press("L")
        await until(a.pilot, lambda: "did not answer" in a.screen)
    back.set()
