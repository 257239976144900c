"""One checklist as followed by this console: led, or only watched if it may not act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from zconsole.actions.facts import situation_of
from zconsole.actions.plan import Situation
from zconsole.errors import ZconsoleError
from zconsole.swap.disk import Checklist, MachineView
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import comes_before
from zconsole.swap.store import Guide
from zconsole.swap.watch import current
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.session import FlowSession


class FollowedSwap:
    """A checklist and its current step.

    Everything that writes may wait for a disk, so it is done in a thread, one call at a time.
    """

    def __init__(self, context: FlowSession, guide: Guide) -> None:
        self._context = context
        self._session = context.swaps.session
        self.guide = guide
        self._last: MachineView | None = None
        """The machine view of the newest look."""
        self._turn = asyncio.Lock()
        self.stage: SwapStage | None = None
        """The current step, as of the newest look; None before the first."""

    @property
    def checklist(self) -> Checklist:
        """The checklist as last saved or, if another process leads, as last seen here."""
        return self.guide.checklist

    @property
    def hold(self) -> str:
        """Why this console may not act on it; empty when it may."""
        other = "" if self.guide.leads else "another console leads this checklist"
        return self._context.denied or other

    async def look(self) -> None:
        """Update the current step, and save what is new. Raises ZconsoleError."""
        async with self._turn:
            view = await self._view()
            if self._context.under_way:
                return  # the plan's result is not logged yet: without it, the machine is misread
            now = self._context.backend.clock()
            self.stage = await in_daemon_thread(partial(self.guide.look, view, now))
            self.advance()
            self._context.swaps.saw(self.checklist, self.stage)

    def advance(self) -> None:
        """Move on from the replace step if the newest sample shows that it has begun.

        A look at the machine may take half a minute, and compares the pool as it was at its start.
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
        begun = found.over or not comes_before(self.checklist, found.step, "replace")
        if begun and not found.alarm:
            self.stage = found

    async def situation(self) -> Situation | None:
        """Read the pool's state now; None while it is not imported."""
        view = await self._view()
        return None if view is None else view.situation

    async def _view(self) -> MachineView | None:
        """Read the machine view; a missing pool leaves the last one."""
        view = await self._session.view_of(self.checklist)
        self._last = view or self._last
        return view

    async def write(self, change: Callable[..., None], *args: object) -> None:
        """Call a method of the guide with the time and ``args``."""
        async with self._turn:
            await in_daemon_thread(change, self._context.backend.clock(), *args)
