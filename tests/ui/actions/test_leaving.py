"""On quitting, the console lists what goes on and what ends, and asks only if something runs."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import RUN, Acting, acting
from tests.ui.actions.test_hold_flow import SCENARIO, start
from tests.ui.fakes import until
from tests.ui.rebalance.steps import running
from zconsole.errors import ExitCode
from zconsole.sim.backends import actions as keeper

KEYS = [("q", ExitCode.OK), ("ctrl+c", ExitCode.INTERRUPTED)]


async def asked(a: Acting, key: str) -> str:
    """Return the question when leaving by a key; the safe answer has the focus."""
    said = " ".join((await a.read(a.press(key))).split())
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
        assert (
            "The autopilot (latency target 500ms) ends with the scans, or with the console" in said
        )
        assert "that started it (or ssh drops), and restores the original values" in said
        await a.press("enter")
        assert a.app.is_running
        await asked(a, key)
        await a.press("right", "enter")
        assert a.app.return_code == code


async def test_tunables_that_stay_changed_are_named_with_what_restores_them():
    async with acting(SCENARIO, (80, 24)) as a:
        await a.press("T", "F", *RUN, "escape")
        count = len(a.backend.control.past().own)
        await a.press("escape")
        later = "restored by zconsole in the background once no scan"
        stay = f"{count} tunables set here stay changed; {later}"
        for key, _ in KEYS:
            said = await asked(a, key)
            assert stay in said
            assert "restore them: T, then U; when the scan ends: T, then E; later: zconsole" in said
            assert all(name in said for name in a.backend.control.past().own)
            await a.press("enter")
        await a.press("T", "U", *RUN, "escape", "escape")
        await a.pilot.press("q")
        assert a.app.return_code == ExitCode.OK


async def test_what_goes_back_when_the_scan_ends_is_said_to_wait_for_the_next_console():
    async with acting(SCENARIO, (80, 24)) as a:
        await a.press("T", "F", *RUN, "escape", "E", "escape")
        said = await asked(a, "q")
        assert "restored by zconsole in the background once no scan of" in said
        assert "T, then E" not in said


async def test_the_first_line_counts_the_tunables_that_are_set():
    sizes = ((60, 15), (120, 40), (80, 24))
    async with acting(SCENARIO, (80, 24)) as a:
        for size in sizes:
            assert "SET" not in (await a.read(a.resize(size))).splitlines()[0], size
        await a.press("T", "F", *RUN, "escape", "escape")
        await a.pass_time(10, 5)
        count = len(a.backend.control.past().in_place)
        for size in sizes:
            assert f" {count} TUNABLES SET " in (await a.read(a.resize(size))).splitlines()[0], size
        await a.press("T", "U", *RUN, "escape", "escape")
        await a.pass_time(10, 5)
        for size in sizes:
            assert "SET" not in (await a.read(a.resize(size))).splitlines()[0], size


async def test_what_the_autopilot_sets_goes_back_with_it_and_is_neither_counted_nor_asked_about(
    monkeypatch,
):
    monkeypatch.setattr(keeper, "PAUSE", 0.001)  # shorter than a pause of the pilot
    async with acting(SCENARIO, (80, 24)) as a:
        await start(a)
        await a.press("escape")
        await a.pass_time(300, 20)
        await until(a.pilot, lambda: a.backend.control.past().in_place)
        assert "TUNABLE" not in a.screen.splitlines()[0]
        assert "stay" not in await asked(a, "q")


async def test_a_job_is_said_to_end_or_to_go_on():
    async with acting("added-vdev", (100, 40)) as a:
        await running(a)
        await a.press("escape", "escape")
        (job,) = a.session.jobs.live
        for key, _ in KEYS:
            said = await asked(a, key)
            assert f"Rebalance job {job.job} is {job.state}; it ends with this demo; a real" in said
            await a.press("enter")
        await asked(a, "q")
        await a.press("right", "enter")
        assert a.app.return_code == ExitCode.OK


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
