"""Fresh readings of a pool: a new sample, and the facts about its machine."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence

from zconsole.actions.facts import MachineFacts
from zconsole.actions.plan import Facts, Situation
from zconsole.errors import UnavailableError
from zconsole.timeline.feed import Feed
from zconsole.timeline.frame import Frame


def situation_of(frame: Frame, facts: Facts) -> Situation:
    """Return the situation for plans from a frame, or from the last good sample of a stuck pool.

    Raises UnavailableError if the pool was never sampled.
    """
    if frame.sample is None:
        raise UnavailableError(f"{frame.pool}: {frame.problem or 'not sampled yet'}")
    return Situation(
        frame.sample.pool, facts, frame.t, frame.suspended, frame.looked, frame.problem
    )


PATIENCE = 15.0
"""Seconds to wait for a sample younger than the question.

A read that hangs is abandoned after five seconds, and so is the next one.
"""


def is_answer(looked: float | None, problem: str | None, suspended: bool, since: float) -> bool:
    """Return whether a sample begun at ``looked`` shows the pool after ``since``.

    For a suspended pool, being suspended is all that a sample can tell.
    """
    return looked is not None and looked > since and (problem is None or suspended)


FreshFrame = Callable[[str, float], Awaitable[Frame]]
"""Returns a pool's first frame sampled after a time, in seconds of the steady clock."""


class Refresher:
    """A reader that combines a fresh frame of the console's feed with fresh facts."""

    def __init__(self, fresh: FreshFrame, ask: MachineFacts, paths: tuple[str, ...] = ()) -> None:
        """``paths`` are devices the operator named, whose facts are read, too."""
        self._fresh = fresh
        self._ask = ask
        self._paths = paths

    async def __call__(self, pool: str, since: float) -> Situation:
        """Return the pool's situation from a sample begun after ``since``, if one comes in time.

        ``since`` is in seconds of the steady clock; ``looked`` and ``problem`` of the result tell
        whether it did. Raises UnavailableError if the pool is not imported.
        """
        now = situation_of(await self._fresh(pool, since), Facts())
        facts = await self._ask(now.pool, now.suspended, self._paths)
        return dataclasses.replace(now, facts=facts)

    async def guid(self, pool: str) -> str | None:
        """Return the GUID of the pool that has this name now; None without an answer in time."""
        return await self._ask.guid(pool)


class RoundsOnDemand:
    """The frames of a feed, sampled on demand."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def frames(self) -> Sequence[Frame]:
        """Sample all pools now. Raises UnavailableError without ZFS."""
        update = await self._feed.sample()
        return update.frames if update is not None else ()

    async def fresh(self, pool: str, since: float) -> Frame:
        """Return a frame of the pool sampled after ``since``, or the newest one after a timeout.

        Raises UnavailableError when the pool is not imported.
        """
        frame: Frame | None = None
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while loop.time() < until:
            found = await self.frames()
            frame = next((f for f in found if f.pool == pool and not f.absent), None)
            if frame is None:
                break
            if is_answer(frame.looked, frame.problem, frame.suspended, since):
                break
            await asyncio.sleep(0.2)
        if frame is None:
            raise UnavailableError(f"{pool} is no longer imported")
        return frame
