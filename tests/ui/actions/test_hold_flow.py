"""The autopilot by keys, on the simulated pool."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import RUN, Acting, acting
from tests.ui.drawn import plain
from zconsole.errors import ZconsoleError
from zconsole.sim.backends import autopilot
from zconsole.tunables.hold_plan import Order
from zconsole.tunables.targets import Targets
from zconsole.units import latency

NAME = "zfs_vdev_scrub_max_active"
SCENARIO = "foreground"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(autopilot, "LOOK", 0.01)


async def start(a: Acting, target: str = "500ms") -> str:
    await a.press("T", "V", *target)
    await a.press("enter")
    plan = a.screen
    await a.press(*RUN, "escape")
    return plan


async def test_the_plan_names_pools_and_what_it_steers_by():
    async with acting(SCENARIO, (120, 50)) as a:
        plan = await start(a)
        assert "resilver running" in plan
        assert "in ZFS's queue and in the disk" in " ".join(plan.split())
        assert "in powers of two" in " ".join(plan.split())
        assert "application requests" in " ".join(plan.split())
        assert f"{NAME}  " in plan


async def test_a_generous_target_makes_the_scan_faster_and_stopping_restores():
    async with acting(SCENARIO, (120, 50)) as a:
        before = a.backend.control.setting(NAME).value
        await start(a)
        await a.pass_time(300, 10)
        assert a.backend.control.setting(NAME).value > before
        said = await a.press("V")
        assert "target 500ms; scans are tuned above default (step " in " ".join(said.split())
        await a.press(*RUN)
        assert a.backend.control.setting(NAME).value == before


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_the_main_screen_says_that_an_autopilot_runs_and_what_stops_it(size):
    async with acting(SCENARIO, size) as a:
        assert "AUTOPILOT" not in a.screen
        await start(a)
        await a.press("escape")
        await a.pass_time(20, 10)
        first, *rest = a.screen.splitlines()
        assert " AUTOPILOT " in first
        (line,) = (row for row in rest if "autopilot target 500ms" in row)
        assert size[0] < 80 or line.rstrip().endswith("T, then V stops it")
        await a.press("T", "V", *RUN, "escape", "escape")
        await a.pass_time(20, 10)
        assert "autopilot" not in a.screen.lower()


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_the_latency_that_is_reached_stands_beside_the_one_that_is_held(size):
    async with acting(SCENARIO, size) as a:
        await start(a)
        await a.pass_time(120, 10)
        reached = latency(a.controller.context.watch.waits())
        assert f"application requests wait at most {reached}." in " ".join(a.screen.split())
        await a.press("escape")
        reached = latency(a.controller.context.watch.waits())
        assert f"autopilot target 500ms, now {reached}" in await a.pass_time(0)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_where_scans_cannot_go_slower_and_latency_is_above_the_target_that_is_said(size):
    async with acting(SCENARIO, size) as a:
        await start(a, "1ms")
        await a.press("escape")
        shown = await a.pass_time(900, 10)
        assert a.controller.context.watch.waits() > 0.001
        (line,) = (row for row in shown.splitlines() if "autopilot target 1ms" in row)
        assert "scan can't go slower; T, then V stops it" in line
        assert "can't go slower here: the rest" in " ".join((await a.press("T")).split())


async def test_each_step_is_an_event_that_marks_the_graph():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.press("escape")
        await a.pass_time(120, 10)
        frame = a.app.view_state.frame
        assert any(e.origin == "console" and "zfs_" in e.text for e in frame.events)
        assert any(r["action"] == "hold-latency 0.5" for r in a.backend.log.recent())


async def test_the_log_tells_its_start_its_steps_and_its_end():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.pass_time(120, 10)
        await a.press("V", *RUN, "escape", "escape")
        await a.pass_time(10, 10)
        said = await a.press("L")
        assert "autopilot started: target 500ms" in said
        assert "autopilot set zfs_" in said
        assert "autopilot ended: told to stop" in said


async def test_setting_a_tunable_ends_it_and_that_value_stays():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.pass_time(60, 10)
        a.backend.control.set({NAME: 7}, a.backend.clock())
        await a.pass_time(20, 10)
        assert await a.backend.autopilots.status() is None
        assert a.backend.control.setting(NAME).value == 7


@pytest.mark.parametrize(("index", "ends"), [(0, True), (2, False)])
async def test_the_plan_to_set_a_tunable_says_that_it_ends_the_autopilot_that_sets_it(index, ends):
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.press("escape", "T", "g", *["j"] * index)
        said = " ".join((await a.press("enter", *"700", "enter")).split())
        assert "Will set" in said
        assert ("Ends the autopilot (latency target 500ms)" in said) == ends


async def test_the_plan_to_restore_says_so_too():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.pass_time(300, 10)
        assert "Ends the autopilot (latency target 500ms)" in " ".join((await a.press("U")).split())


async def test_another_console_sees_what_runs():
    async with acting(SCENARIO, (120, 50)) as a:
        await a.backend.autopilots.start(Order(Targets(0.5)))
        await a.pass_time(30, 10)
        assert "Autopilot: target 500ms" in await a.press("T")


async def test_a_second_one_is_refused():
    async with acting(SCENARIO, (120, 50)) as a:
        await a.backend.autopilots.start(Order(Targets(0.5)))
        with pytest.raises(ZconsoleError, match="an autopilot runs already"):
            await a.backend.autopilots.start(Order(Targets(0.1)))


async def test_the_list_of_tunables_names_the_key():
    async with acting(SCENARIO, (80, 24)) as a:
        assert "V starts the autopilot: scans go as fast as a latency you" in await a.press("T")


async def test_words_that_are_no_latency_are_asked_for_again():
    async with acting(SCENARIO, (120, 50)) as a:
        await a.press("T", "V", *"fast", "enter")
        assert "fast" in a.screen
        assert "HOLD THE LATENCY" in a.screen


@pytest.mark.parametrize("typed", ["30", "20ms 22:00-06:00=30"])
async def test_a_number_without_unit_is_asked_for_again_and_both_units_are_offered(typed):
    async with acting(SCENARIO, (120, 50)) as a:
        words = [
            {" ": "space", ":": "colon", "=": "equals_sign", "-": "minus"}.get(c, c) for c in typed
        ]
        said = await a.press("T", "V", *words, "enter")
        assert "30 has no unit: write 30ms or 30s" in said
        assert a.app.focused.value == typed
        assert await a.backend.autopilots.status() is None


async def test_without_a_scan_nothing_is_asked():
    async with acting("healthy", (120, 50)) as a:
        await a.press("T", "V")
        assert "nothing to steer" in a.screen


async def test_read_only_shows_the_plan_and_runs_nothing():
    async with acting(SCENARIO, (120, 50), read_only=True) as a:
        await start(a)
        assert await a.backend.autopilots.status() is None


async def test_below_the_defaults_has_to_be_typed():
    async with acting("mirror-scrub", (120, 50)) as a:
        await a.press("T", "V", *"20ms", "space", *"below-defaults", "enter")
        assert 'Type "below-defaults"' in a.screen
        await a.press(*RUN)
        assert await a.backend.autopilots.status() is None


async def test_what_the_autopilot_set_is_said_to_be_restored_at_its_end():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.pass_time(300, 10)
        await a.press("escape", "T")
        view = a.app.screen.view
        while NAME not in plain(view.line_at(view.cursor)):
            await a.press("j")
        said = " ".join(a.screen.split())
        assert "restored by the autopilot when it ends: with the scans, or with the console" in said
        assert "E when the scan ends" not in said


async def test_the_open_list_shows_what_the_autopilot_sets_meanwhile():
    async with acting(SCENARIO, (120, 50)) as a:
        await start(a)
        await a.pass_time(300, 10)
        await a.pass_time(2, 1)
        value = a.backend.control.setting(NAME).value
        (row,) = [line for line in a.screen.splitlines() if f" {NAME} " in line]
        assert row.split(NAME)[1].split()[0] == str(value)
        assert "scans are tuned above default" in " ".join(a.screen.split())
