"""Flow of a rebalance: list of jobs, directories, options, plan, job; Esc goes back one step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from zconsole.errors import ZconsoleError
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import PickList
from zconsole.ui.rebalance.folder_screen import Folders, FoldersScreen
from zconsole.ui.rebalance.job_screen import JobListScreen, JobScreen
from zconsole.ui.rebalance.options import (
    ASKED,
    MORE,
    OTHERS,
    PLAN,
    Limit,
    NewJob,
    OptionChoice,
    ask_choice,
    ask_limit,
    ask_races,
    entry_about,
    entry_lines,
    option_about,
    option_lines,
    option_topics,
)
from zconsole.ui.rebalance.plan_screen import PlanScreen


async def rebalance_flow(ui: FlowSession, _: str) -> None:
    """Show the rebalance jobs of the pool on show until left, and start new ones.

    Raises ZconsoleError.
    """
    pool = ui.frame_shown().pool
    await ui.jobs.look(pool)
    jobs = ui.jobs.of(pool)
    # The cursor starts on the newest job that is not finished, else on the newest.
    unfinished = (i + 1 for i, job in enumerate(jobs) if job.state != "finished")
    first = next(unfinished, min(1, len(jobs)))
    screen = JobListScreen(ui, pool, first)
    while (picked := await ui.show(screen)) is not None:
        before = len(ui.jobs.of(pool))
        if picked == 0:
            try:
                await _new_job(ui, pool)
            except ZconsoleError as error:  # back to the list
                ui.show_error(error)
        else:
            await ui.show(JobScreen(ui, pool, screen.shown[picked - 1].job))
        await ui.jobs.look(pool)
        now = len(ui.jobs.of(pool))
        new = max(0, now - before)  # above the others
        screen = JobListScreen(ui, pool, min(picked + new, now))


async def _new_job(ui: FlowSession, pool: str) -> None:
    """Choose directories and options, then start a job and show it."""
    backend = ui.jobs.rebalance_backend
    roots = backend.roots(pool)
    if not roots:
        raise ZconsoleError(f"no dataset of {pool} is mounted; mount one first")
    # By default a job stops once the vdevs are even.
    folders, settings = Folders(roots), Settings((), limits=Limits(until_spread=EVEN))
    while True:
        screen = FoldersScreen(ui, pool, folders, await backend.explore())
        if (dirs := await ui.show(screen)) is None:
            return
        new = NewJob(replace(settings, dirs=dirs))
        if (job := await _planned_job(ui, pool, new)) is not None:
            await ui.show(JobScreen(ui, pool, job))
            return
        settings = new.kept()


async def _planned_job(ui: FlowSession, pool: str, new: NewJob) -> str | None:
    """Show the options, then their plan; return the job once one was started."""
    options = PickList(
        "REBALANCE  options",
        partial(option_lines, new),
        start=PLAN,
        about=partial(option_about, new),
        topics=option_topics(),
    )
    while (picked := await ui.pick(options)) is not None:
        if picked == OTHERS:
            await _more(ui, new)
            continue
        if picked != PLAN:
            await _set(ui, new, ASKED[picked])
            continue
        new.plan = None
        while await ui.show(PlanScreen(ui, pool, new)):
            try:
                return await ui.jobs.rebalance_backend.start(new.settings)
            except ZconsoleError as error:  # back to the plan
                ui.show_error(error)
    return None


async def _more(ui: FlowSession, new: NewJob) -> None:
    """Show the other options until they are left."""
    options = PickList(
        "REBALANCE  more options",
        partial(entry_lines, MORE, new),
        about=partial(entry_about, MORE, new),
        topics=option_topics(),
    )
    while (picked := await ui.pick(options)) is not None:
        await _set(ui, new, MORE[picked])


async def _set(ui: FlowSession, new: NewJob, entry: OptionChoice | Limit) -> None:
    """Ask for the value of an entry; change nothing if the question is left."""
    if isinstance(entry, Limit):
        new.limit(await ask_limit(ui, entry, new.settings.limits))
        return
    settings = await ask_choice(ui, entry, new.settings)
    is_risk = settings.accept_races and not new.settings.accept_races
    if not is_risk or await ask_races(ui):
        new.take(settings)
