"""A rebalance on the simulated pool, by script and by keys: from directories to a job."""

from __future__ import annotations

import asyncio

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import Acting, acting
from tests.ui.actions.scripted import ESC, ScriptedSession
from tests.ui.drawn import flat, text
from tests.ui.rebalance.steps import (
    SCENARIO,
    running,
    settled,
    to_list,
    to_options,
    to_plan,
    to_tree,
    until,
)
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.flow import rebalance_flow
from zconsole.ui.rebalance.job_screen import JobScreen, job_lines
from zconsole.ui.rebalance.options import ASKED
from zconsole.ui.rebalance.plan_screen import PlanScreen, scan_pace

FILMS = Settings(("/storage/films",))


def desk_of(a: Acting):
    return a.session.jobs.rebalance_backend


# By script


class Planning(ScriptedSession):
    """A session that reads the plans it is shown, and ``runs`` them or leaves them."""

    def __init__(self, scenario: str, *, runs: bool = False) -> None:
        super().__init__(scenario)
        self.runs = runs
        self.ready: list[bool] = []
        """Whether each plan could be run."""

    def choosing(self, *answers: str, directory: str = "/storage/films") -> Planning:
        """Answer with a new job for a directory, these options, and the plan."""
        self.answers.extend(("New job", lambda _: (directory,), *answers, "Show the plan"))
        self.answers.append(self.reading)
        return self

    async def reading(self, screen: PlanScreen) -> bool | None:
        """Read a plan as shown, and run it or leave it."""
        await screen.make()
        self.plans.append(flat(text(screen.lines(100))))
        self.ready.append(screen.ready)
        return self.runs or None

    @property
    def desk(self):
        return self.jobs.rebalance_backend


async def test_a_new_job_stops_where_the_vdevs_are_even():
    ui = Planning(SCENARIO, runs=True).choosing(directory="/storage")
    await rebalance_flow(ui, "")
    assert any("5 % (even), or all files moved" in shown for shown in ui.shown)
    assert "--until-spread=0.05" in ui.plan
    assert "stop at a spread of 5 % (even): needs " in ui.plan
    ui.pass_time(60.0, 10.0)
    (job,) = await ui.desk.jobs(None)
    assert job.limits.until_spread == EVEN
    assert job.bytes_handled < job.goal < job.bytes_total
    assert job.eta_seconds == pytest.approx((job.goal - job.bytes_handled) / job.rate, rel=0.01)


async def test_a_second_plan_goes_by_the_pace_of_the_first_job():
    ui = Planning(SCENARIO, runs=True).choosing()
    await rebalance_flow(ui, "")
    assert "(half the last scan's rate)" in ui.plan
    ui.pass_time(3600.0, 600.0)
    (job,) = await ui.desk.jobs(None)
    await ui.desk.order(job.job, "stop")
    await rebalance_flow(ui.choosing(), "")
    assert f"at {DisplayFormat().rate(job.mean_rate)} (as the last job did)" in ui.plan


async def test_a_refused_run_keeps_the_plan_and_the_next_one_tells_of_the_other_job():
    ui = Planning(SCENARIO, runs=True).choosing()
    await ui.desk.start(FILMS)
    made, plans = ui.desk.plan, []
    ui.desk.plan = lambda settings: plans.append(settings) or made(settings)
    ui.answers.extend((ui.reading, ESC, "Show the plan", ui.reading))
    await rebalance_flow(ui, "")
    assert "does one at a time" in ui.messages[0]
    assert ui.plans[0] == ui.plans[1]
    assert "another job works on this pool" in ui.plan
    assert len(plans) == 3, "one for the default target, which is out of reach, one without"


async def test_a_job_waits_for_a_scan_and_says_so():
    ui = Planning("mirror-scrub", runs=True).choosing("Stop at", "none", directory="/mirrors")
    await rebalance_flow(ui, "")
    assert "scrub running: the job waits" in ui.plan
    ui.pass_time(10.0, 1.0)
    (job,) = await ui.desk.jobs(None)
    said = flat(text(job_lines(job, 0.0, {}, DisplayFormat(), 80)))
    assert "waiting" in said
    assert "a scrub is running" in said


async def test_a_pool_that_is_even_already_offers_no_run():
    ui = Planning("healthy").choosing(directory="/vault")
    ui.answers.extend(("Stop at", "none", "Show the plan", ui.reading))
    await rebalance_flow(ui, "")
    assert ["the pool is even already" in plan for plan in ui.plans] == [True, False]
    assert ui.ready == [False, True]


async def test_of_a_finished_job_the_figures_agree():
    ui = Planning(SCENARIO)
    await ui.desk.start(FILMS)
    pool = ui.frame.pool
    await ui.jobs.look(pool)
    ui.pass_time(80 * 3600.0, 3600.0)
    (news,) = await ui.jobs.look(pool)
    (job,) = await ui.desk.jobs(None)
    assert job.state == "finished"
    assert job.days[-1]["files_skipped"] == sum(job.skipped.values()) > 0
    assert job.days[-1]["files_done"] == job.files_done
    assert job.days[-1]["eta_seconds"] is None
    said = flat(text(job_lines(job, 0.0, {}, DisplayFormat(), 100)))
    skipped = sum(job.skipped.values())
    assert said.count("skipped: /storage/films/") == len(job.left_out) == 20
    assert "films/001499.bin: changed" in said
    assert f"and {skipped - 20:,} more" in said
    moved = job.files_done - skipped
    assert f"{moved:,} of {job.files_total:,} files moved, {skipped} skipped" in said
    assert "Only a new job tries skipped files again" in said
    assert "after it began" in said
    assert f"job {job.job} is over" in news.text
    assert news.text in [event.text for event in ui.follow_up.events(pool)]


async def test_a_job_stops_at_its_target():
    ui = Planning(SCENARIO)
    await ui.desk.start(replace(FILMS, limits=Limits(until_spread=0.8)))
    ui.pass_time(8 * 3600.0, 3600.0)
    (job,) = await ui.desk.jobs(None)
    assert job.why == "target spread reached"


def test_the_pace_of_a_scan_is_its_mean():
    healthy = frames.ALL["healthy"]()
    view = healthy.scans[0]
    ended = replace(view.scan, state="finished", start=0.0, end=100.0, issued_bytes=5000)
    assert scan_pace(replace(healthy, scans=(replace(view, scan=ended),))) == 50.0
    going = replace(ended, state="running")
    assert scan_pace(replace(healthy, scans=(replace(view, scan=going),))) is None
    assert scan_pace(replace(healthy, scans=())) is None


# By keys


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
        said = await a.read(a.press("question_mark"))
        assert all(entry.label in said for entry in ASKED), "the help explains the options"
        await a.press("escape", "enter")
        said = await a.read(settled(a))
        assert "zconsole rebalance run /storage/films" in said
        assert "half the last scan's rate" in said
        await a.press("y")
        assert a.app.clipboard.startswith("zconsole rebalance run ")
        assert a.app.focused is not None
        assert a.app.focused.id == "cancel"
        await a.press("tab", "enter")
        assert isinstance(a.app.screen, JobScreen)
        await a.pass_time(7200, 1800)
        said = await a.read(settled(a))
        assert "running" in said
        assert "/storage/films/" in said
        assert "was  93.3 %" in said
        said = await a.read(a.press("escape"))
        assert any(line.startswith("› ") and "running" in line for line in said.splitlines())
        await a.press("escape")
        assert "REBALANCE" in a.screen.splitlines()[0]
        assert "rebalance running" in a.screen
        await a.pass_time(40 * 3600, 4 * 3600)
        assert a.app.view_state.frame.balance.spread < 0.3
        await to_list(a)
        await until(a, lambda: "finished" in a.screen)
        assert a.app.screen.view.cursor == 1, "the cursor is on the job that has finished"


async def test_plan_and_job_name_the_keys_that_work_at_every_size():
    """At 60×15 the plan does not fit, at 80×8 neither does the job."""
    async with acting(SCENARIO, size=(80, 24)) as a:
        await to_plan(a)
        for size in ((80, 24), (60, 15)):
            said = await a.read(a.resize(size))
            assert "? help  Esc cancel" in said.splitlines()[-1], size
            assert "Predicted layout  spread 93.1 %, then 25.4 %" in said, size
            assert "(assumes uniform data)" in said, size
        assert " Down more  " in said
        assert "Down more" not in await a.read(a.press("end"))
        assert "Down more" in await a.read(a.press("up"))
        await a.press("tab", "enter")
        await settled(a)
        for size in ((60, 15), (80, 24)):
            footer = (await a.read(a.resize(size))).splitlines()[-1]
            assert "P pause  X stop  M rate  W spread  K free  ? help  Esc back" in footer, size
            assert " HELP" in await a.read(a.press("question_mark"))
            await a.press("escape")
        assert "Down scroll" not in a.screen
        said = await a.read(a.resize((80, 8)))
        assert "Up and Down scroll" in said
        assert "raidz1-1" not in said
        await a.press("j", "j", "j")
        assert "raidz1-1" in await a.read(settled(a))


async def test_esc_while_the_plan_is_made_ends_its_making():
    async with acting(SCENARIO) as a:
        await to_options(a)
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


async def test_a_job_is_steered_by_keys():
    """One console leads a job through all that can be asked of it."""
    async with acting(SCENARIO) as a:
        await running(a)
        await its_id_and_command_are_copied(a)
        await it_is_paused_and_resumed(a)
        await its_limits_are_set_and_dropped(a)
        await a_stop_asks_and_cancel_has_the_focus(a)
        await a_stopped_job_says_why_its_keys_do_nothing_and_is_resumed(a)


async def test_the_list_of_jobs_steers_the_one_at_the_cursor():
    async with acting(SCENARIO, (80, 24)) as a:
        for _ in range(2):
            await desk_of(a).start(FILMS)
            (job, *_) = await desk_of(a).jobs(None)
            await desk_of(a).order(job.job, "pause")
            a.session.jobs.rebalance_backend._jobs[-1].work.running = len(desk_of(a)._jobs) == 2
        await to_list(a)
        newest, older = await desk_of(a).jobs(None)
        assert "P resume  X stop" in a.screen.splitlines()[-1], "the cursor is on the newest"
        await a.press("P")
        assert "P pause  X stop" in (await a.read(settled(a))).splitlines()[-1]
        assert [job.state for job in await desk_of(a).jobs(None)] == ["running", older.state]
        said = await a.read(a.press("X"))
        assert f"Stop rebalance job {newest.job}?" in said
        await a.press("escape", "k")
        assert "put the cursor on a job" in await a.read(a.press("P"))
        await a.press("j", "X", "right", "enter")
        assert "stopped" in await a.read(settled(a))
        assert isinstance(a.app.screen, PickScreen)


async def test_the_letters_that_move_move_on_the_screen_of_a_job_too():
    async with acting(SCENARIO, (80, 8)) as a:
        await running(a)
        await a.press("j", "j")
        before = a.screen
        assert "a capital" not in await a.read(a.press("k"))
        assert a.screen != before


async def its_id_and_command_are_copied(a: Acting) -> None:
    await a.press("y")
    said = await a.read(a.press("j", "enter"))
    assert a.app.clipboard.startswith("zconsole rebalance status ")
    assert "nothing to copy" not in said


async def it_is_paused_and_resumed(a: Acting) -> None:
    assert "Press P, a capital, to pause the job" in await a.read(a.press("p"))
    assert "Only for a while? Esc, then P" in await a.read(a.press("X"))
    await a.press("escape", "P")
    assert "paused" in await a.read(settled(a))
    said = await a.read(a.press("X"))
    assert "Stop rebalance job" in said
    assert "Only for a while?" not in said
    await a.press("escape", "P")
    assert "running" in await a.read(settled(a))


async def its_limits_are_set_and_dropped(a: Acting) -> None:
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


async def a_stop_asks_and_cancel_has_the_focus(a: Acting) -> None:
    goal = (await desk_of(a).jobs(None))[0].goal
    assert "Stop rebalance job" in await a.read(a.press("X"))
    await a.press("enter")
    assert "running" in await a.read(settled(a)), "Cancel has the focus"
    await a.press("X", "right", "enter")
    assert "stopped" in await a.read(settled(a))
    (stopped,) = await desk_of(a).jobs(None)
    assert stopped.goal == pytest.approx(goal, rel=0.05), "the progress jumps back"


async def a_stopped_job_says_why_its_keys_do_nothing_and_is_resumed(a: Acting) -> None:
    told = a.app.messages
    await until(a, lambda: any("stopped" in message.message for message in told))
    await a.press("M")
    said = await a.read(settled(a))
    assert "the job is stopped" in said
    assert "P resume" in said.splitlines()[-1]
    assert "Esc back" in said.splitlines()[-1]
    said = await a.read(a.press("escape", "escape", "B", "enter"))
    assert "stopped" in said, "the cursor is on the job that can be resumed"
    await a.press("P")
    assert "running" in await a.read(settled(a))
    assert not any("stopped" in message.message for message in told)


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
        await desk_of(a).start(FILMS)
        (job,) = await desk_of(a).jobs(None)
        asked = dies(desk_of(a), monkeypatch)
        await a.pass_time(6, 1)
        assert "rebalance interrupted" in a.screen
        assert "(B lists it, P resumes it)" in a.screen
        assert "REBALANCE" not in a.screen.splitlines()[0]
        said = await a.read(to_list(a))
        assert "interrupted" in said
        await a.press("enter")
        await a.press("P")
        await a.pass_time(60, 10)
        assert asked == [job.job]
        assert "running" in await a.read(settled(a))


async def test_without_the_right_to_it_everything_is_shown_and_nothing_run():
    async with acting(SCENARIO, read_only=True) as a:
        said = await a.read(to_plan(a))
        assert "To run by hand" in said
        assert "zconsole rebalance run /storage/films" in said
        assert "read-only" in said
        await a.press("tab", "tab", "enter")
        assert await desk_of(a).jobs(None) == ()
        await desk_of(a).start(FILMS)
        await a.press("escape", "escape", "escape")
        await to_list(a)
        await a.press("enter")
        for key in "prsltf":
            said = await a.read(a.press(key))
            await settled(a)
            assert isinstance(a.app.screen, JobScreen)
        assert "read-only" in said
        (job,) = await desk_of(a).jobs(None)
        assert job.state == "running"


async def test_marks_are_set_kept_and_taken_off_where_the_cursor_is():
    async with acting(SCENARIO, (80, 24)) as a:
        await to_tree(a, mark=False)
        assert "Enter choose all of /storage" in await a.read(a.press("g"))
        assert "Enter choose this" in await a.read(a.press("j"))
        await a.press("j")
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
        await a.press("space")
        assert "partly: marked inside" in (await a.read(a.press("g"))).splitlines()[-1]
        await a.press("space")
        assert "included via /storage" in (await a.read(a.press("j"))).splitlines()[-1]
        for _ in range(2):
            keys = a.screen.splitlines()[-1]
            assert "Space mark" not in keys, "it marks nothing"
            assert all(each in keys for each in ("Enter go on", "? help", "Esc back"))
            assert "included via /storage" in await a.read(a.press("space"))
