"""The way through a rebalance: jobs, directories, what for, plan, job; Esc goes one step back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import Counted, JobView, RebalanceBackend, by_hand
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.folder_screen import FoldersScreen
from zconsole.ui.rebalance.folders import Folders
from zconsole.ui.rebalance.job_lines import job_rows
from zconsole.ui.rebalance.job_screen import JobScreen
from zconsole.ui.rebalance.job_watch import JobWatch
from zconsole.ui.rebalance.options import (
    ENTRIES,
    PLAN,
    TARGET,
    Limit,
    OptionChoice,
    ask_choice,
    ask_limit,
    ask_races,
    option_about,
    option_lines,
    option_topics,
)
from zconsole.ui.rebalance.plan_lines import pace_of, plan_lines
from zconsole.ui.rebalance.plan_screen import PlanScreen
from zconsole.ui.widgets.draw import Line


@dataclass(slots=True)
class Offer:
    """A plan being made, and the settings it came to be for."""

    backend: RebalanceBackend
    settings: Settings
    target_typed: bool = False
    """Whether the operator typed the target: then it stays, whatever the plan says."""
    dropped: bool = False
    """Whether the default target was, as the directories hold too little to reach it."""
    plan: PlanDocument | None = None
    """Once it is made."""

    @property
    def command(self) -> str:
        """What runs it on the command line."""
        return by_hand(self.backend, self.settings)

    async def made(self) -> AsyncIterator[Counted | PlanDocument]:
        """The steps of making it. Directories that hold too little to get even move whole."""
        if self.plan is not None:
            yield self.plan
            return
        async for step in self.backend.plan(self.settings):
            if isinstance(step, PlanDocument) and self._is_short(step):
                self.dropped = True
                self.settings = replace(self.settings, limits=self._limits_without)
                async for again in self.backend.plan(self.settings):
                    yield self._noted(again)
            else:
                yield self._noted(step)

    def _noted(self, step: Counted | PlanDocument) -> Counted | PlanDocument:
        if isinstance(step, PlanDocument):
            self.plan = step
        return step

    def _is_short(self, plan: PlanDocument) -> bool:
        limits, aim = self.settings.limits, self.settings.aim
        wanted = limits.until_spread == EVEN and aim == "balance"
        return (
            wanted
            and not self.target_typed
            and plan.spread_before is not None
            and plan.bytes_to_target is None
        )

    @property
    def _limits_without(self) -> Limits:
        return replace(self.settings.limits, until_spread=None)


@dataclass(slots=True)
class Choices:
    """What is chosen on the options, and where the target to stop at comes from."""

    settings: Settings
    typed: bool = False
    """Whether the operator typed the target."""
    short: bool = False
    """Whether a plan dropped the default one, as the directories hold too little."""

    def planned(self, offer: Offer) -> None:
        """Take over what a plan came to be made for."""
        self.settings, self.short = offer.settings, self.short or offer.dropped

    def limit(self, changed: Mapping[str, Any]) -> None:
        """Set limits by name."""
        self.settings = replace(self.settings, limits=self.settings.limits.changed(changed))
        if TARGET.name in changed:
            self.typed, self.short = True, False

    def take(self, settings: Settings) -> None:
        """What was picked; another aim sets the target anew."""
        if settings.aim != self.settings.aim:
            self.typed = self.short = False
        self.settings = settings

    def left(self) -> Settings:
        """What is kept for other directories: no accepted risk, but the default target."""
        kept = replace(self.settings, accept_races=False)
        if not self.short:
            return kept
        return replace(kept, limits=replace(kept.limits, until_spread=EVEN))


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
        row, choices = PLAN, Choices(settings)
        while True:
            picked = await self.context.app.push_screen_wait(self._options(choices, row))
            if picked is None:
                return None, choices.left()
            row = picked
            if picked == PLAN:
                offer = Offer(self.watch.rebalance_backend, choices.settings, choices.typed)
                while await self._agreed(offer):
                    try:
                        job = await self.watch.rebalance_backend.start(offer.settings)
                    except ZconsoleError as error:  # the plan comes back
                        self.context.complain(error)
                    else:
                        return job, choices.settings
                choices.planned(offer)
            else:
                await self._set(choices, ENTRIES[picked])

    async def _set(self, choices: Choices, entry: OptionChoice | Limit) -> None:
        """Ask for one entry's value; nothing changes where that is left."""
        if isinstance(entry, Limit):
            limits = choices.settings.limits
            choices.limit(await ask_limit(self.context, entry, limits))
            return
        settings = await ask_choice(self.context, entry, choices.settings)
        is_risk = settings.accept_races and not choices.settings.accept_races
        if not is_risk or await ask_races(self.context):
            choices.take(settings)

    def _options(self, choices: Choices, row: int) -> PickScreen:
        look = self.context.look
        settings, typed, short = choices.settings, choices.typed, choices.short
        return PickScreen(
            "REBALANCE  options",
            lambda width: option_lines(settings, look, width, typed, short),
            start=row,
            wide=True,
            about=lambda index, width: option_about(settings, index, look, width, typed, short),
            topics=option_topics(),
        )

    async def _agreed(self, offer: Offer) -> bool:
        """Whether its plan was read and is to be run."""
        context = self.context
        look, denied = context.look, context.denied

        def _body(plan: PlanDocument, width: int) -> tuple[Line, ...]:
            frame = context.frame_of(self.pool)
            scan_rate = scan_pace(frame) if frame else None
            pace = pace_of(plan, offer.settings.limits.rate, self._jobs(), scan_rate)
            return plan_lines(plan, offer.settings, pace, offer.command, denied, look, width)

        screen = PlanScreen(
            context,
            offer.made(),
            _body,
            denied,
            command=lambda: offer.command,
            size=lambda plan: plan.bytes_within(offer.settings.limits),
        )
        agreed = await context.app.push_screen_wait(screen)
        return bool(agreed)

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
