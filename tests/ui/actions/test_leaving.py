"""On quitting, the console lists what goes on and what ends, and asks only if something runs."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import RUN, Acting, acting
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession, asking
from tests.ui.actions.test_hold_flow import SCENARIO
from tests.ui.drawn import flat
from tests.ui.rebalance.steps import SCENARIO as REBALANCED
from zconsole.errors import ExitCode
from zconsole.rebalance.planning.settings import Settings
from zconsole.sim.backends import actions as keeper
from zconsole.ui.actions.tunables_flow import hold_flow, tunables_flow

KEYS = [("q", ExitCode.OK), ("ctrl+c", ExitCode.INTERRUPTED)]


def behind(ui: ScriptedSession) -> str:
    """Return what the question lists; empty if nothing is asked."""
    return flat("\n".join(span.text for span in ui.left_behind()))


async def test_an_autopilot_is_said_to_end_with_the_console():
    ui = ScriptedSession(SCENARIO, "500ms", AGREED)
    await hold_flow(ui)
    await ui.wait(10.0, 10.0)
    assert (
        "The autopilot (latency target 500ms) ends with the scans, or with the console"
        " that started it (or ssh drops), and restores the original values."
    ) in behind(ui)


async def test_tunables_that_stay_changed_are_counted_and_named_with_what_restores_them():
    ui = ScriptedSession(SCENARIO, asking("faster-resilver"), AGREED)
    assert ui.frame.flags == ()
    await tunables_flow(ui, "")
    await ui.wait(10.0, 5.0)
    own = ui.backend.control.past().own
    assert f"{len(own)} TUNABLES SET" in ui.frame.flags
    later = "restored by zconsole in the background once no scan"
    said = behind(ui)
    assert f"{len(own)} tunables set here stay changed; {later}" in said
    assert "restore them: T, then U; when the scan ends: T, then E; later: zconsole" in said
    assert all(name in said for name in own)
    ui.answers.append(asking("until"))
    await tunables_flow(ui, "")
    await ui.read_past()
    assert f"{later} of" in behind(ui)
    assert "T, then E" not in behind(ui)
    ui.answers.extend((asking("restore"), AGREED, ESC))
    await tunables_flow(ui, "")
    await ui.wait(10.0, 5.0)
    assert behind(ui) == ""
    assert not any("SET" in flag for flag in ui.frame.flags)


async def test_what_the_autopilot_sets_goes_back_with_it_and_is_neither_counted_nor_asked_about(
    monkeypatch,
):
    monkeypatch.setattr(keeper, "PAUSE", 0.001)
    ui = ScriptedSession(SCENARIO, "500ms", AGREED)
    await hold_flow(ui)
    await ui.wait(300.0, 20.0)
    assert ui.backend.control.past().in_place
    assert not any("TUNABLE" in flag for flag in ui.frame.flags)
    assert "stay" not in behind(ui)


async def test_a_job_is_said_to_end_or_to_go_on():
    ui = ScriptedSession(REBALANCED)
    await ui.jobs.rebalance_backend.start(Settings(("/storage/films",)))
    await ui.jobs.look(ui.frame.pool)
    (job,) = ui.jobs.live
    assert behind(ui) == (
        f"Rebalance job {job.job} is {job.state}; it ends with this demo; a real one goes on in the"
        " background. B lists it, X stops it."
    )


async def asked(a: Acting, key: str) -> None:
    """Press a key that leaves; the safe answer of the question has the focus."""
    assert "Quit?" in await a.read(a.press(key))
    assert a.app.focused.id == "cancel"


@pytest.mark.parametrize(("key", "code"), KEYS)
async def test_the_key_that_leaves_asks_and_enter_stays(key, code):
    async with acting(SCENARIO, (80, 24)) as a:
        await a.press("T", "F", *RUN, "escape", "escape")
        await asked(a, key)
        await a.press("enter")
        assert a.app.is_running
        await asked(a, key)
        await a.press("right", "enter")
        assert a.app.return_code == code


async def test_control_c_a_second_time_leaves_at_once():
    async with acting(SCENARIO, (80, 24)) as a:
        await a.press("T", "F", *RUN, "escape", "escape")
        await asked(a, "ctrl+c")
        await a.pilot.press("ctrl+c")
        assert a.app.return_code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(("key", "code"), KEYS)
async def test_nothing_is_asked_while_only_a_scan_runs(key, code):
    async with acting(SCENARIO, (80, 24)) as a:
        await a.pilot.press(key)
        assert a.app.return_code == code
