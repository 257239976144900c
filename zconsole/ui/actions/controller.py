"""What acts on the pools a console shows: it asks, plans, has confirmed, runs and follows.

It takes as long to load as all that only looks, so the console loads it after its first paint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent, Executor
from zconsole.actions.growth import plan_expand, space_gained
from zconsole.actions.plan import ActionOutcome, ActionPlan, Facts, Situation
from zconsole.actions.refresh import FrameLook, situation_of
from zconsole.actions.target import key_of
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.monitor.feed import Update
from zconsole.monitor.join import joined
from zconsole.pool.topology import data_vdevs
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.follow_up import Done, FollowUp
from zconsole.ui.actions.menu import (
    Entry,
    Planner,
    menu_lines,
    reason_lines,
    row_entries,
    scan_entries,
)
from zconsole.ui.actions.plan_lines import plan_lines, wrapped
from zconsole.ui.actions.quit_warnings import UnderWay, left_behind
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.tuned import TunedWatch
from zconsole.ui.actions.wizards import attach_flow, batch_flow, replace_flow
from zconsole.ui.background import begin
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen, OutputLine
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.job_watch import JobWatch
from zconsole.ui.theme.styles import Palette
from zconsole.ui.widgets.draw import Line

if TYPE_CHECKING:
    from zconsole.ui.actions.acting_console import ActingConsole
    from zconsole.ui.rebalance.flow import RebalanceFlow

_ROLES = {
    "begun": "accent",
    "output": "",
    "skipped": "dim",
    "warning": "warning",
    "failed": "error",
    "refused": "error",
    "done": "notice",
}


class ActionController:
    """Acts for one console, with the kit of its machine."""

    def __init__(self, console: ActingConsole, backend: ActionBackend) -> None:
        self.console = console
        self.backend = backend
        self.watch = FollowUp(console.feed)
        self.jobs = JobWatch(backend.rebalance_backend)
        self.tuned = TunedWatch(backend.control)
        self._under_way: list[UnderWay] = []

    @property
    def colors(self) -> Palette:
        """The palette for screens of flows."""
        return cast("Palette", self.console.colors)

    def look(self, update: Update) -> Update:
        """A round before it is shown, changes marked; wakes who waits for it, reports ends."""
        self.watch.take(update)
        for plan, outcome in self.watch.ended():
            self._report(plan, outcome)
        for frame in self.watch.scans_over():
            begin(self.console, partial(self._put_back, frame.guid), group="tuned")
        begin(self.console, self.tuned.round, group="tuned")
        begin(self.console, partial(self._look_at_jobs, update), group="jobs")
        frames = (
            joined(
                frame,
                self.watch.extras(frame, self.tuned.past.changes),
                self.jobs.extras(frame.pool),
            )
            for frame in update.frames
        )
        return replace(update, frames=tuple(frames))

    async def _look_at_jobs(self, update: Update) -> None:
        for news in await self.jobs.round([frame.pool for frame in update.frames]):
            self.console.notify(news.text, severity=news.severity, timeout=15, markup=False)

    async def offer_to_put_back(self) -> None:
        """Tell of tunables that a console which is gone had set."""
        if left := await in_daemon_thread(self.backend.control.orphans):
            names = ", ".join(left)
            self.console.notify(
                f"A console that is no longer there had set {names}; T, then u, puts it back.",
                severity="warning",
                timeout=20,
                markup=False,
            )

    # Flows

    async def row_menu(self, key: str) -> None:
        """List everything that can be done with a row."""
        await self._menu("ACTIONS", partial(row_entries, key=key), key)

    async def scan_menu(self) -> None:
        """List what can be done with scrubs and resilvers."""
        await self._menu("SCANS", scan_entries, "")

    async def replace(self, key: str) -> None:
        """Replace a device."""
        await replace_flow(self, key)

    async def tunables(self) -> None:
        """Show the tunables."""
        await tunables_flow(self)

    async def rebalance(self) -> None:
        """Rebalance the pool on show: its jobs, and new ones."""
        flow = await in_daemon_thread(_rebalance)
        if (frame := self.console.view_state.frame) is not None:
            await flow(self.console, self.jobs, frame.pool, self.colors).run()

    async def leave(self) -> None:
        """Say what quitting leaves behind, and quit if that is all right."""
        behind, look = self.left_behind(), self.console.view_state.look

        def body(width: int) -> tuple[Line, ...]:
            return tuple(line for s in behind for line in wrapped(s.text, s.role, look, width))

        async def quit_console(typed: str | None) -> AsyncIterator[OutputLine]:
            self.console.exit(return_code=ExitCode.OK)
            yield OutputLine("")

        confirmation = Confirmation("Quit all the same?", body, quit_console, verb="Quit")
        await self.console.push_screen_wait(ConfirmScreen([confirmation], look, self.colors))

    def left_behind(self) -> tuple[OutputLine, ...]:
        """What quitting now would leave undone or untold; empty when nothing is."""
        frames = self.console.view_state.frames
        waiting = [name for frame in frames for name in self.tuned.past.due(frame.guid)]
        return left_behind(self._under_way, waiting)

    # What flows use

    async def situation(self, paths: tuple[str, ...] = ()) -> Situation:
        """The pool on show, with facts asked for now. Raises UnavailableError without any."""
        frame = self.console.view_state.frame
        if frame is None:
            raise ZconsoleError("nothing is known of a pool yet")
        bare = situation_of(frame, Facts())
        facts = await self.backend.ask(bare.pool, bare.suspended, paths)
        return situation_of(frame, facts)

    async def pick(self, screen: PickScreen) -> int | None:
        """What is picked on a list."""
        return await self.console.push_screen_wait(screen)

    async def confirm(self, ways: Sequence[Planner], paths: tuple[str, ...] = ()) -> None:
        """Show the plan, in each of its ways, and let it be run."""
        situation = await self.situation(paths)
        confirmations = [self._confirmation(way(situation), situation.facts, paths) for way in ways]
        # A way that is refused stands last: the first is what Enter would run.
        confirmations.sort(key=lambda confirmation: confirmation.barred)
        await self.console.push_screen_wait(
            ConfirmScreen(confirmations, self.console.view_state.look, self.colors)
        )

    def _look(self, paths: tuple[str, ...] = ()) -> FrameLook:
        return FrameLook(self.watch.fresh, self.backend.ask, paths)

    def _executor(self, denied: str = "", paths: tuple[str, ...] = ()) -> Executor:
        backend = self.backend
        return Executor(
            backend.command_runner,
            self._look(paths),
            backend.log,
            denied,
            backend.clock,
            backend.steady,
        )

    def _confirmation(self, plan: ActionPlan, facts: Facts, paths: tuple[str, ...]) -> Confirmation:
        denied = self.console.denied
        executor = self._executor(denied, paths)
        return Confirmation(
            plan.title,
            lambda width: plan_lines(plan, denied, self.console.view_state.look, width),
            partial(self._carry_out, plan, facts, executor),
            plan.needs_typed,
            barred=plan.refused is not None or bool(denied),
        )

    async def _carry_out(
        self, plan: ActionPlan, facts: Facts, executor: Executor, typed: str | None
    ) -> AsyncIterator[OutputLine]:
        kind = ""
        self._under_way.append(now := UnderWay(plan))
        try:
            async for event in executor.run(plan, typed):
                kind = event.kind
                if kind == "begun" and not now.begun:
                    self.watch.did(Done(self.backend.clock(), plan.pool, plan.title))
                now.begun += kind in ("begun", "skipped")
                for said in _said(event):
                    yield said
        except ZconsoleError as error:
            yield OutputLine(str(error), "error")
            return
        finally:
            self._under_way.remove(now)
        if kind == "done" and plan.follow is not None:
            self.watch.follow(plan, facts, self.backend.clock())
            yield OutputLine("Followed to its end; that will be told.", "dim")

    # Inside

    async def _menu(
        self, title: str, entries: Callable[[Situation], tuple[Entry, ...]], key: str
    ) -> None:
        situation = await self.situation()
        found: tuple[Entry, ...] = entries(situation)
        look = self.console.view_state.look
        screen = PickScreen(
            title,
            lambda width: menu_lines(found, look, width),
            self.colors,
            wide=True,
            about=lambda index, width: reason_lines(found, index, look, width),
            ellipsis=look.glyphs.ellipsis,
        )
        chosen = await self.pick(screen)
        if chosen is None:
            return
        entry = found[chosen]
        flows = {"batch": batch_flow, "attach": attach_flow}
        if entry.ways:
            await self.confirm(entry.ways)
        elif entry.flow in flows:
            await flows[entry.flow](self, key)
        else:
            await replace_flow(self, key, give_back=entry.flow == "give_back")

    def _report(self, plan: ActionPlan, outcome: ActionOutcome) -> None:
        self._executor().ended(plan, outcome)
        self._tell(plan.pool, f"{plan.title}: {outcome.text}", ok=outcome.ok)
        if outcome.ok and plan.action in ("replace", "spare"):
            offer = partial(self._offer_growth, plan.pool)
            begin(self.console, offer, group="growth", exit_on_error=False)

    def _tell(self, pool: str, text: str, *, ok: bool = True) -> None:
        """Say it now, and keep it among the events for who looks later."""
        severity = "notice" if ok else "error"
        self.watch.did(Done(self.backend.clock(), pool, text, severity, marked=False))
        self.console.notify(
            text, timeout=20, markup=False, severity="information" if ok else "error"
        )

    async def _offer_growth(self, pool: str) -> None:
        """After the last disk of a vdev was replaced by a larger one: say what it could gain."""
        situation = await self._look()(pool, self.backend.steady())
        for top in data_vdevs(situation.pool.root):
            key = key_of(situation.pool, top)
            plan = plan_expand(situation, key) if key else None
            if plan is not None and plan.refused is None and space_gained(situation, top):
                gain = f"{plan.title}: {plan.consequences[0]}. Put the cursor on it, then A."
                self._tell(pool, gain)

    async def _put_back(self, guid: str | None) -> None:
        """The scan has ended: put back what was set only for its time."""
        await self.tuned.look()
        names = () if self.console.denied else self.tuned.past.due(guid)
        if not names:
            return
        try:
            done = await in_daemon_thread(
                partial(self.backend.control.restore, self.backend.clock(), names)
            )
        except (OSError, ZconsoleError) as error:
            text = f"{', '.join(names)} not put back: {error}. T, then u, tries again."
            self.console.notify(text, severity="error", timeout=20, markup=False)
        else:
            text = "\n".join(f"{entry.name} {entry.text}" for entry in done)
            self.console.notify(text, markup=False)


def _rebalance() -> type[RebalanceFlow]:
    """The screens of a rebalance; they take a moment to load."""
    from zconsole.ui.rebalance.flow import RebalanceFlow

    return RebalanceFlow


def _said(event: ExecutionEvent) -> list[OutputLine]:
    role = _ROLES.get(event.kind, "")
    words = {"begun": f"$ {event.text}", "done": "Done.", "skipped": f"Not needed: {event.text}"}
    said = [OutputLine(words.get(event.kind, event.text), role)]
    if event.kind == "failed" and event.step is not None:
        said = [OutputLine("Failed; nothing more was run.", role)]
    return [*said, OutputLine(event.meaning, "warning")] if event.meaning else said
