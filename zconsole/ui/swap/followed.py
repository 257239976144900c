"""One checklist as this console follows it: led, or only seen where another process leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.refresh import situation_of
from zconsole.errors import ZconsoleError
from zconsole.swap.checklist import Answer, Checklist, SwapStage, sentence
from zconsole.swap.disk import MachineView
from zconsole.swap.session import Guide, SwapSession
from zconsole.swap.steps import plan_light
from zconsole.swap.store import SwapBackend, SwapStore
from zconsole.swap.undone import light_words
from zconsole.swap.watch import current
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.asking import confirmation_of
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.widgets.draw import Line, Span


def session_of(context: FlowContext, backend: SwapBackend) -> SwapSession:
    """What connects checklists with the machine of this console."""

    async def _frames() -> Sequence[Frame]:
        return context.app.view_state.frames

    return SwapSession(context.backend, backend, _frames)


async def peeked(
    context: FlowContext, kept: Sequence[Checklist], swap: Checklist
) -> tuple[Checklist, SwapStage]:
    """A checklist and its step as they are now, for who doesn't lead it. Raises ZconsoleError."""
    swaps = context.swaps
    if swaps.session is None:  # one for all looks: it remembers what disks said of themselves
        swaps.session = session_of(context, swaps.backend)
    return await swaps.session.peek(swap, kept)


class FollowedSwap:
    """A checklist and its current step.

    What writes it waits for a disk, so that is done in a thread, and one thing after another.
    """

    def __init__(
        self, context: FlowContext, backend: SwapBackend, swap: Checklist, store: SwapStore
    ) -> None:
        """``store`` is closed by whoever opened it."""
        self._context = context
        self._session = session_of(context, backend)
        self._store = store
        self._seen = swap
        self._guide: Guide | None = None
        self._last: MachineView | None = None
        """What was seen at the newest look."""
        self._turn = asyncio.Lock()
        self.stage: SwapStage | None = None
        """The current step, as of the newest look; None before the first."""

    @property
    def checklist(self) -> Checklist:
        """The checklist as it is kept."""
        return self._seen if self._guide is None else self._guide.checklist

    @property
    def problem(self) -> str:
        """Why the checklist is not kept; empty while it is."""
        return self._guide.problem if self._guide is not None else ""

    @property
    def hold(self) -> str:
        """Why this console may not go on with it; empty when it may."""
        if self._context.denied:
            return self._context.denied
        led = self._guide is not None and self._guide.leads
        return "" if led else "another console leads this checklist"

    async def look(self) -> None:
        """See the current step anew. Raises ZconsoleError."""
        async with self._turn:
            if self._context.denied:  # who may not act must not lead either
                await self._peek()
            else:
                await self._lead()
            self.advance()
            if self.stage is not None:
                self._context.swaps.saw(self.checklist, self.stage)

    def advance(self) -> None:
        """Leave the replace by the newest sample, if that shows that it has begun.

        A look at the machine may take half a minute, and judges the pool as it was at its start.
        """
        last, stage, frame = self._last, self.stage, self._context.frame_of(self.checklist.pool)
        if last is None or frame is None or stage is None or stage.step != "replace" or stage.alarm:
            return
        if self._context.under_way or frame.suspended:
            return
        try:
            seen = last.having(situation_of(frame, last.situation.facts))
        except ZconsoleError:
            return
        found = current(self.checklist, seen, self._context.backend.clock())
        steps = self.checklist.steps
        if not found.alarm and (found.over or found.step in steps[steps.index("replace") :]):
            self.stage = found

    async def _peek(self) -> None:
        found = await in_daemon_thread(self._store.read)
        self._seen = next((swap for swap in found if swap.id == self._seen.id), self._seen)
        self._seen, self.stage = await self._session.peek(self._seen, found)

    async def _lead(self) -> None:
        if self._guide is None:
            self._guide = await in_daemon_thread(partial(Guide, self._seen, self._store))
        view = await self._view()
        if self._context.under_way:
            return  # what the plan did is not written yet: seen without it, it would be misread
        look = partial(self._guide.look, view, self._context.backend.clock())
        self.stage = await in_daemon_thread(look)

    async def situation(self) -> Situation | None:
        """The pool now; None while it is not imported."""
        view = await self._view()
        return None if view is None else view.situation

    async def _view(self) -> MachineView | None:
        view = await self._session.view_of(self.checklist)
        self._last = view or self._last
        return view

    async def _write(self, write: Callable[[Guide, float], None]) -> None:
        """Have something written down, unless this console never led."""
        guide, now = self._guide, self._context.backend.clock()
        if guide is not None:
            async with self._turn:
                await in_daemon_thread(write, guide, now)

    async def answer(self, answer: Answer) -> None:
        """Take an answer of the current stage."""
        await self._write(lambda guide, now: guide.answer(answer, now))

    async def ran(
        self, stage: SwapStage, plan: ActionPlan, events: Sequence[ExecutionEvent]
    ) -> None:
        """Write down what a plan did."""
        await self._write(lambda guide, now: guide.ran(stage, plan, events, now))

    async def close(self) -> None:
        """Close the checklist: backed out, or given up with something left undone."""
        undone = self.stage.undone if self.stage is not None else ()
        await self._write(lambda guide, now: guide.close(now, undone))


GIVE_UP = "give up"
"""What to type to give up a swap that leaves something undone."""


async def plan_question(
    context: FlowContext, followed: FollowedSwap, stage: SwapStage, plan: ActionPlan
) -> None:
    """Show the plan with what the step says of it, and let it be run."""
    situation = await followed.situation()
    facts = situation.facts if situation else Facts()
    made = confirmation_of(context, plan, facts, stage.paths, partial(followed.ran, stage, plan))
    # They are about the step: they say nothing of its light, or of the way back.
    own = plan is stage.plan
    warned = [Span(text, "error") for text in stage.warnings if own]
    if stage.final and own:
        warned.append(Span(f"{stage.final_line}.", "warning"))

    def _body(width: int) -> tuple[Line, ...]:
        return (*said_lines(warned, context.look, width), *made.body(width))

    await _ask(context, replace(made, body=_body))


async def answer_question(context: FlowContext, followed: FollowedSwap, stage: SwapStage) -> None:
    """Ask whether it is so as one of the step's answers says."""
    questions: list[Confirmation] = []
    for answer in stage.answers:
        own = [Span(stage.title, "bold"), *(Span(text) for text in stage.text)]
        said = [Span(answer.means)] if answer.means else own
        said += [Span(text, "error") for text in stage.warnings]
        do = partial(followed.answer, answer)
        questions.append(_question(context, answer.text, said, do, answer.typed))
    await _ask(context, *questions)


async def give_up_question(context: FlowContext, followed: FollowedSwap, stage: SwapStage) -> None:
    """Ask whether to close the checklist; what is not undone is said, and a word to be typed."""
    back, swap = stage.back, followed.checklist
    typed, said = None, [Span("Nothing is left to undo. The report is kept.")]
    if back is None or not back.closes:
        typed = GIVE_UP
        said = [
            Span("What was done stays as it is; the checklist ends here.", "warning"),
            *(Span(sentence(text), "error") for text in stage.undone),
        ]
        if back is not None:
            said.append(Span("To undo it step by step instead: Esc, then Z."))
            said.append(Span(f"Z would now: {back.text}."))
    title = "Give up this swap?"
    question = _question(context, title, said, followed.close, typed, verb="Give up")
    if not swap.lit:
        await _ask(context, question)
        return
    off = Span(f"The light of {swap.old.spot} goes off: the state found before is restored.")
    rest = [span for span in said if span.text not in map(sentence, light_words(swap))]
    title = "Give up this swap, and switch the light off?"
    dark = _question(context, title, [off, *rest], followed.close, typed, verb="Give up")
    await _ask(
        context,
        replace(dark, run=partial(_dark_and_close, context, followed, stage)),
        replace(question, title="Give up this swap, and leave the light on?"),
    )


async def _dark_and_close(
    context: FlowContext, followed: FollowedSwap, stage: SwapStage, _: str | None
) -> AsyncIterator[Span]:
    """Switch the light off, then close; it stays open where the light can't be switched."""
    plan = await light_plan(followed)
    ran = partial(followed.ran, replace(stage, step="light-off"), plan)
    async for said in confirmation_of(context, plan, Facts(), (), ran).run(None):
        yield said
    if followed.checklist.lit:
        raise ZconsoleError("The light is still on, and the checklist open.")
    await followed.look()
    await followed.close()


async def light_plan(followed: FollowedSwap) -> ActionPlan:
    """The plan that switches the light of the bay the other way. Raises ZconsoleError."""
    situation, swap = await followed.situation(), followed.checklist
    if situation is None:
        raise ZconsoleError(f"{swap.pool} is not imported")
    return plan_light(situation, swap.old, on=not swap.lit)


def _question(
    context: FlowContext,
    title: str,
    said: list[Span],
    do: Callable[[], Awaitable[None]],
    typed: str | None,
    verb: str = "Yes",
) -> Confirmation:
    """A question whose answer is only written down; ``typed``: a word to type first."""

    def _body(width: int) -> tuple[Line, ...]:
        return said_lines(said, context.look, width)

    async def _run(_: str | None) -> AsyncIterator[Span]:
        await do()
        yield Span("Done.")

    return Confirmation(title, _body, _run, typed, bool(context.denied), verb=verb, leaves=True)


async def _ask(context: FlowContext, *questions: Confirmation) -> None:
    await context.app.push_screen_wait(ConfirmScreen(questions, context.look))
