"""The way through a rebalance: jobs, directories, what for, plan, job; Esc goes one step back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.folder_screen import Folders, FoldersScreen
from zconsole.ui.rebalance.job_screen import JobScreen, job_rows
from zconsole.ui.rebalance.job_watch import JobWatch
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
from zconsole.ui.widgets.draw import Line


@dataclass(frozen=True, slots=True)
class RebalanceFlow:
    """Everything behind one key press, on the pool that is shown then."""

    context: FlowContext
    watch: JobWatch
    pool: str

    async def run(self) -> None:
        """The list of jobs, until it is left. Raises ZconsoleError."""
        row: int | None = None
        while True:
            await self.watch.look(self.pool)
            picked = await self.context.app.push_screen_wait(self._list(row))
            if picked is None:
                return
            row = picked
            if picked == 0:
                try:
                    await self._new()
                except ZconsoleError as error:  # the list comes back
                    self.context.complain(error)
            elif picked <= len(self._jobs()):
                await self._attach(self._jobs()[picked - 1].job)

    def _list(self, row: int | None) -> PickScreen:
        look = self.context.look

        def _lines(width: int) -> tuple[Line, ...]:
            return job_rows(self._jobs(), look, width)

        jobs = self._jobs()
        # On the newest job that goes on or can be resumed, else on a new one.
        first = next((i + 1 for i, job in enumerate(jobs) if job.state != "finished"), 0)
        start = first if row is None else min(row, len(jobs))
        title = f"REBALANCE  {look.text(self.pool)}"
        return PickScreen(title, _lines, start=start, wide=True)

    def _jobs(self) -> tuple[JobView, ...]:
        return self.watch.jobs.get(self.pool, ())

    async def _new(self) -> None:
        rebalance_backend = self.watch.rebalance_backend
        roots = rebalance_backend.roots(self.pool)
        if not roots:
            raise ZconsoleError(f"no dataset of {self.pool} is mounted; mount one first")
        folders, settings = Folders(roots), Settings((), limits=Limits(until_spread=EVEN))
        while True:
            explorer = await rebalance_backend.explore()
            screen = FoldersScreen(self.context, self.pool, folders, explorer)
            dirs = await self.context.app.push_screen_wait(screen)
            if dirs is None:
                return
            job, settings = await self._plan(replace(settings, dirs=dirs))
            if job is not None:
                await self._attach(job)
                return

    async def _plan(self, settings: Settings) -> tuple[str | None, Settings]:
        """Options, then their plan, and back; the job once one is started, and what was set.

        Unless more is asked for, it stops where the vdevs are even.
        """
        row, new = PLAN, NewJob(settings)
        while True:
            picked = await self.context.app.push_screen_wait(self._options(new, row))
            if picked is None:
                return None, new.kept()
            row = picked
            if picked == OTHERS:
                await self._more(new)
                continue
            if picked != PLAN:
                await self._set(new, ASKED[picked])
                continue
            new.plan = None
            while await self._agreed(new):
                try:
                    job = await self.watch.rebalance_backend.start(new.settings)
                except ZconsoleError as error:  # the plan comes back
                    self.context.complain(error)
                else:
                    return job, new.settings

    async def _more(self, new: NewJob) -> None:
        """The other options, until they are left."""
        look, row = self.context.look, 0
        while True:
            screen = PickScreen(
                "REBALANCE  more options",
                lambda width: entry_lines(MORE, new, look, width),
                start=row,
                wide=True,
                about=lambda index, width: entry_about(MORE[index], new, look, width),
                topics=option_topics(),
            )
            picked = await self.context.app.push_screen_wait(screen)
            if picked is None:
                return
            row = picked
            await self._set(new, MORE[picked])

    async def _set(self, new: NewJob, entry: OptionChoice | Limit) -> None:
        """Ask for one entry's value; nothing changes where that is left."""
        if isinstance(entry, Limit):
            new.limit(await ask_limit(self.context, entry, new.settings.limits))
            return
        settings = await ask_choice(self.context, entry, new.settings)
        is_risk = settings.accept_races and not new.settings.accept_races
        if not is_risk or await ask_races(self.context):
            new.take(settings)

    def _options(self, new: NewJob, row: int) -> PickScreen:
        look = self.context.look
        return PickScreen(
            "REBALANCE  options",
            lambda width: option_lines(new, look, width),
            start=row,
            wide=True,
            about=lambda index, width: option_about(new, index, look, width),
            topics=option_topics(),
        )

    async def _agreed(self, new: NewJob) -> bool:
        """Whether its plan was read and is to be run."""
        screen = PlanScreen(self.context, self.pool, new, self.watch)
        agreed = await self.context.app.push_screen_wait(screen)
        return bool(agreed)

    async def _attach(self, job: str) -> None:
        screen = JobScreen(self.context, self.pool, job, self.watch)
        await self.context.app.push_screen_wait(screen)
