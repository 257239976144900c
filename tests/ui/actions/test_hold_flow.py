"""The autopilot by keys, on the simulated pool.

Each test leads one console through several cases, in an order that its tunables allow.
"""

from __future__ import annotations

import re

import pytest

from tests.ui.actions.acting import RUN, Acting, acting
from tests.ui.drawn import flat, plain
from tests.ui.fakes import until
from zconsole.errors import ZconsoleError
from zconsole.sim.backends import actions as keeper
from zconsole.tunables.pilot import HoldOrder, Targets
from zconsole.units import latency

NAME = "zfs_vdev_scrub_max_active"
SCENARIO = "foreground"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(keeper, "PAUSE", 0.001)  # shorter than a pause of the pilot
    # A busy machine asks again later than usual: a complaint would cover the screen until then.
    monkeypatch.setattr("zconsole.ui.messages.SETTLES", 60.0)


async def start(a: Acting, target: str = "500ms") -> str:
    await a.home()
    await a.press("T", "V", *target)
    await a.press("enter")
    plan = a.screen
    await a.press(*RUN, "escape")
    return plan


async def test_an_autopilot_from_the_question_to_the_log_of_its_end():
    async with acting(SCENARIO, (120, 50)) as a:
        before = a.backend.control.setting(NAME).value
        await words_that_are_no_latency_are_asked_for_again(a)
        await a_number_without_unit_is_asked_for_again_and_both_units_are_offered(a)
        the_plan_names_pools_and_what_it_steers_by(await start(a))
        await a.pass_time(300, 20)
        assert a.backend.control.setting(NAME).value > before, "the target is generous"
        await a.pass_time(2, 1)
        the_open_list_shows_what_the_autopilot_sets_meanwhile(a)
        await what_it_set_is_said_to_be_restored_at_its_end(a)
        assert "Ends the autopilot (latency target 500ms)" in flat(await a.read(a.press("U")))
        await the_plan_to_set_a_tunable_says_that_it_ends_the_autopilot_that_sets_it(a)
        events = a.app.view_state.frame.events
        assert any(e.origin == "console" and "zfs_" in e.text for e in events)
        assert any(r["action"] == "hold-latency 0.5" for r in a.backend.log.recent())
        said = flat(await a.read(a.press("T", "V")))
        assert "target 500ms; scans are tuned above default (step " in said
        await a.press(*RUN)
        assert a.backend.control.setting(NAME).value == before, "stopping restores"
        await the_log_tells_its_start_its_steps_and_its_end(a)


async def words_that_are_no_latency_are_asked_for_again(a: Acting):
    await a.press("T", "V", *"fast", "enter")
    await until(a.pilot, lambda: "fast" in a.screen)
    assert "LIMIT APPLICATION LATENCY" in a.screen


async def a_number_without_unit_is_asked_for_again_and_both_units_are_offered(a: Acting):
    keys = {" ": "space", ":": "colon", "=": "equals_sign", "-": "minus"}
    for typed in ("30", "20ms 22:00-06:00=30"):
        await a.home()
        a.app.messages.said.clear()
        await a.press("T", "V", *(keys.get(letter, letter) for letter in typed), "enter")
        await until(a.pilot, lambda: "30 has no unit: write 30ms or 30s" in a.screen)
        assert a.app.focused.value == typed
        assert await a.backend.autopilots.status() is None


def the_plan_names_pools_and_what_it_steers_by(plan: str):
    assert "resilver running" in plan
    assert "in ZFS's queue and in the disk" in flat(plan)
    assert "in powers of two" in flat(plan)
    assert "application requests" in flat(plan)
    assert f"{NAME}  " in plan


def the_open_list_shows_what_the_autopilot_sets_meanwhile(a: Acting):
    value = a.backend.control.setting(NAME).value
    (row,) = [line for line in a.screen.splitlines() if f" {NAME} " in line]
    assert row.split(NAME)[1].split()[0] == str(value)
    assert "scans are tuned above default" in flat(a.screen)


async def what_it_set_is_said_to_be_restored_at_its_end(a: Acting):
    await a.press("escape", "T")
    view = a.app.screen.view
    while NAME not in plain(view.line_at(view.cursor)):
        await a.press("j")
    said = flat(a.screen)
    assert "restored by the autopilot when it ends: with the scans, or with the console" in said
    assert "when the scan ends: E" not in said


async def the_plan_to_set_a_tunable_says_that_it_ends_the_autopilot_that_sets_it(a: Acting):
    for index, ends in ((0, True), (2, False)):
        await a.home()
        await a.press("T", "g", *["j"] * index)
        said = flat(await a.read(a.press("enter", *"700", "enter")))
        assert "Will set" in said
        assert ("Ends the autopilot (latency target 500ms)" in said) == ends
    await a.home()


async def the_log_tells_its_start_its_steps_and_its_end(a: Acting):
    await a.home()
    await a.pass_time(10, 10)
    said = await a.read(a.press("L"))
    assert "autopilot started: target 500ms" in said
    assert "autopilot set zfs_" in said
    assert "autopilot ended: told to stop" in said


async def test_the_main_screen_says_that_an_autopilot_runs_its_latency_and_what_stops_it():
    async with acting(SCENARIO) as a:
        sizes = ((60, 15), (80, 24), (120, 40))
        for size in sizes:
            assert "AUTOPILOT" not in await a.read(a.resize(size))
        await start(a)
        await a.pass_time(120, 20)
        reached = latency(a.session.effects.waits())
        for size in sizes:
            said = flat(await a.read(a.resize(size)))
            assert f"application requests wait at most {reached}." in said, size
        await a.home()
        reached = latency(a.session.effects.waits())
        for size in sizes:
            first, *rest = (await a.read(a.resize(size))).splitlines()
            assert " AUTOPILOT " in first, size
            (line,) = (row for row in rest if f"autopilot target 500ms, now {reached}" in row)
            assert size[0] < 80 or line.rstrip().endswith("T, then V stops it")
        await a.press("T", "V", *RUN)
        await a.home()
        await a.pass_time(20, 10)
        for size in sizes:
            assert "autopilot" not in (await a.read(a.resize(size))).lower(), size


async def test_where_the_target_is_out_of_reach_its_cost_is_said_and_what_stops_it():
    async with acting(SCENARIO, (80, 24)) as a:
        assert "V starts the autopilot: scans go as fast as a latency you" in await a.read(
            a.press("T")
        )
        await start(a, "1ms")
        await a.home()
        await a.pass_time(900, 30)
        assert a.session.effects.waits() > 0.001
        for size in ((80, 24), (120, 40)):
            shown = await a.read(a.resize(size))
            (line,) = (row for row in shown.splitlines() if "autopilot target 1ms" in row)
            assert re.search(r"unreachable, rate -\d+ %; T, then V stops it", line)
            said = flat(await a.read(a.press("T")))
            assert "target 1ms can't be reached, scans can't go slower" in said
            cost = (
                r"Cost: [\d.]+M/s against [\d.]+M/s at best \(-\d+ %\); ETA \w+ against about \w+\."
            )
            assert re.search(f"{cost} V stops it", said)
            assert re.search(
                f"The target can't be reached. {cost}", flat(await a.read(a.press("V")))
            )
            await a.home()


async def test_one_of_another_console_is_seen_and_ended_by_setting_a_tunable():
    async with acting(SCENARIO, (120, 50)) as a:
        await a.backend.autopilots.start(HoldOrder(Targets(0.5)))
        await a.pass_time(30, 10)
        assert "Autopilot: target 500ms" in await a.read(a.press("T"))
        with pytest.raises(ZconsoleError, match="an autopilot runs already"):
            await a.backend.autopilots.start(HoldOrder(Targets(0.1)))
        await a.pass_time(60, 10)
        a.backend.control.set({NAME: 77}, a.backend.clock())
        await a.pass_time(20, 10)
        assert await a.backend.autopilots.status() is None
        assert a.backend.control.setting(NAME).value == 77, "it stays"


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
