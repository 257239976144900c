"""Flows on the simulated pool, by script and by keys, and background work."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from functools import partial

import pytest

from tests.ui.actions.acting import RUN, acting, commands, pick
from tests.ui.actions.scripted import AGREED, ESC, Run, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, text
from tests.ui.fakes import until
from zconsole.errors import ZconsoleError
from zconsole.sim.backends import actions
from zconsole.system.process import Completed
from zconsole.ui.actions.menu import actions_flow
from zconsole.ui.actions.replace_flow import replace_flow
from zconsole.ui.actions.scan_flow import scans_flow
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.upkeep import READ_SECONDS
from zconsole.ui.dialogs.confirm import ConfirmScreen
from zconsole.ui.keys import SHIPPED
from zconsole.ui.panes.help import help_lines
from zconsole.ui.rebalance.job_watch import JobWatch
from zconsole.zfs.sources.base import Capabilities


async def test_only_its_button_runs_a_plan_and_cancel_has_the_focus():
    async with acting("mirror-scrub") as a:
        for leaves in ("enter", "escape", "q"):
            said = await a.read(a.press("S", "j", "enter"))
            assert "zpool scrub -p mirrors" in said
            assert a.app.focused.id == "cancel"
            await a.press(leaves)
            assert not isinstance(a.app.screen, ConfirmScreen), leaves
            await a.home()
        assert a.log == []
        await a.press("S", "j", "enter", *RUN)
        assert commands(a) == [["scrub", "-p", "mirrors"]]
        assert "Done." in a.screen


async def test_what_was_said_of_a_scrub_goes_once_it_is_not_true_any_more():
    """For 20 seconds, the last line called a scrub paused that was running again."""
    ui = ScriptedSession("mirror-scrub", "Pause", AGREED)
    await scans_flow(ui, "")
    ui.pass_time(4.0, 2.0)
    assert ui.messages == ["the scrub of mirrors is paused"]
    ui.answers.extend(("Start or resume", AGREED))
    await scans_flow(ui, "")
    assert ui.messages == []


async def test_the_palette_offers_the_actions_too():
    async with acting("mirror-scrub") as a:
        offered = {command.title: command for command in a.app.get_system_commands(a.app.screen)}
        scrub = offered["Start, pause, resume or stop a scrub; restart a resilver"]
        assert scrub.help == "S"
        assert offered["Replace the device at the cursor"].help == "R"
        scrub.callback()
        assert "Pause the scrub" in await a.read(a.rest())


async def test_jobs_are_looked_for_now_and_then_and_watched_while_one_is_at_work(monkeypatch):
    ui, looks = ScriptedSession("mirror-scrub"), []

    async def _look(_, pool):
        looks.append(pool)
        return ()

    monkeypatch.setattr(JobWatch, "look", _look)
    await ui.wait(10.0, 1.0)
    assert 2 <= len(looks) <= 3
    monkeypatch.setattr(JobWatch, "live", True)
    looks.clear()
    await ui.wait(10.0, 1.0)
    assert len(looks) == 10


LOOKS = ("read_past", "read_autopilot", "read_windows")


async def test_what_consoles_keep_is_read_only_where_it_may_have_changed(monkeypatch):
    """Five reads in ten threads every five seconds took a fifth of an idle console's CPU time."""
    ui, marks, looks = ScriptedSession("mirror-scrub"), ["first"], []

    async def _read(context):
        looks.append(context)

    for name in LOOKS:
        monkeypatch.setattr(FlowSession, name, _read)
    ui.backend = replace(ui.backend, change_mark=lambda: marks[-1])
    await ui.wait(6.0, 1.0)
    looks.clear()
    await ui.wait(20.0, 1.0)
    assert len(looks) == 0
    marks.append("another")
    await ui.wait(6.0, 1.0)
    assert len(looks) == len(LOOKS)
    marks.append(None)  # no change can be detected
    await ui.wait(12.0, 1.0)
    assert len(looks) >= 3 * len(LOOKS)
    marks.append("another")
    await ui.wait(6.0, 1.0)
    looks.clear()
    await ui.wait(READ_SECONDS + 6, 1.0)
    assert len(looks) == len(LOOKS), "a read may have failed"


@pytest.mark.usefixtures("unwatched")
async def test_a_state_directory_that_hangs_costs_one_thread_and_no_key():
    asked, answered = [], threading.Event()

    def _hang():
        asked.append(1)
        answered.wait(60)

    async with acting("mirror-scrub") as a:
        a.use(replace(a.backend, change_mark=_hang))
        try:
            await until(a.pilot, lambda: bool(asked) or a.feed.step())
            for _ in range(20):
                a.feed.step()
                await a.pilot.pause()
            await a.pilot.press("down")
            await until(a.pilot, lambda: a.app.devices.cursor == 1)
            await a.pilot.press("question_mark")
            await until(a.pilot, lambda: "HELP" in a.screen)
            assert asked == [1]
        finally:
            answered.set()


async def test_a_plan_that_does_not_fit_says_so_and_is_read_without_leaving_cancel():
    async with acting("failed-disk", (60, 15)) as a:
        await a.to("bay05")
        title, *_, keys = (await a.read(a.press("R", "enter"))).splitlines()
        assert title.endswith(" ↓")
        assert keys.startswith(" Down more  Enter select  ")
        assert keys.rstrip().endswith("Esc cancel")
        assert "rechecked at run" not in a.screen
        await a.press("pagedown", "down", "pagedown")
        assert "rechecked at run" in a.screen
        assert a.app.focused.id == "cancel"
        assert "Down more" not in await a.read(a.press("end"))
        assert a.screen.splitlines()[0].endswith("↑")
        assert "Down more" in await a.read(a.press("up"))
        assert "Down more" not in await a.read(a.resize((100, 44)))
        assert "Down more" in await a.read(a.resize((60, 15)))


async def test_the_whole_story_of_a_failed_disk():
    """A disk has failed, is replaced, watched, sped up; the tunables are restored automatically."""
    ui = ScriptedSession("failed-disk", "bay15", AGREED)
    await replace_flow(ui, ui.key("bay05"))
    assert ui.shown[0].index("bay15") < ui.shown[0].index("this is the failed disk")
    assert "1 more device may fail in raidz2-0" in ui.plan
    assert ui.commands[0][0] == "replace"
    await ui.wait(1800.0)
    assert "replacing" in [row.vdev.kind for row in ui.frame.rows]
    setting = partial(ui.backend.control.setting, "zfs_resilver_min_time_ms")
    before = setting().value
    ui.answers.extend((asking("faster-resilver"), AGREED, asking("until"), ESC))
    await tunables_flow(ui, "")
    assert setting().value == 2 * before
    while "replacing" in [row.vdev.kind for row in ui.frame.rows]:
        await ui.wait(7200.0, 3600.0)
    await ui.wait(60.0)
    (end,) = (r for r in ui.backend.log.records if r.get("kind") == "action")
    assert end["ok"]
    assert setting().value == before


async def test_a_scrub_of_the_known_errors_is_called_so_before_and_while_it_runs():
    async with acting("damaged") as a:
        await a.press("S")
        await pick(a, "Scrub only known errors")
        assert a.screen.splitlines()[0].strip() == "Scrub only the known errors of photos"
        await a.press(*RUN, "enter")
        said = await a.read(a.pass_time(4, 1))
        assert " error scrub running " in said
        assert "counts blocks, not bytes" in said
        assert "best" not in "".join(said.splitlines()[:3])
        assert " error scrub finished" in await a.read(a.pass_time(120))


async def test_detach_backs_a_replace_out_once_its_name_is_typed():
    ui = ScriptedSession("failed-disk", "bay15", AGREED)
    await replace_flow(ui, ui.key("bay05"))
    ui.pass_time(120.0)
    ui.answers.extend(("Detach it", AGREED))
    await actions_flow(ui, ui.key("bay15"))
    assert "this ends the replace" in ui.plan
    assert 'type "bay15" to confirm' in ui.ran[-1]
    assert ui.commands[-1][0] == "replace"
    ui.answers.extend(("Detach it", Run(typed="bay15")))
    await actions_flow(ui, ui.key("bay15"))
    assert ui.commands[-1][0] == "detach"
    ui.pass_time(120.0)
    assert any("backed out" in text for text in ui.messages)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"read_only": True}, "read-only"),
        ({"fault": "configuration has an error"}, "configuration has an error"),
        ({"capabilities": Capabilities("json", denied="not root")}, "not root"),
        ({"capabilities": Capabilities("replay", live=False)}, "recording"),
    ],
)
async def test_where_nothing_may_be_changed_a_plan_says_why_and_the_command_by_hand(
    options, reason
):
    ui = ScriptedSession("mirror-scrub", "Pause the scrub", AGREED, **options)
    await scans_flow(ui, "")
    assert "To run by hand" in ui.plan
    assert "zpool scrub -p mirrors" in ui.plan
    assert reason in ui.plan
    assert ui.barred


def test_help_lists_the_action_keys():
    said = flat(text(help_lines(LOOK, 100, "")))
    for key in SHIPPED.actions:
        assert key.text in said


async def test_a_vdev_of_larger_disks_is_expanded_once_it_is_whole():
    ui = ScriptedSession("six-disk-swap")
    await actions_flow(ui, ui.key("raidz2-0"))
    assert "not complete yet" in ui.said
    while any(view.scan.active for view in ui.frame.scans):
        ui.pass_time(4 * 3600.0, 2 * 3600.0)
    ui.pass_time(120.0)
    ui.answers.extend(("Expand raidz2-0", Run(typed="raidz2-0")))
    await actions_flow(ui, ui.key("raidz2-0"))
    assert "gains about 10.9T" in ui.plan
    assert "never shrinks" in ui.plan
    assert [command[:2] for command in ui.commands] == [["online", "-e"]] * 6
    ui.pass_time(60.0, 10.0)
    assert ui.messages[-1] == "raidz2-0 has grown"


class Stuck:
    """Commands that do not return until they are released."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.ran: list[tuple[str, ...]] = []

    async def run(self, argv, deadline):
        self.ran.append(tuple(argv))
        await self.go.wait()
        return Completed(tuple(argv), 0, "", "")


async def test_quitting_while_a_command_runs_asks_with_cancel_focused():
    async with acting("mirror-scrub") as a:
        stuck = Stuck()
        a.use(replace(a.backend, command_runner=stuck))
        await a.press("S", "g", "j", "enter", "tab")
        await a.pilot.press("enter")
        while not stuck.ran:
            a.feed.step()
            await a.pilot.pause()
        await a.pilot.press("escape", "q")
        await a.pilot.pause()
        assert "zpool scrub -p mirrors" in a.screen
        assert "continues without the console" in a.screen
        assert a.app.focused.id == "cancel"
        await a.pilot.press("enter")
        await a.pilot.pause()
        assert a.app.is_running
        await a.pilot.press("q")
        await a.pilot.pause()
        await a.pilot.press("tab", "enter")
        await a.pilot.pause()
        assert a.app.return_code == 0
    assert a.log[-1]["result"] == "left running: the console was quit"


async def test_a_raidz_is_widened_once_its_name_is_typed():
    ui = ScriptedSession("overdue", "Attach a device", "bay09", Run(typed="raidz2-0"))
    await actions_flow(ui, ui.key("raidz2-0"))
    assert "raidz expansion: every block is moved once" in ui.plan
    assert "never gets narrower" in ui.plan
    assert ui.commands[0][0] == "attach"
    ui.pass_time(600.0, 300.0)
    assert "expansion" in [view.activity.kind for view in ui.frame.activities]
    ui.pass_time(60 * 7200.0, 7200.0)
    moved = "/dev/disk/by-vdev/bay09 is part of raidz2-0 and its blocks are moved"
    assert ui.messages == [moved]


async def test_lights_are_tidied_and_what_became_of_them_said(monkeypatch):
    ui = ScriptedSession("mirror-scrub")
    lights = type(ui.backend.lights)
    monkeypatch.setattr(lights, "tidy", lambda self: ("the light of bay 1 is off",))
    await ui.tidy_lights()

    def broken(_: object) -> tuple[str, ...]:
        raise ZconsoleError("no disk answers")

    monkeypatch.setattr(lights, "tidy", broken)
    await ui.tidy_lights()
    assert ui.messages == ["the light of bay 1 is off", "lights of bays: no disk answers"]


async def test_a_command_that_failed_is_no_event_that_was_done(monkeypatch):
    ui = ScriptedSession("mirror-scrub", "Pause", AGREED)
    execute = actions.execute

    def broken(pools, argv):
        if argv[1] == "scrub":
            return Completed((), 1, "", "no\n")
        return execute(pools, argv)

    monkeypatch.setattr(actions, "execute", broken)
    await scans_flow(ui, "")
    assert "Failed." in ui.ran[-1]
    done = [(event.severity, event.text) for event in ui.follow_up.events("mirrors")]
    assert done == [("error", "Pause the scrub of mirrors: failed")]


async def test_who_stops_a_scrub_is_not_told_that_the_one_begun_here_was_canceled():
    ui = ScriptedSession("healthy", "Start or resume", AGREED)
    await scans_flow(ui, "")
    assert ui.ran[-1].endswith("Started.\nThe console tells you when the scrub ends.")
    ui.pass_time(60.0, 20.0)
    ui.answers.extend(("Stop the scrub", AGREED))
    await scans_flow(ui, "")
    assert ui.ran[-1].endswith("Done.")
    ui.pass_time(60.0, 20.0)
    assert ui.messages == ["the scrub of vault is stopped"]
