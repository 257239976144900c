"""Quitting says what goes on and what ends, and asks; where nothing runs, nothing is asked."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import Acting, acting
from tests.ui.actions.test_hold_flow import SCENARIO, start
from tests.ui.rebalance.steps import running
from zconsole.errors import ExitCode

KEYS = [("q", ExitCode.OK), ("ctrl+c", ExitCode.INTERRUPTED)]


async def asked(a: Acting, key: str) -> str:
    """What is asked when leaving by a key; the safe answer has the focus."""
    said = " ".join((await a.press(key)).split())
    assert "Quit?" in said
    assert a.app.focused is not None
    assert a.app.focused.id == "cancel"
    return said


@pytest.mark.parametrize(("key", "code"), KEYS)
async def test_an_autopilot_is_said_to_end_with_the_console(key, code):
    async with acting(SCENARIO, (80, 24)) as a:
        await start(a)
        await a.press("escape")
        said = await asked(a, key)
        assert "that holds latency at 500ms ends with the console that started it" in said
        assert "restores the original values" in said
        await a.press("enter")
        assert a.app.is_running
        await asked(a, key)
        await a.press("right", "enter")
        assert a.app.return_code == code


@pytest.mark.parametrize(("key", "code"), KEYS)
async def test_a_job_is_said_to_end_or_to_go_on(key, code):
    async with acting("added-vdev", (100, 40)) as a:
        await running(a)
        await a.press("escape", "escape")
        (job,) = a.controller.jobs.live
        said = await asked(a, key)
        assert f"Rebalance job {job.job} is {job.state}; it ends with this demo; a real" in said
        await a.press("right", "enter")
        assert a.app.return_code == code


async def test_control_c_a_second_time_leaves_at_once():
    async with acting(SCENARIO, (80, 24)) as a:
        await start(a)
        await asked(a, "ctrl+c")
        await a.pilot.press("ctrl+c")
        assert a.app.return_code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(("key", "code"), KEYS)
async def test_nothing_is_asked_while_only_a_scan_runs(key, code):
    async with acting(SCENARIO, (80, 24)) as a:
        await a.pilot.press(key)
        assert a.app.return_code == code
