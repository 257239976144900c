"""Scrubs kept to their hours: a duty of the keeper, which pauses and resumes each to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import Facts
from zconsole.actions.refresh import FreshFrame, Refresher, situation_of
from zconsole.actions.scrub_window import KEEPER, LOOK, MachineWindows, due
from zconsole.errors import ZconsoleError
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.keeper import StandingDuty
from zconsole.timeline.frame import Frame

Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""The newest frame of every pool."""
Said = Callable[[str], object]
"""Takes a line about what was done, or why it could not be."""


class WindowKeeper(StandingDuty):
    """Does what is due about each window, by plans as the console runs them."""

    name = "scrub hours"
    ends_by = "zconsole scrub off POOL"

    def __init__(
        self,
        records: MachineWindows,
        backend: ActionBackend,
        frames: Frames,
        fresh: FreshFrame,
        said: Said,
    ) -> None:
        """``fresh`` samples a pool anew, for the executor."""
        super().__init__(records.directory / KEEPER)
        self._records = records
        self._backend = backend
        self._frames = frames
        self._fresh = fresh
        self._said = said

    def is_empty(self) -> bool:
        """See StandingDuty."""
        return not self._records.windows()

    async def look(self) -> float:
        """Look at every window once; what fails of one is tried again at the next look.

        Raises ZconsoleError or OSError where the pools or the file can't be read now.
        """
        windows = await in_daemon_thread(self._records.windows)
        frames = await self._frames()
        for window in windows:
            frame = next((f for f in frames if f.guid == window.guid), None)
            if frame is None or frame.problem:
                continue  # exported, or it does not answer: what is kept of it stays
            try:
                await self._one(window, frame)
            except (OSError, ZconsoleError) as error:
                self._said(f"{window.pool}: {error}")
        return LOOK

    async def _one(self, window: ScrubWindow, frame: Frame) -> None:
        bare = situation_of(frame, Facts())
        s = situation_of(frame, await self._backend.ask(bare.pool, bare.suspended))
        found = due(window, s, datetime.fromtimestamp(self._backend.clock(), UTC).astimezone())
        after = None if found.over else replace(found.window, pool=s.pool.name)
        if after != window and not await self._replaced(window, after):
            return  # somebody changed it: look again
        if found.over:
            self._said(f"{window.pool}: the scrub has ended")
        if after is None or found.plan is None or found.plan.refused is not None:
            return
        executor = self._backend.executor(Refresher(self._fresh, self._backend.ask))
        async for event in executor.run(found.plan):
            if event.kind == "begun" and after not in await in_daemon_thread(self._records.windows):
                self._said(f"{window.pool}: not run, as the hours were changed meanwhile")
                return
            self._said(f"{window.pool}: {event.kind} {event.text}")
            if event.kind == "done":  # one that is over before the next look is not started again
                await self._replaced(after, replace(after, begun=True))

    async def _replaced(self, before: ScrubWindow, after: ScrubWindow | None) -> bool:
        return await in_daemon_thread(self._records.replaced, before, after)
