"""One checklist as this console follows it: led, or only seen where another process leads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.refresh import situation_of
from zconsole.errors import ZconsoleError
from zconsole.swap.backend import SwapBackend
from zconsole.swap.checklist import Checklist
from zconsole.swap.guide import Guide
from zconsole.swap.onlooker import Onlooker
from zconsole.swap.progress import current
from zconsole.swap.session import SwapSession
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import SwapStore
from zconsole.swap.view import MachineView
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.context import FlowContext


def session_of(context: FlowContext, backend: SwapBackend) -> SwapSession:
    """What connects checklists with the machine of this console."""

    async def _frames() -> Sequence[Frame]:
        return context.app.view_state.frames

    onlooker = Onlooker(context.backend.ask, backend.smart_of, backend.boot)
    return SwapSession(context.backend, onlooker, _frames)


async def peeked(
    context: FlowContext, kept: Sequence[Checklist], c: Checklist
) -> tuple[Checklist, SwapStage]:
    """A checklist and its step as they are now, for who doesn't lead it. Raises ZconsoleError."""
    swaps = context.swaps
    if swaps.session is None:  # one for all looks: it remembers what disks said of themselves
        swaps.session = session_of(context, swaps.backend)
    return await swaps.session.peek(c, kept)


class FollowedSwap:
    """A checklist and its current step.

    What writes it waits for a disk, so that is done in a thread, and one thing after another.
    """

    def __init__(
        self, context: FlowContext, backend: SwapBackend, checklist: Checklist, store: SwapStore
    ) -> None:
        """``store`` is closed by whoever opened it."""
        self._context = context
        self._session = session_of(context, backend)
        self._store = store
        self._seen = checklist
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
        self._seen = next((c for c in found if c.id == self._seen.id), self._seen)
        self._seen, self.stage = await self._session.peek(self._seen, found)

    async def _lead(self) -> None:
        if self._guide is None:
            self._guide = await in_daemon_thread(partial(Guide, self._seen, self._store))
        v = await self._view()
        if self._context.under_way:
            return  # what the plan did is not written yet: seen without it, it would be misread
        look = partial(self._guide.look, v, self._context.backend.clock())
        self.stage = await in_daemon_thread(look)

    async def situation(self) -> Situation | None:
        """The pool now; None while it is not imported."""
        v = await self._view()
        return None if v is None else v.situation

    async def _view(self) -> MachineView | None:
        v = await self._session.view_of(self.checklist)
        self._last = v or self._last
        return v

    async def answer(self, name: str) -> None:
        """Take an answer of the current stage, by its name."""
        guide = self._guide
        if guide is not None:
            async with self._turn:
                await in_daemon_thread(guide.answer, name, self._context.backend.clock())

    async def ran(
        self, stage: SwapStage, plan: ActionPlan, events: Sequence[ExecutionEvent]
    ) -> None:
        """Write down what a plan did."""
        guide = self._guide
        if guide is not None:
            now = self._context.backend.clock()
            async with self._turn:
                await in_daemon_thread(guide.ran, stage, plan, events, now)

    async def close(self) -> None:
        """Close the checklist: backed out, or given up with something left undone."""
        guide, undone = self._guide, self.stage.undone if self.stage is not None else ()
        if guide is not None:
            async with self._turn:
                await in_daemon_thread(guide.close, self._context.backend.clock(), undone)
