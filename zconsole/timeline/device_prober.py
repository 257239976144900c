"""Probes devices in trouble in the background, and judges them by the results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from zconsole.diagnosis.device_errors.faults import DeviceFault, ProbeResults, judged
from zconsole.timeline.frame import Frame

Ask = Callable[[str, float], Awaitable[ProbeResults]]
"""Maps a leaf's path, and the epoch second since which messages count, to probe results."""

AGAIN = 300.0
"""Seconds a result is kept while nothing new happens to the device."""
SOONEST = 60.0
"""… and while something does."""
HOUR = 3600.0
AT_ONCE = 4
"""Devices probed at a time: a failing shelf must not start forty smartctl."""


class DeviceProber:
    """One per run; results arrive in a later round than they were requested in."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[str, ProbeResults] = {}
        self._asked: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """The frames, their troubles judged by all results so far; never waits."""
        return tuple(self._judged(frame) if frame.troubles else frame for frame in frames)

    async def aclose(self) -> None:
        """Cancel running probes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _judged(self, frame: Frame) -> Frame:
        paths = {row.key: row.vdev.path for row in frame.rows}
        found = []
        for trouble in frame.troubles:
            path = paths.get(trouble.key)
            if path is not None and not frame.problem:
                self._begin(path, trouble, frame.t)
            signs = self._known.get(path or "")
            found.append(judged(trouble, signs) if signs else trouble)
        return replace(frame, troubles=tuple(found))

    def _begin(self, path: str, trouble: DeviceFault, now: float) -> None:
        asked = self._asked.get(path, float("-inf"))
        wait = SOONEST if trouble.last > asked else AGAIN
        if now - asked < wait or len(self._tasks) >= AT_ONCE:
            return
        self._asked[path] = now
        task = asyncio.create_task(self._take(path, now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, path: str, now: float) -> None:
        signs = await self._ask(path, now - HOUR)
        old = self._known.get(path)
        before = old.before if old is not None else signs.smart
        smart = signs.smart or (old.smart if old is not None else None)
        self._known[path] = ProbeResults(smart, signs.kernel, before or signs.smart)
