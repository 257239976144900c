"""The autopilot on the simulated pool, by script and by keys."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, text
from zconsole.errors import ZconsoleError
from zconsole.sim.backends import actions as keeper
from zconsole.tunables.pilot import HoldOrder, Targets
from zconsole.ui.actions.log_flow import log_flow
from zconsole.ui.actions.tunables_flow import hold_flow, tunables_flow
from zconsole.ui.actions.tunables_pane import TunablesScreen, about_lines
from zconsole.units import latency

NAME = "zfs_vdev_scrub_max_active"
SCENARIO = "foreground"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(keeper, "PAUSE", 0.001)  # shorter than a pause of the pilot
    # A busy machine asks again later than usual: a complaint would cover the screen until then.
    monkeypatch.setattr("zconsole.ui.messages.SETTLES", 60.0)


def reading(said: list[str], name: str = NAME) -> Callable[[TunablesScreen], None]:
    """Return an answer that reads the list of tunables, and the details on one."""

    def _read(screen: TunablesScreen) -> None:
        said.append(text(screen._make(LOOK, 140)))
        (row,) = (each for each in screen._now if each.setting.tunable.name == name)
        said.append(flat(text(about_lines(row, LOOK, 100, screen._held))))

    return _read


async def started(ui: ScriptedSession, target: str = "500ms") -> str:
    """Start an autopilot, and return its plan."""
    ui.answers.extend((target, AGREED))
    await hold_flow(ui)
    return ui.plan


async def test_an_autopilot_from_the_question_to_the_log_of_its_end():
    ui = ScriptedSession(SCENARIO)
    value = lambda: ui.backend.control.setting(NAME).value  # noqa: E731
    before = value()
    plan = await started(ui)
    assert "resilver running" in plan
    assert "in ZFS's queue and in the disk" in plan
    assert "in powers of two" in plan
    assert "application requests" in plan
    assert f"{NAME} " in plan
    await ui.wait(300.0, 20.0)
    assert value() > before, "the target is generous"

    await ui.read_autopilot()
    said: list[str] = []
    ui.answers.append(reading(said))
    await tunables_flow(ui, "")
    (row,) = (line for line in said[0].splitlines() if f" {NAME} " in line)
    assert row.split(NAME)[1].split()[0] == str(value()), "the open list shows what it sets"
    assert "scans are tuned above default" in said[1]
    assert "restored by the autopilot when it ends: with the scans, or with the console" in said[1]
    assert "E: restored" not in said[1]
    assert f"application requests wait at most {latency(ui.effects.latency())}." in said[1]

    ui.answers.extend((asking("restore"), ESC, ESC))
    await tunables_flow(ui, "")
    assert "Ends the autopilot (latency target 500ms)" in ui.plan
    for row, ends in ((0, True), (2, False)):
        ui.answers.extend((asking("set", row), "700", ESC, ESC))
        await tunables_flow(ui, "")
        assert "Will set" in ui.plan
        assert ("Ends the autopilot (latency target 500ms)" in ui.plan) == ends, row
    await ui.wait(10.0, 10.0)
    events = ui.frame.events
    assert any(e.origin == "console" and "zfs_" in e.text for e in events)
    assert any(r["action"] == "hold-latency 0.5" for r in ui.backend.log.recent())

    ui.answers.append(AGREED)
    await hold_flow(ui)
    assert "target 500ms; scans are tuned above default (step " in ui.plan
    assert value() == before, "stopping restores"
    await log_flow(ui, "")
    for line in ("started: target 500ms", "set zfs_", "ended: told to stop"):
        assert f"autopilot {line}" in ui.said


async def test_words_that_are_no_latency_are_asked_for_again_and_stay_to_be_corrected():
    ui = ScriptedSession(SCENARIO, "fast", "30", "20ms 22:00-06:00=30", ESC)
    typed: list[str] = []
    complaints: list[list[str]] = []
    ask = ui.typed

    async def _typed(question):
        typed.append(question.typed)
        complaints.append(list(ui.messages))
        return await ask(question)

    ui.typed = _typed
    await hold_flow(ui)
    assert typed == ["", "fast", "30", "20ms 22:00-06:00=30"]
    assert ["fast" in said for (said,) in complaints[1:]] == [True, False, False]
    assert all("30 has no unit: write 30ms or 30s" in said for (said,) in complaints[2:])
    assert all(said.startswith("LIMIT APPLICATION LATENCY") for said in ui.shown)
    assert await ui.backend.autopilots.status() is None


async def test_the_main_screen_says_that_an_autopilot_runs_its_latency_and_what_stops_it():
    async with acting(SCENARIO) as a:
        sizes = ((60, 15), (80, 24), (120, 40))
        assert "AUTOPILOT" not in a.screen
        await a.press("T", "V", *"500ms", "enter", *RUN, "escape", "escape")
        await a.pass_time(120, 20)
        reached = latency(a.session.effects.latency())
        for size in sizes:
            first, *rest = (await a.read(a.resize(size))).splitlines()
            assert " AUTOPILOT " in first, size
            (line,) = (row for row in rest if f"autopilot target 500ms, now {reached}" in row)
            assert size[0] < 80 or line.rstrip().endswith("T, then V stops it")
        await a.press("T", "V", *RUN, "escape", "escape")
        said = (await a.read(a.pass_time(20, 10))).lower()
        assert "autopilot" not in said


async def test_where_the_target_is_out_of_reach_its_cost_is_said_and_what_stops_it():
    ui = ScriptedSession(SCENARIO)
    said: list[str] = []
    ui.answers.append(reading(said))
    await tunables_flow(ui, "")
    assert "V starts the autopilot: scans go as fast as a latency you set allows" in said[1]
    await started(ui, "1ms")
    await ui.wait(900.0, 30.0)
    assert ui.effects.latency() > 0.001
    (line,) = (view for view in ui.frame.activities if view.flag == "AUTOPILOT")
    assert line.activity.state.startswith("target 1ms")
    assert re.match(r"unreachable, rate -\d+ %; T, then V stops it", line.activity.note)
    ui.answers.append(reading(said))
    await tunables_flow(ui, "")
    assert "target 1ms can't be reached, scans can't go slower" in said[3]
    cost = r"Cost: [\d.]+M/s against [\d.]+M/s at best \(-\d+ %\); ETA \w+ against about \w+\."
    assert re.search(f"{cost} V stops it", said[3])
    await hold_flow(ui)
    assert re.search(f"The target can't be reached. {cost}", ui.plan)


@pytest.mark.parametrize(
    ("reached", "rests"),
    [(0.041, True), (0.043, True), (0.03, False), (0.05, False), (None, False)],
)
async def test_near_the_target_it_is_said_why_nothing_changes(monkeypatch, reached, rests):
    """Target 40ms, now 43ms, "scans are tuned as default" stood for 20 minutes, unexplained."""
    ui = ScriptedSession(SCENARIO)
    await started(ui, "40ms")
    await ui.read_autopilot()
    monkeypatch.setattr(ui.effects, "latency", lambda: reached)
    said: list[str] = []
    ui.answers.append(reading(said))
    await tunables_flow(ui, "")
    assert "Autopilot: target 40ms; scans are tuned as default; now " in said[1]
    assert (
        f"{reached and latency(reached)}, near the target: nothing to change." in said[1]
    ) == rests


async def test_one_of_another_console_is_seen_and_ended_by_setting_a_tunable():
    ui = ScriptedSession(SCENARIO)
    await ui.backend.autopilots.start(HoldOrder(Targets(0.5)))
    await ui.wait(30.0, 10.0)
    await hold_flow(ui)
    assert "Autopilot: target 500ms" in ui.plan
    with pytest.raises(ZconsoleError, match="an autopilot runs already"):
        await ui.backend.autopilots.start(HoldOrder(Targets(0.1)))
    await ui.wait(60.0, 10.0)
    ui.backend.control.set({NAME: 77}, ui.backend.clock())
    await ui.wait(20.0, 10.0)
    assert await ui.backend.autopilots.status() is None
    assert ui.backend.control.setting(NAME).value == 77, "it stays"


async def test_without_a_scan_nothing_is_asked():
    ui = ScriptedSession("healthy", asking("hold"))
    await tunables_flow(ui, "")
    assert "nothing to steer" in ui.messages[0]


async def test_read_only_shows_the_plan_and_runs_nothing():
    ui = ScriptedSession(SCENARIO, read_only=True)
    await started(ui)
    assert ui.barred
    assert await ui.backend.autopilots.status() is None


async def test_below_the_defaults_has_to_be_typed():
    ui = ScriptedSession("mirror-scrub", "20ms below-defaults", AGREED)
    await hold_flow(ui)
    assert ui.asked_for == "below-defaults"
