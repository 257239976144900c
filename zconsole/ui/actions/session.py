"""Session of the flows: asks questions, confirms plans, runs them and follows their progress.

A flow is a coroutine that takes the session and the key of the row at the cursor. It imports
neither the app nor the controller that starts it, so a test can run it with a session that gives
scripted answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import NamedTuple, TypeVar

from textual.notifications import SeverityLevel
from textual.screen import Screen

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent, Executor
from zconsole.actions.facts import (
    PATIENCE,
    Refresher,
    is_answer,
    situation_of,
    with_failures,
)
from zconsole.actions.plan import ActionOutcome, ActionPlan, Facts, Situation
from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.pool.model import Event
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.rebalance.held_vdevs import HeldVdevs
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import PastRate, known_paces
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.timeline.feed import Feed, Update
from zconsole.timeline.frame import DONE, OUTCOME, Frame
from zconsole.tunables.autopilot import Status
from zconsole.tunables.control import Past
from zconsole.tunables.holds import Scans
from zconsole.ui.actions.effects import EffectWatch
from zconsole.ui.actions.plan_lines import part, plan_lines, said_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen, PickList, PickScreen, TextQuestion
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.job_watch import JobWatch, News
from zconsole.ui.swap.swap_watch import SwapWatch
from zconsole.ui.themed_app import FLOW, ThemedApp
from zconsole.ui.widgets.draw import Span

Answer = TypeVar("Answer")
Planner = Callable[[Situation], ActionPlan]
Ran = Callable[[Sequence[ExecutionEvent]], Awaitable[None]]
"""Called with the events of a plan's execution, even if that failed."""

HURRY = 0.5
"""Seconds between samples while an action waits for a fresh sample."""

_ROLES = {
    "begun": "bold",
    "skipped": "dim",
    "warning": "warning",
    "failed": "error",
    "refused": "error",
    "done": "good",
}


@dataclass(slots=True)
class UnderWay:
    """A plan that is being carried out, and the number of its commands that have begun."""

    plan: ActionPlan
    begun: int = 0


BEGINS = 10.0
"""Most seconds from the start of a resilver to the end of the commands that caused it."""


class Followed(NamedTuple):
    """A plan whose commands are done, and whose end is watched for."""

    plan: ActionPlan
    facts: Facts
    since: float
    """Time its commands were done, epoch seconds."""


class FollowUp:
    """Receives each round of frames before it is shown: finds fresh frames, and ends of plans."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._rounds = 0
        self._came = asyncio.Event()
        """Set by the next round, then replaced."""
        self._frames: dict[str, Frame] = {}
        self._following: list[Followed] = []
        self._scanning: set[str] = set()
        self._done: list[tuple[str, Event]] = []

    def take(self, update: Update) -> None:
        """Take in a round of frames, and wake those who wait for a fresh one."""
        self._rounds += 1
        self._frames = {frame.pool: frame for frame in update.frames}
        # Wakes who waits now; later waiters wait for the next round.
        self._came.set()
        self._came = asyncio.Event()

    async def fresh(self, pool: str, since: float) -> Frame:
        """Return the first frame of a pool whose reading began after ``since`` (steady clock).

        The time of delivery doesn't count, as reading a slow pool takes several rounds. On a
        timeout, return the newest frame there is: its ``looked`` and ``problem`` show that it is
        old. Raises UnavailableError if the pool is no longer imported.
        """
        asked = self._rounds
        # On a timeout the last frame is used, which says how old it is.
        with self._feed.hurried(HURRY), suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not self._is_answered(pool, since, asked):
                    await self._came.wait()
        frame = self._frames.get(pool)
        if frame is None or frame.absent:
            raise UnavailableError(f"{pool} is no longer imported")
        return frame

    def _is_answered(self, pool: str, since: float, asked: int) -> bool:
        frame = self._frames.get(pool)
        if frame is None:  # a round that was under way may be older than the question
            return self._rounds >= asked + 2
        problem = None if frame.absent else frame.problem
        return is_answer(frame.looked, problem, frame.suspended, since)

    def follow(self, plan: ActionPlan, facts: Facts, since: float) -> None:
        """Watch for the plan's end in samples taken after ``since`` (epoch seconds)."""
        if plan.supersedes:
            ended = (plan.pool, plan.action)
            self._following = [f for f in self._following if (f.plan.pool, f.plan.action) != ended]
        if plan.follow is not None:
            self._following.append(Followed(plan, facts, since))

    def ended(self, running: Iterable[UnderWay] = ()) -> Iterator[tuple[Followed, ActionOutcome]]:
        """Yield the followed plans whose end the newest frames show; each is reported once.

        Those that a running plan supersedes wait until it has ended them, or failed to.
        """
        plans = [each.plan for each in running if each.plan.supersedes]
        waiting = {(plan.pool, plan.action) for plan in plans}
        for followed in list(self._following):
            outcome = self.outcome(followed)
            is_waiting = (followed.plan.pool, followed.plan.action) in waiting
            if outcome is not None and not is_waiting:
                self._following.remove(followed)
                yield followed, outcome

    def outcome(self, followed: Followed) -> ActionOutcome | None:
        """Return the outcome of a plan as the newest frames show it; None if they show none."""
        plan, facts, since = followed
        frame = self._frames.get(plan.pool)
        if frame is None or plan.follow is None or frame.root is None:
            return None
        if frame.t <= since:  # older than its commands
            return None
        return plan.follow(situation_of(frame, facts))

    def predicted(self, frame: Frame) -> float | None:
        """Return the seconds in all that its plan predicted for the running resilver."""
        found = (v.scan for v in frame.scans if v.scan.active and v.scan.function == "resilver")
        begun = next((scan.start for scan in found if scan.start is not None), -inf)
        told = (
            followed.plan.predicted
            for followed in self._following
            if followed.plan.pool == frame.pool and begun >= followed.since - BEGINS
        )
        return max((seconds for seconds in told if seconds), default=None)

    def scans_over(self) -> Iterator[Frame]:
        """Yield the frames of pools whose last running scan has just ended."""
        for pool, frame in self._frames.items():
            if any(view.scan.active for view in frame.scans):
                self._scanning.add(pool)
            elif pool in self._scanning and not frame.problem:
                self._scanning.discard(pool)
                yield frame

    def record(
        self, pool: str, at: float, text: str, name: str = DONE, severity: str = "notice"
    ) -> None:
        """Record something done to a pool, or its outcome, as an event."""
        self._done.append((pool, Event(at, name, text, severity, origin="console")))

    def events(self, pool: str) -> Iterator[Event]:
        """Return the recorded events of a pool."""
        return (event for where, event in self._done if where == pool)


class FlowSession:
    """Gives flows access to the app's screens, and to the backend that changes pools."""

    def __init__(
        self, app: ThemedApp, feed: Feed, backend: ActionBackend, swaps: SwapWatch
    ) -> None:
        self.app = app
        self.feed = feed
        self.backend = backend
        self.swaps = swaps
        """Open checklists of disk swaps."""
        self.jobs = JobWatch(backend.rebalance_backend, self._heard)
        """Rebalance jobs."""
        self.follow_up = FollowUp(feed)
        self.effects = EffectWatch()
        self.under_way: list[UnderWay] = []
        """Plans that are being carried out."""
        self.past = Past()
        """Tunables set from consoles, as of the last reading."""
        self.windows: tuple[ScrubWindow, ...] = ()
        """Scrub windows (hours of scrubs), as of the last reading."""
        self.held: tuple[HeldVdevs, ...] = ()
        """Full vdevs that take no new writes while jobs run, as of the last reading."""
        self.windows_read = float("-inf")
        """When that reading began, epoch seconds."""
        self.autopilot: Status | None = None
        """State of the autopilot, as of the last reading; None if none runs."""

    # The pool on show

    @property
    def frame(self) -> Frame | None:
        """Newest frame of the pool on show."""
        return self.app.view_state.frame

    def frame_of(self, pool: str) -> Frame | None:
        """Return the newest frame of a pool, or None."""
        return next((frame for frame in self.app.view_state.frames if frame.pool == pool), None)

    @property
    def look(self) -> DisplayFormat:
        """How sizes and times are formatted."""
        return self.app.view_state.look

    @property
    def denied(self) -> str:
        """Why nothing may be changed now; empty if changes are allowed."""
        state = self.app.view_state
        return state.why_denied(state.source, self.backend.denied)

    def frame_shown(self) -> Frame:
        """Return the newest frame of the pool on show. Raises ZconsoleError before a sample."""
        if self.frame is None:
            raise ZconsoleError("no pool was sampled yet; try again in a moment")
        return self.frame

    def situation_shown(self) -> Situation:
        """Return the pool as on the screen, without facts. Raises ZconsoleError before a sample."""
        return situation_of(self.frame_shown(), Facts())

    async def situation_now(
        self, paths: tuple[str, ...] = (), shown: Situation | None = None
    ) -> Situation:
        """Return the pool on show, or ``shown``, with facts of the machine read now.

        ``paths`` are devices to examine. Raises ZconsoleError without a pool.
        """
        bare = shown or self.situation_shown()
        facts = await self.backend.ask(bare.pool, bare.suspended, paths)
        return replace(bare, facts=with_failures(facts, self.app.view_state.frames))

    def scans(self, ended: Iterable[str] = ()) -> Scans:
        """Return the scans as of the newest round; ``ended`` are pools whose scan was seen to end.

        A pool that doesn't answer, or is not shown, may be scanning: it counts in neither group,
        and ``whole`` is False.
        """
        state = self.app.view_state
        known = {
            frame.guid or frame.pool: frame
            for frame in state.frames
            if frame.absent or not frame.problem
        }
        running = {
            key: frame.pool
            for key, frame in known.items()
            if not frame.absent and any(view.scan.active for view in frame.scans)
        }
        return Scans(
            running,
            {key: frame.pool for key, frame in known.items() if key not in running},
            tuple(key for key in ended if key not in running),
            whole=not state.options.pools and len(known) == len(state.frames),
        )

    async def paces(self, frame: Frame) -> tuple[PastRate, ...]:
        """Return how fast earlier scans of a pool were, also by the reports that are kept of it."""
        past, reports = self.app.view_state.options.past, tuple[ScanReport, ...]()
        with suppress(StateError):  # an estimate is not worth a replace
            reports = tuple(await past(frame.guid)) if past and frame.guid else ()
        return known_paces(frame, reports)

    def show_swaps(self) -> None:
        """Repaint with the current swap checklists, without waiting for a sample."""
        state = self.app.view_state
        if (update := self.feed.joined()) is not None:
            state.latest = state.listed(update)
        self.app.paint()

    # State kept on the machine

    async def read_windows(self) -> None:
        """Read the scrub windows, and the vdevs held for jobs; keep the last ones if that fails."""
        began = self.backend.clock()
        with suppress(OSError, ZconsoleError):
            self.windows = await in_daemon_thread(self.backend.windows.windows)
            self.windows_read = began
        with suppress(OSError, ZconsoleError):
            self.held = await in_daemon_thread(self.backend.holds.held)

    async def read_autopilot(self) -> None:
        """Read the state of the machine's autopilot; keep the last one if that fails."""
        with suppress(OSError, ZconsoleError):
            self.autopilot = await self.backend.autopilots.status()

    async def read_past(self) -> None:
        """Read which tunables were set from consoles."""
        self.past = await in_daemon_thread(self.backend.control.past)

    # Questions and confirmations

    async def show(self, screen: Screen[Answer]) -> Answer | None:
        """Show a screen until it is left, and return its result."""
        return await self.app.push_screen_wait(screen)

    async def pick(self, choice: PickList) -> int | None:
        """Return the index of the chosen line, None if left. Raises what its ``fill`` raises."""
        screen = PickScreen(choice)
        picked = await self.show(screen)
        if screen.failed is not None:
            raise screen.failed
        choice.picked = choice.picked if picked is None else picked
        return picked

    async def ask(self, question: TextQuestion, read: Callable[[str], Answer]) -> Answer | None:
        """Ask until ``read`` accepts the answer; return its result, None if the question was left.

        An OSError or ZconsoleError of ``read`` is shown, and the question asked again.
        """
        while (typed := await self.typed(question)) is not None:
            question.typed = typed
            try:
                return read(typed)
            except (OSError, ZconsoleError) as error:
                self.show_error(error)
        return None

    async def typed(self, question: TextQuestion) -> str | None:
        """Return the answer as typed, or None if the question was left."""
        return await self.show(AskScreen(question))

    async def confirm(
        self, *ways: Planner, paths: tuple[str, ...] = (), ran: Ran | None = None
    ) -> bool:
        """Show a plan in all its variants, and let one be run; return False if it was only read.

        ``paths`` are devices that the plan names. ``ran`` is called with the results.
        """
        situation = await self.situation_now(paths)
        plans = [way(situation) for way in ways]
        # Enter runs the first one, so those that are refused or would meet a known bug come last.
        plans.sort(key=lambda plan: bool(plan.refused or plan.hazards))
        able = [plan for plan in plans if plan.refused is None]
        if plans[0] in able and not plans[0].hazards:
            plans = able
        elif not able:
            plans = plans[:1]
        facts = situation.facts
        return await self.confirmed(*(self.confirmation(plan, facts, paths, ran) for plan in plans))

    async def confirm_change(
        self,
        title: str,
        said: Sequence[Span],
        run: Callable[[str | None], AsyncIterator[Span]],
        command: str,
        typed: str | None = None,
    ) -> bool:
        """Have a change confirmed that is not a plan; ``command`` does the same in a shell."""
        denied = self.denied
        lines = [*said, *part("By hand", (command,), "bold")]
        lines += [Span(denied, "error")] if denied else []
        return await self.confirmed(
            Confirmation(
                title,
                partial(said_lines, lines),
                run,
                typed=typed,
                barred=bool(denied),
                commands=(command,),
            )
        )

    async def confirmed(self, *confirmations: Confirmation) -> bool:
        """Show confirmations, and return whether one of them was run."""
        screen = ConfirmScreen(confirmations)
        await self.show(screen)
        return screen.confirmed

    def show_error(self, problem: Exception | str) -> None:
        """Notify the operator of an error."""
        self.app.notify(str(problem), severity="error", about=FLOW)

    def report_outcome(
        self,
        pool: str,
        text: str,
        *,
        ok: bool = True,
        about: object = None,
        follows: Callable[[], str] | None = None,
    ) -> None:
        """Notify the operator of an outcome, and record it as an event."""
        self.follow_up.record(
            pool, self.backend.clock(), text, OUTCOME, "notice" if ok else "error"
        )
        severity: SeverityLevel = "information" if ok else "error"
        self.app.notify(text, timeout=20, severity=severity, about=about, follows=follows)

    def _heard(self, pool: str, news: News) -> None:
        """Record news of a job as an event of its pool; earlier messages about it are over."""
        self.app.withdraw(news.job)
        severity = "warning" if news.severity == "warning" else "notice"
        self.follow_up.record(pool, self.backend.clock(), news.text, OUTCOME, severity)

    # Plans

    def refresher(self, paths: tuple[str, ...] = ()) -> Refresher:
        """Return a refresher, which reads a pool anew by waiting for its next good frame."""
        return Refresher(self.follow_up.fresh, self.backend.ask, paths)

    def executor(self, paths: tuple[str, ...] = ()) -> Executor:
        """Return an executor of plans; it refuses all of them if changes are denied."""
        return self.backend.executor(self.refresher(paths), self.denied)

    def confirmation(
        self,
        plan: ActionPlan,
        facts: Facts,
        paths: tuple[str, ...] = (),
        ran: Ran | None = None,
    ) -> Confirmation:
        """Return the confirmation of a plan; ``ran`` is called with the results."""
        denied = self.denied
        return Confirmation(
            plan.title,
            partial(plan_lines, plan, denied),
            partial(self._carry_out, plan, facts, self.executor(paths), ran),
            plan.needs_typed,
            barred=plan.refused is not None or bool(denied),
            commands=tuple(step.command for step in plan.steps),
            checks=() if plan.refused else plan.checks,
        )

    async def _carry_out(
        self,
        plan: ActionPlan,
        facts: Facts,
        executor: Executor,
        ran: Ran | None,
        typed: str | None,
    ) -> AsyncIterator[Span]:
        """Run a plan and yield its progress; then follow it to its end."""
        kind, begun, follow_up = "", self.backend.clock(), self.follow_up
        events: list[ExecutionEvent] = []
        self.under_way.append(now := UnderWay(plan))
        try:
            async for event in executor.run(plan, typed):
                kind = event.kind
                events.append(event)
                now.begun += kind in ("begun", "skipped")
                for said in _said(event, plan):
                    yield said
        except ZconsoleError as error:
            yield Span(str(error), "error")
            return
        finally:
            # A plan that was canceled or failed halfway is reported, too.
            if ran is not None:
                await ran(events)
            self.under_way.remove(now)
            if now.begun and kind == "done":
                follow_up.record(plan.pool, begun, plan.title)
            elif now.begun:  # an OUTCOME is not marked on the timeline
                follow_up.record(plan.pool, begun, f"{plan.title}: failed", OUTCOME, "error")
        if kind == "done":  # withdraws "scrub paused" once the scrub runs again
            self.app.withdraw((plan.pool, plan.action))
        if kind == "done" and any(step.window for step in plan.steps):
            await self.read_windows()  # the main screen shows them at once
        if kind == "done" and plan.follow is not None:
            follow_up.follow(plan, facts, self.backend.clock())
            if plan.action == "replace" or (plan.action, plan.begins) == ("attach", "resilver"):
                self.app.await_filled()
            if plan.begins:
                yield Span(f"The console tells you when the {plan.begins} ends.", "dim")

    def ended(self, followed: Followed, outcome: ActionOutcome) -> None:
        """Report the end of a followed plan; the message changes or goes if that passes."""
        plan, text = followed.plan, outcome.text
        if outcome.unused:
            text = f"{plan.pool} no longer uses {', '.join(outcome.unused)}: {text}"
        self.executor().ended(plan, replace(outcome, text=text))
        # Checklists say themselves when to pull the old disks.
        led = {swap.old.bay for swap in self.swaps.open if swap.pool == plan.pool}
        text = outcome.text if led.issuperset(outcome.unused) else text

        def _now() -> str:
            now = self.follow_up.outcome(followed)
            return now.text if now is not None and now.ok else ""

        self.report_outcome(
            plan.pool,
            text if outcome.ok else f"{plan.title}: {text}",
            ok=outcome.ok,
            # What became of one device stays true when another one is acted on.
            about=(plan.pool, plan.action) if plan.action == "scrub" else None,
            follows=_now if outcome.passes else None,
        )


def _said(event: ExecutionEvent, plan: ActionPlan) -> Iterator[Span]:
    role, words = _ROLES.get(event.kind, ""), event.text
    match event.kind:
        case "begun":
            words = f"$ {words}"
        case "done":
            words = "Started." if plan.begins else "Done."
        case "skipped":
            words = f"Not needed: {words}"
        case "refused":
            words = f"Not run: {words}"
        case "failed" if event.step is not None:
            words = "Failed. No further command was run."
    yield Span(words, role)
    if event.kind == "refused" and event.step is not None:
        first = event.step is plan.steps[0]
        rest = "Nothing was changed: plan it again." if first else "No further command was run."
        yield Span(rest, role)
    if event.meaning:
        yield Span(event.meaning, "warning")
