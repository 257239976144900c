"""Flow of a rebalance: list of jobs, directories, options, plan, job; Esc goes back one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobView
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
    """Show the rebalance jobs of the pool on show, and start new ones. Raises ZconsoleError."""
    if ui.frame is not None:
        await RebalanceFlow(ui, ui.frame.pool).run()


@dataclass(frozen=True, slots=True)
class RebalanceFlow:
    """Rebalance of one pool, the one on show when the key was pressed."""

    ui: FlowSession
    pool: str

    async def run(self) -> None:
        """Show the list of jobs until it is left. Raises ZconsoleError."""
        await self.ui.jobs.look(self.pool)
        jobs = self._jobs()
        # The cursor starts on the newest job that is not finished, else on a new one.
        first = next((i + 1 for i, job in enumerate(jobs) if job.state != "finished"), 0)
        screen = JobListScreen(self.ui, self.pool, first)
        while (picked := await self.ui.show(screen)) is not None:
            before = len(self._jobs())
            if picked == 0:
                try:
                    await self._new()
                except ZconsoleError as error:  # back to the list
                    self.ui.show_error(error)
            else:
                await self._attach(screen.shown[picked - 1].job)
            await self.ui.jobs.look(self.pool)
            new = max(0, len(self._jobs()) - before)  # above the others
            screen = JobListScreen(self.ui, self.pool, min(picked + new, len(self._jobs())))

    def _jobs(self) -> tuple[JobView, ...]:
        return self.ui.jobs.jobs.get(self.pool, ())

    async def _new(self) -> None:
        rebalance_backend = self.ui.jobs.rebalance_backend
        roots = rebalance_backend.roots(self.pool)
        if not roots:
            raise ZconsoleError(f"no dataset of {self.pool} is mounted; mount one first")
        # By default a job stops once the vdevs are even.
        folders, settings = Folders(roots), Settings((), limits=Limits(until_spread=EVEN))
        while True:
            explorer = await rebalance_backend.explore()
            dirs = await self.ui.show(FoldersScreen(self.ui, self.pool, folders, explorer))
            if dirs is None:
                return
            job, settings = await self._plan(replace(settings, dirs=dirs))
            if job is not None:
                await self._attach(job)
                return

    async def _plan(self, settings: Settings) -> tuple[str | None, Settings]:
        """Show the options, then their plan; return the job, if one was started, and settings."""
        new = NewJob(settings)
        options = PickList(
            "REBALANCE  options",
            partial(option_lines, new),
            start=PLAN,
            about=partial(option_about, new),
            topics=option_topics(),
        )
        while (picked := await self.ui.pick(options)) is not None:
            if picked == OTHERS:
                await self._more(new)
                continue
            if picked != PLAN:
                await self._set(new, ASKED[picked])
                continue
            new.plan = None
            while await self.ui.show(PlanScreen(self.ui, self.pool, new)):
                try:
                    job = await self.ui.jobs.rebalance_backend.start(new.settings)
                except ZconsoleError as error:  # back to the plan
                    self.ui.show_error(error)
                else:
                    return job, new.settings
        return None, new.kept()

    async def _more(self, new: NewJob) -> None:
        """Show the other options until they are left."""
        options = PickList(
            "REBALANCE  more options",
            partial(entry_lines, MORE, new),
            about=partial(entry_about, MORE, new),
            topics=option_topics(),
        )
        while (picked := await self.ui.pick(options)) is not None:
            await self._set(new, MORE[picked])

    async def _set(self, new: NewJob, entry: OptionChoice | Limit) -> None:
        """Ask for the value of an entry; change nothing if the question is left."""
        if isinstance(entry, Limit):
            new.limit(await ask_limit(self.ui, entry, new.settings.limits))
            return
        settings = await ask_choice(self.ui, entry, new.settings)
        is_risk = settings.accept_races and not new.settings.accept_races
        if not is_risk or await ask_races(self.ui):
            new.take(settings)

    async def _attach(self, job: str) -> None:
        await self.ui.show(JobScreen(self.ui, self.pool, job))
