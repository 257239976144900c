"""The way through a rebalance: jobs, directories, what for, plan, job; Esc goes one step back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from zconsole.errors import ZconsoleError
from zconsole.monitor.frame import Frame
from zconsole.rebalance.backend import JobView, by_hand
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import Settings
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.folder_screen import FoldersScreen
from zconsole.ui.rebalance.folders import Folders
from zconsole.ui.rebalance.job_lines import job_rows
from zconsole.ui.rebalance.job_screen import JobScreen
from zconsole.ui.rebalance.job_watch import JobWatch
from zconsole.ui.rebalance.options import (
    FIXED,
    LIMITS,
    PLAN,
    Limit,
    ask_limit,
    option_about,
    option_lines,
    turned,
)
from zconsole.ui.rebalance.plan_lines import pace_of, plan_lines
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
        # On a job at work or interrupted, else on a new one.
        first = next((i + 1 for i, job in enumerate(jobs) if job.live or job.interrupted), 0)
        start = first if row is None else min(row, len(jobs))
        title = f"REBALANCE {look.text(self.pool)}  Enter opens, Esc leaves"
        return PickScreen(title, _lines, start=start, wide=True)

    def _jobs(self) -> tuple[JobView, ...]:
        return self.watch.jobs.get(self.pool, ())

    async def _new(self) -> None:
        rebalance_backend = self.watch.rebalance_backend
        roots = rebalance_backend.roots(self.pool)
        if not roots:
            raise ZconsoleError(f"no dataset of {self.pool} is mounted")
        folders = Folders(roots)
        while True:
            explorer = await rebalance_backend.explore()
            screen = FoldersScreen(self.context, self.pool, folders, explorer)
            dirs = await self.context.app.push_screen_wait(screen)
            if dirs is None:
                return
            job = await self._plan(Settings(dirs))
            if job is not None:
                await self._attach(job)
                return

    async def _plan(self, settings: Settings) -> str | None:
        """Options, then their plan, and back; the job once one is started."""
        row = PLAN
        while True:
            picked = await self.context.app.push_screen_wait(self._options(settings, row))
            if picked is None:
                return None
            row = picked
            if picked == PLAN:
                if await self._confirmed(settings):
                    return await self.watch.rebalance_backend.start(settings)
            elif FIXED <= picked < FIXED + len(LIMITS):
                settings = await self._limited(settings, LIMITS[picked - FIXED])
            else:
                settings = turned(settings, picked)

    def _options(self, settings: Settings, row: int) -> PickScreen:
        look = self.context.look
        return PickScreen(
            "REBALANCE  options  Enter changes, Esc goes back",
            lambda width: option_lines(settings, look, width),
            start=row,
            wide=True,
            about=lambda index, width: option_about(settings, index, look, width),
        )

    async def _limited(self, settings: Settings, limit: Limit) -> Settings:
        try:
            changed = await ask_limit(self.context, limit)
        except ZconsoleError as error:
            self.context.complain(error)
            return settings
        return replace(settings, limits=settings.limits.changed(changed))

    async def _confirmed(self, settings: Settings) -> bool:
        """Whether the plan of these settings was read, and is to be run."""
        context, rebalance_backend = self.context, self.watch.rebalance_backend
        look, denied = context.look, context.denied
        command = by_hand(rebalance_backend, settings)

        def _body(plan: PlanDocument, width: int) -> tuple[Line, ...]:
            frame = context.frame_of(self.pool)
            scan_rate = scan_pace(frame) if frame else None
            pace = pace_of(plan, settings.limits.rate, self._jobs(), scan_rate)
            return plan_lines(plan, settings, pace, command, denied, look, width)

        screen = PlanScreen(context, rebalance_backend.plan(settings), _body, denied, command)
        return await context.app.push_screen_wait(screen) is True

    async def _attach(self, job: str) -> None:
        screen = JobScreen(self.context, self.pool, job, self.watch)
        await self.context.app.push_screen_wait(screen)


def scan_pace(frame: Frame) -> float | None:
    """Mean allocated bytes/s of the newest scan that ended and took long enough to measure."""
    for view in frame.scans:
        scan = view.scan
        if scan.state != "finished" or scan.start is None or scan.end is None:
            continue
        took, issued = scan.end - scan.start, scan.issued_bytes or scan.scanned_bytes
        if took >= 10 and issued:
            return issued / took
    return None
