"""A rebalance by keys on the simulated pool: directories, plan, run, watch, steer."""

from __future__ import annotations

import asyncio

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import Acting, acting
from tests.ui.rebalance.steps import (
    SCENARIO,
    running,
    settled,
    to_list,
    to_plan,
    to_tree,
    until,
)
from zconsole.rebalance.backend import DirectoryListing, JobView, Measured
from zconsole.rebalance.planning.settings import Settings
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.folder_screen import PATIENCE, FoldersScreen
from zconsole.ui.rebalance.job_screen import JobScreen
from zconsole.ui.rebalance.plan_screen import PlanScreen, scan_pace
from zconsole.zfs.sources.base import Capabilities


def desk_of(a: Acting):
    return a.session.jobs.rebalance_backend


async def test_the_whole_way_from_directories_to_a_spread_that_went_down():
    async with acting(SCENARIO) as a:
        assert "New job: choose directories" in await a.read(to_list(a))
        await a.press("enter")
        said = await a.read(until(a, lambda: "29.8T" in a.screen))
        assert "films" in said
        await a.press("j", "j", "space")
        assert "1 marked, 29.8T" in await a.read(a.rest())
        said = await a.read(a.press("enter"))
        assert "spread evenly over the vdevs" in said
        await a.press("enter")
        said = await a.read(settled(a))
        assert "zconsole rebalance run /storage/films" in said
        assert "half the last scan's rate" in said
        assert a.app.focused is not None
        assert a.app.focused.id == "cancel"
        await a.press("tab", "enter")
        assert isinstance(a.app.screen, JobScreen)
        await a.pass_time(7200, 1800)
        said = await a.read(settled(a))
        assert "running" in said
        assert "/storage/films/" in said
        assert "was  93.3 %" in said
        await a.press("escape", "escape")
        assert "REBALANCE" in a.screen.splitlines()[0]
        assert "rebalance running" in a.screen
        await a.pass_time(40 * 3600, 4 * 3600)
        assert a.app.view_state.frame.balance.spread < 0.3
        await to_list(a)
        await until(a, lambda: "finished" in a.screen)


async def test_a_job_that_does_not_fit_says_that_it_goes_on():
    async with acting(SCENARIO) as a:
        await running(a)
        assert "Down scroll" not in await a.read(settled(a))
    async with acting(SCENARIO, size=(80, 8)) as a:
        await running(a)
        said = await a.read(until(a, lambda: "Up and Down scroll" in a.screen))
        assert "raidz1-1" not in said
        await a.press("j", "j", "j")
        assert "raidz1-1" in await a.read(settled(a))


async def test_at_the_end_of_a_plan_no_more_is_promised():
    async with acting(SCENARIO, size=(60, 15)) as a:
        assert " Down more  " in await a.read(to_plan(a))
        assert "Down more" not in await a.read(a.press("end"))
        assert "Down more" in await a.read(a.press("up"))


async def test_a_plan_is_copied_canceled_and_left_a_step_at_a_time():
    async with acting(SCENARIO) as a:
        said = await a.read(to_plan(a))
        assert "until-spread" not in said
        assert a.app.screen.plan.refused is None
        assert "5 % (even) is out of reach for these directories: all their files move" in said
        await a.press("y")
        assert a.app.clipboard.startswith("zconsole rebalance run ")
        assert "command sent to the terminal's clipboard: " in a.screen
        await a.press("enter")
        assert isinstance(a.app.screen, PickScreen), "Cancel has the focus"
        assert await desk_of(a).jobs(None) == ()
        await a.press("enter")
        await settled(a)
        seen = []
        for _ in range(4):
            seen.append(type(a.app.screen))
            await a.press("escape")
        assert seen == [PlanScreen, PickScreen, FoldersScreen, PickScreen]
        assert len(a.app.screen_stack) == 1


async def test_a_refused_run_keeps_the_plan_which_tells_of_the_other_job():
    async with acting(SCENARIO) as a:
        await to_plan(a)
        desk, plans = desk_of(a), []
        made = desk.plan
        desk.plan = lambda settings: plans.append(settings) or made(settings)
        await desk.start(Settings(("/storage/films",)))
        await a.press("tab", "enter")
        said = await a.read(until(a, lambda: "does one at a time" in a.screen))
        assert "zconsole rebalance run" in said
        assert (type(a.app.screen), plans) == (PlanScreen, [])
        await a.press("escape", "enter")
        said = await a.read(settled(a))
        await a.press("end")
        await until(a, lambda: "another job works on this pool" in a.screen)
        assert len(plans) == 1


async def test_esc_while_the_plan_is_made_ends_its_making():
    async with acting(SCENARIO) as a:
        await to_list(a)
        await a.press("enter")
        await a.press("enter")
        closed = []
        plan = desk_of(a).plan

        async def slow(settings):
            try:
                async for step in plan(settings):
                    yield step
                    await asyncio.Event().wait()
            finally:
                closed.append(settings)

        desk_of(a).plan = slow
        await a.pilot.press("enter")
        await until(a, lambda: "counting files" in a.screen)
        await a.press("escape")
        await until(a, lambda: bool(closed))
        assert len(closed) == 1


async def test_a_job_is_paused_resumed_limited_and_stopped_by_keys():
    async with acting(SCENARIO) as a:
        await running(a)
        (job,) = await desk_of(a).jobs(None)
        assert "Press P, a capital, to pause the job" in await a.read(a.press("p"))
        await a.press("P")
        assert "paused" in await a.read(settled(a))
        await a.press("P")
        assert "running" in await a.read(settled(a))
        await a.press("M", *"200M", "enter")
        await a.pass_time(60, 10)
        assert "rate limit 200M/s" in await a.read(settled(a))
        (job,) = await desk_of(a).jobs(None)
        assert job.rate == pytest.approx(200 << 20, rel=0.01)
        await a.press("W", *"40", "enter")
        assert "stop at a spread of 40 %" in await a.read(settled(a))
        await a.press("K", *"12%", "enter")
        assert "keep free 12.0 %" in await a.read(settled(a))
        await a.press("M", *"none", "enter")
        assert "rate limit" not in (await a.read(settled(a)))
        said = await a.read(a.press("M", *"fast", "enter"))
        assert "not a size" in said
        assert "▌fast\n" in said, "what was typed is there to be corrected"
        assert "Now: none" in said
        await a.press("escape")
        await settled(a)
        goal = (await desk_of(a).jobs(None))[0].goal
        assert "Stop rebalance job" in await a.read(a.press("X"))
        await a.press("enter")
        assert "running" in await a.read(settled(a)), "Cancel has the focus"
        await a.press("X", "right", "enter")
        assert "stopped" in await a.read(settled(a))
        (stopped,) = await desk_of(a).jobs(None)
        assert stopped.goal == pytest.approx(goal, rel=0.05), "the progress jumps back"
        await a.press("M")
        assert "the job is stopped" in await a.read(settled(a))
        said = await a.read(a.press("escape", "escape", "B", "enter"))
        assert "stopped" in said, "the cursor is on the job that can be resumed"
        await a.press("P")
        assert "running" in await a.read(settled(a))


async def test_it_stops_at_the_target():
    async with acting(SCENARIO) as a:
        await running(a)
        await a.press("W", *"80", "enter")
        await settled(a)
        await a.pass_time(8 * 3600, 3600)
        assert "target spread reached" in await a.read(settled(a))


async def test_a_new_job_stops_where_the_vdevs_are_even():
    async with acting(SCENARIO) as a:
        await to_tree(a, mark=False)
        assert "Enter choose all of /storage" in await a.read(a.press("g"))
        assert "Enter choose this" in await a.read(a.press("j"))
        said = await a.read(a.press("g", "enter"))
        assert "5 % (even), else all files move" in said
        await a.press("G", "enter")
        said = await a.read(settled(a))
        assert "--until-spread=0.05" in said
        assert "stop at a spread of 5 % (even): needs " in said
        await a.press("right", "enter")
        await a.pass_time(60, 10)
        (job,) = await desk_of(a).jobs(None)
        assert job.limits.until_spread == 0.05
        assert job.bytes_handled < job.goal < job.bytes_total
        assert job.eta_seconds == pytest.approx((job.goal - job.bytes_handled) / job.rate, rel=0.01)


def is_listed(a: Acting) -> bool:
    """Return whether the directories are listed."""
    return isinstance(a.app.screen, FoldersScreen) and len(a.app.screen._rows) > 1


async def test_a_second_plan_goes_by_the_pace_of_the_first_job():
    async with acting(SCENARIO) as a:
        assert "(half the last scan's rate)" in await a.read(to_plan(a))
        await a.press("tab", "enter")
        await settled(a)
        await a.pass_time(3600, 600)
        (job,) = await desk_of(a).jobs(None)
        await a.press("X", "tab", "enter")
        await settled(a)
        await a.press("escape", "g", "enter")
        await until(a, lambda: is_listed(a))
        await a.press("j", "space", "enter")
        await a.press("enter")
        said = await a.read(settled(a))
        assert f"at {DisplayFormat().rate(job.mean_rate)} (as the last job did)" in said


def dies(desk: SimulatedRebalance, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make all jobs look dead until one is resumed; returns the names of those that are."""
    asked: list[str] = []
    jobs = desk.jobs

    async def died(pool: str | None) -> tuple[JobView, ...]:
        return tuple(replace(job, state="dead") for job in await jobs(pool))

    async def resumed(job: str) -> None:
        asked.append(job)
        monkeypatch.undo()

    monkeypatch.setattr(desk, "jobs", died)
    monkeypatch.setattr(desk, "resume", resumed)
    return asked


async def test_an_interrupted_job_is_told_of_and_resumed(monkeypatch):
    async with acting(SCENARIO) as a:
        await running(a)
        (job,) = await desk_of(a).jobs(None)
        await a.press("escape", "escape")
        asked = dies(desk_of(a), monkeypatch)
        await a.pass_time(4, 1)
        assert "rebalance interrupted" in a.screen
        assert "REBALANCE" not in a.screen.splitlines()[0]
        said = await a.read(to_list(a))
        assert "interrupted" in said
        await a.press("enter")
        await a.press("P")
        await a.pass_time(60, 10)
        assert asked == [job.job]
        assert "running" in await a.read(settled(a))


async def test_a_job_waits_for_a_scan_and_says_so():
    async with acting("mirror-scrub") as a:
        await to_tree(a, mark=False)
        await a.press("j", "enter")
        await set_target(a, "none")  # the mirrors are already even
        await a.press("G", "enter")
        assert "scrub running: the job waits" in await a.read(settled(a))
        await a.press("tab", "enter")
        await a.pass_time(10, 1)
        said = await a.read(until(a, lambda: "waiting" in a.screen))
        assert "a scrub is running" in said


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"read_only": True}, "read-only"),
        ({"fault": "configuration has an error"}, "configuration has an error"),
        ({"capabilities": Capabilities("json", denied="not root")}, "not root"),
    ],
)
async def test_without_the_right_to_it_everything_is_shown_and_nothing_run(options, reason):
    async with acting(SCENARIO, **options) as a:
        said = await a.read(to_plan(a))
        assert "To run by hand" in said
        assert "zconsole rebalance run /storage/films" in said
        assert reason in said
        await a.press("tab", "tab", "enter")
        assert await desk_of(a).jobs(None) == ()
        await desk_of(a).start(Settings(("/storage/films",)))
        await a.press("escape", "escape", "escape")
        await to_list(a)
        await a.press("enter")
        for key in "prsltf":
            said = await a.read(a.press(key))
            await settled(a)
            assert isinstance(a.app.screen, JobScreen)
        assert reason in said
        (job,) = await desk_of(a).jobs(None)
        assert job.state == "running"


async def test_names_never_reach_the_terminal_raw_and_a_mute_directory_is_named():
    async with acting(SCENARIO) as a:
        await to_tree(a, mark=False)
        screen = a.app.screen
        assert isinstance(screen, FoldersScreen)
        screen._folders.take(DirectoryListing("/storage", ("a\x1b[31mb", "n\udcff\nl", "x" * 255)))
        screen._folders.take(Measured("/storage/a\x1b[31mb", 1000, 3, done=False))
        screen._folders.open("/storage/a\x1b[31mb", -PATIENCE)
        screen.update()
        said = await a.read(a.rest())
        assert "\\x1b[31m" in said
        assert "\\xff\\x0al" in said
        assert "1000+" in said
        assert "does not answer" in said


async def test_b_is_in_the_help():
    async with acting(SCENARIO, size=(100, 80)) as a:
        assert "rebalance: its jobs" in await a.read(a.press("question_mark"))


def test_the_pace_of_a_scan_is_its_mean():
    healthy = frames.ALL["healthy"]()
    view = healthy.scans[0]
    ended = replace(view.scan, state="finished", start=0.0, end=100.0, issued_bytes=5000)
    assert scan_pace(replace(healthy, scans=(replace(view, scan=ended),))) == 50.0
    running = replace(ended, state="running")
    assert scan_pace(replace(healthy, scans=(replace(view, scan=running),))) is None
    assert scan_pace(replace(healthy, scans=())) is None


async def test_space_marks_the_directory_at_the_cursor_which_stays_there_and_unmarks_it():
    async with acting(SCENARIO) as a:
        await to_tree(a, mark=False)
        await a.press("j", "j")
        assert "Space mark" in a.screen.splitlines()[-1]
        said = await a.read(a.press("space"))
        (row,) = (line for line in said.splitlines() if line.startswith("›"))
        assert "[x]" in row
        assert "films" in row
        assert "Space unmark" in said.splitlines()[-1]
        before = a.app.screen.view.cursor
        assert before > 0
        await a.press("enter", "escape")
        assert a.app.screen.view.cursor == before, "when the directories are shown again"
        assert "[x]" not in await a.read(a.press("space"))


async def test_of_a_finished_job_the_figures_agree():
    async with acting(SCENARIO) as a:
        await running(a)
        await a.pass_time(80 * 3600, 3600)
        await settled(a)
        (job,) = await desk_of(a).jobs(None)
        assert job.state == "finished"
        assert job.days[-1]["files_skipped"] == sum(job.skipped.values()) > 0
        assert job.days[-1]["files_done"] == job.files_done
        assert job.days[-1]["eta_seconds"] is None
        skipped = sum(job.skipped.values())
        assert (
            f"{job.files_done - skipped:,} of {job.files_total:,} files moved, {skipped} skipped"
            in a.screen
        )
        assert "start a new job on the same directories" in a.screen
        assert "after it began" in a.screen
        texts = [event.text for event in a.app.view_state.frame.events]
        assert any(f"job {job.job} is over" in text for text in texts)


async def test_a_pool_that_is_even_already_offers_no_run():
    async with acting("healthy") as a:
        await to_plan(a)
        assert isinstance(a.app.screen, PlanScreen)
        said = await a.read(settled(a))
        assert "the pool is even already" in said
        assert "Run" not in said
        await a.press("escape")
        await set_target(a, "none")
        await a.press("G", "enter")
        assert "Run" in await a.read(settled(a))


async def test_plan_and_job_name_the_key_of_their_help():
    sizes = ((80, 24), (60, 15))
    async with acting(SCENARIO, size=sizes[0]) as a:
        await to_plan(a)
        for size in sizes:
            said = await a.read(a.resize(size))
            assert "? help  Esc cancel" in said.splitlines()[-1], size
            assert "Predicted layout  spread 93.1 %, then 25.4 %" in said, size
            assert "(assumes uniform data)" in said, size
        await a.press("tab", "enter")
        await settled(a)
        for size in sizes:
            footer = (await a.read(a.resize(size))).splitlines()[-1]
            assert "P pause  X stop  M rate  W spread  K free  ? help  Esc back" in footer, size
            assert " HELP" in await a.read(a.press("question_mark"))
            await a.press("escape")


async def set_target(a: Acting, answer: str) -> None:
    """Type another target spread into the options."""
    await a.press("g", "j", "enter", *answer, "enter")
