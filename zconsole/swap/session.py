"""A swap being led: what there is to see, and plans carried out and written down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.refresh import FreshFrame, Refresher
from zconsole.swap.checklist import Checklist
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.disk import SwapDisk
from zconsole.swap.guide import Guide, is_own, leaving, started
from zconsole.swap.onlooker import Onlooker
from zconsole.swap.progress import absent, current, noticed
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import SwapStore
from zconsole.swap.view import MachineView
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame

Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""


class SwapSession:
    """Connects checklists with one machine, or one simulated shelf."""

    def __init__(
        self, backend: ActionBackend, onlooker: Onlooker, frames: Frames, fresh: FreshFrame
    ) -> None:
        """``fresh`` samples a pool anew, for the executor."""
        self._backend = backend
        self._onlooker = onlooker
        self._frames = frames
        self._fresh = fresh

    @property
    def denied(self) -> str:
        """Why nothing may be run here; empty when it may."""
        return self._backend.denied

    async def view(
        self, pool: Callable[[Situation], bool], disk: SwapDisk | None = None
    ) -> MachineView | None:
        """See ``Onlooker.look``."""
        return await self._onlooker.look(await self._frames(), pool, disk)

    async def view_of(self, c: Checklist) -> MachineView | None:
        """What a checklist is judged by; None while its pool is not imported."""
        return await self.view(partial(is_own, c), c.old)

    def begin(
        self,
        choice: SwapChoice,
        way: SwapWay,
        v: MachineView,
        store: SwapStore,
        estimate: Estimate | None = None,
    ) -> Guide:
        """The guide of a swap that was confirmed; see ``guide.started``."""
        return started(choice, way, v, store, self._backend.clock(), estimate)

    async def peek(self, c: Checklist, kept: Iterable[Checklist]) -> tuple[Checklist, SwapStage]:
        """A checklist and its step, seen now but not kept: another process may lead it.

        ``kept``: every checklist there is; disks that other open ones swap may be pulled.
        """
        v = await self.view_of(c)
        if v is None:
            return c, absent(c)
        v = replace(v, leaving=leaving(c, kept))
        now = self._backend.clock()
        seen = noticed(c, v, now)
        return seen, current(seen, v, now)

    async def stage(self, guide: Guide) -> SwapStage:
        """The current step of a checklist, seen now."""
        return guide.look(await self.view_of(guide.checklist), self._backend.clock())

    def answer(self, guide: Guide, name: str) -> None:
        """Take an answer of the current stage, by its name."""
        guide.answer(name, self._backend.clock())

    def close(self, guide: Guide, stage: SwapStage) -> None:
        """Close a checklist at its current stage; what is left undone is written down."""
        guide.close(self._backend.clock(), stage.undone)

    async def run(
        self, guide: Guide, stage: SwapStage, plan: ActionPlan, typed: str | None = None
    ) -> AsyncIterator[ExecutionEvent]:
        """Carry out the plan of a stage, or that of its way back, and write down what it did.

        ``typed`` is what the operator typed to confirm.
        """
        executor = self._backend.executor(Refresher(self._fresh, self._backend.ask, stage.paths))
        events: list[ExecutionEvent] = []
        try:
            async for event in executor.run(plan, typed):
                events.append(event)
                yield event
        finally:
            guide.ran(stage, plan, events, self._backend.clock())
