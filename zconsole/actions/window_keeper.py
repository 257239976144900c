"""The duty that keeps scrubs to their hours: it runs plans, as a console does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from zconsole.actions.executor import Executor
from zconsole.actions.facts import Frames, MachineFacts, situation_of
from zconsole.actions.plan import Facts
from zconsole.actions.scrub import is_paused
from zconsole.actions.scrub_window import LOOK, MachineWindows, due
from zconsole.errors import ZconsoleError
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.day_hours import local_time
from zconsole.system.keeper import StandingDuty
from zconsole.timeline.frame import Frame


class WindowKeeper(StandingDuty):
    """A duty that runs the due action of each scrub window."""

    name = "scrub hours"
    ends_by = "zconsole scrub off POOL"

    def __init__(
        self,
        records: MachineWindows,
        lock: Path | None,
        executor: Executor,
        ask: MachineFacts,
        frames: Frames,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(lock, clock)
        self._records = records
        self._executor = executor
        self._ask = ask
        self._frames = frames

    def is_empty(self) -> bool:
        """Return whether there are no windows."""
        return not self._records.windows()

    async def look(self) -> float:
        """Check every window once; a window that fails is retried at the next check.

        Returns the seconds until then. Raises ZconsoleError or OSError if the pools or the file
        can't be read now.
        """
        windows = await in_daemon_thread(self._records.windows)
        frames = await self._frames()
        for window in windows:
            frame = next((f for f in frames if f.guid == window.guid), None)
            if frame is None or frame.problem:
                continue  # exported, or not answering: keep its window
            try:
                await self._one(window, frame)
            except (OSError, ZconsoleError) as error:
                self._said(f"{window.pool}: {error}")
        return LOOK

    async def _one(self, window: ScrubWindow, frame: Frame) -> None:
        bare = situation_of(frame, Facts())
        s = situation_of(frame, await self._ask(bare.pool, bare.suspended))
        found = due(window, s, local_time(self._executor.clock()))
        after = None if found.over else replace(found.window, pool=s.pool.name)
        if after != window and not await self._replaced(window, after):
            return  # changed by somebody else: check again
        if found.over:
            self._said(f"{window.pool}: the scrub has ended")
        if after is None or found.plan is None or found.plan.refused is not None:
            return
        async for event in self._executor.run(found.plan):
            if event.kind == "begun" and after not in await in_daemon_thread(self._records.windows):
                self._said(f"{window.pool}: not run, as the hours were changed meanwhile")
                return
            self._said(f"{window.pool}: {event.kind} {event.text}")
            if event.kind == "done":  # a quick scrub must not start again, nor count as paused
                paused = after.paused and not is_paused(s.active("scrub"))
                await self._replaced(after, replace(after, begun=True, paused=paused))

    def _said(self, text: str) -> None:
        """Log what was done, or why it failed."""
        log, t = self._executor.log, self._executor.clock()
        log.note(t, "noted", kind="keeper", duty=self.name, result=text)

    async def _replaced(self, before: ScrubWindow, after: ScrubWindow | None) -> bool:
        return await in_daemon_thread(self._records.replaced, before, after)
