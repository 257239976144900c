"""One checklist as followed by this console: led, or only watched if another process leads."""

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
from zconsole.swap.store import Guide, SwapStore
from zconsole.swap.watch import current
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.session import FlowSession


class FollowedSwap:
    """A checklist and its current step.

    Everything that writes may wait for a disk, so it is done in a thread, one call at a time.
    """

    def __init__(self, context: FlowSession, swap: Checklist, store: SwapStore) -> None:
        """``store`` is closed by the caller that opened it."""
        self._context = context
        self._session = context.swaps.session
        self._store = store
        self._seen = swap
        self._guide: Guide | None = None
        self._last: MachineView | None = None
        """The machine view of the newest look."""
        self._turn = asyncio.Lock()
        self.stage: SwapStage | None = None
        """The current step, as of the newest look; None before the first."""

    @property
    def checklist(self) -> Checklist:
        """The checklist as last saved or read."""
        return self._seen if self._guide is None else self._guide.checklist

    @property
    def problem(self) -> str:
        """Why the checklist could not be saved; empty if it was."""
        return self._guide.problem if self._guide is not None else ""

    @property
    def hold(self) -> str:
        """Why this console may not act on it; empty when it may."""
        if self._context.denied:
            return self._context.denied
        led = self._guide is not None and self._guide.leads
        return "" if led else "another console leads this checklist"

    async def look(self) -> None:
        """Update the current step. Raises ZconsoleError."""
        async with self._turn:
            if self._context.denied:  # a console that may not act must not take the lead
                await self._peek()
            else:
                await self._lead()
            self.advance()
            if self.stage is not None:
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

    async def _peek(self) -> None:
        """Update the step without leading: from the saved checklist and the machine."""
        found = await in_daemon_thread(self._store.read)
        self._seen = next((swap for swap in found if swap.id == self._seen.id), self._seen)
        self._seen, self.stage = await self._session.peek(self._seen, found)

    async def _lead(self) -> None:
        """Update the step and save what is new, as the leading process or following it."""
        if self._guide is None:
            self._guide = await in_daemon_thread(partial(Guide, self._seen, self._store))
        view = await self._view()
        if self._context.under_way:
            return  # the plan's result is not logged yet: without it, the machine would be misread
        look = partial(self._guide.look, view, self._context.backend.clock())
        self.stage = await in_daemon_thread(look)

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
        """Call a method of ``Guide`` with the time and ``args``, unless this console never led."""
        guide, now = self._guide, self._context.backend.clock()
        if guide is not None:
            async with self._turn:
                await in_daemon_thread(change, guide, now, *args)
