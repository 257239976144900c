"""What there is to see of swaps, and beginning one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import Situation
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

    def __init__(self, backend: ActionBackend, onlooker: Onlooker, frames: Frames) -> None:
        self._backend = backend
        self._onlooker = onlooker
        self._frames = frames

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
