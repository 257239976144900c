"""A swap being led: what there is to see, and plans carried out and written down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from zconsole.actions.backend import ActionBackend
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.refresh import FreshFrame, Refresher
from zconsole.errors import ZconsoleError
from zconsole.swap.checklist import Checklist
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.disk import SwapDisk
from zconsole.swap.guide import Guide, is_own, leaving, started
from zconsole.swap.light import blinking_ends, can_blink
from zconsole.swap.onlooker import Onlooker
from zconsole.swap.progress import absent, current, noticed
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import SwapStore
from zconsole.swap.view import MachineView
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame

Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""


def just_pulled(before: Checklist, after: Checklist) -> bool:
    """Whether a disk that may have been made to blink is out since the look before."""
    return can_blink(before.old) and before.pulled is None and after.pulled is not None


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
        v = await self.view(partial(is_own, c), c.old)
        if v is None or not can_blink(c.old):
            return v
        # What is busy is measured for a while: not in the hours of a resilver that comes before.
        now = self._backend.clock()
        if current(noticed(c, v, now), v, now).step != "light":
            return v
        return replace(v, busy=await self.busy())

    async def busy(self) -> Mapping[str, float]:
        """The disks that do I/O now, with their share of time."""
        return await in_daemon_thread(self._backend.lights.busy)

    async def end_blinking(self, c: Checklist) -> None:
        """End the reads that made the old disk blink."""
        with suppress(ZconsoleError, OSError):  # reads of a disk that is out end by themselves
            await in_daemon_thread(self._backend.lights.switch, blinking_ends(c.old))

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
        c = guide.checklist
        v = await self.view_of(c)
        stage = guide.look(v, self._backend.clock())
        if just_pulled(c, guide.checklist):
            await self.end_blinking(c)
        return stage

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
