"""Fresh looks at a pool: a sample taken now, and the facts about its machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from typing import Protocol

from zconsole.actions.gather import gather
from zconsole.actions.machine import Machine
from zconsole.actions.plan import Facts, Situation
from zconsole.decode import decode
from zconsole.errors import NotFoundError, UnavailableError
from zconsole.frame import Frame
from zconsole.model import Pool, Sample, Trouble
from zconsole.sources.base import Source
from zconsole.sources.runner import Runner

SUSPENDED = "SUSPENDED"


class Asker(Protocol):
    """Finds out the facts about a pool's machine."""

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """What is known now; unknown things stay unknown."""


def machine_facts(runner: Runner, machine: Machine) -> Asker:
    """The facts about a real machine, asked of it each time."""

    async def ask(pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        return await gather(runner, pool, suspended, machine, paths)

    return ask


def situation_of(frame: Frame, facts: Facts) -> Situation:
    """What the views show, as plans want it; the last good sample of a pool that is stuck."""
    root = frame.root
    if root is None:
        raise UnavailableError(f"{frame.pool}: {frame.problem or 'nothing is known of it yet'}")
    pool = Pool(
        name=frame.pool,
        state=frame.state,
        root=root,
        guid=frame.guid,
        message=frame.message,
        scans=tuple(view.scan for view in frame.scans),
        activities=tuple(view.activity for view in frame.activities),
        error_count=frame.error_count,
        errors=frame.errors,
        comment=frame.comment,
    )
    return Situation(pool, facts, frame.t, SUSPENDED in (frame.state, frame.kstat))


class SourceLook:
    """Looks through a source of its own; a stuck pool is looked at as it last was."""

    def __init__(self, source: Source, ask: Asker, zone: tzinfo = UTC) -> None:
        self._source = source
        self._ask = ask
        self._zone = zone
        self._last: dict[str, Situation] = {}

    async def __call__(self, name: str, paths: tuple[str, ...] = ()) -> Situation:
        """See execute.Look. Raises NotFoundError, or UnavailableError when nothing is known."""
        for raw in await self._source.sample() or ():
            for seen in decode(raw, self._zone):
                if _pool_name(seen) == name:
                    return await self._situation(seen, paths)
        raise NotFoundError(f"{name}: no such pool is imported")

    async def _situation(self, seen: Sample | Trouble, paths: tuple[str, ...]) -> Situation:
        name = _pool_name(seen)
        if isinstance(seen, Sample):
            stuck = SUSPENDED in (seen.pool.state, seen.kstat)
            now = Situation(seen.pool, Facts(), seen.t, stuck)
        elif name in self._last:
            now = dataclasses.replace(self._last[name], suspended=seen.kstat == SUSPENDED)
        else:
            raise UnavailableError(f"{name}: {seen.text}")
        self._last[name] = now
        facts = await self._ask(now.pool, now.suspended, paths)
        return dataclasses.replace(now, facts=facts)


def _pool_name(seen: Sample | Trouble) -> str:
    return seen.pool.name if isinstance(seen, Sample) else seen.pool


FreshFrame = Callable[[str], Awaitable[Frame]]
"""The next frame of a pool that is sampled from now on."""


def frame_look(
    fresh: FreshFrame, ask: Asker, paths: tuple[str, ...] = ()
) -> Callable[[str], Awaitable[Situation]]:
    """Looks through the console's own feed: the next frame, with facts asked for anew."""

    async def look(name: str) -> Situation:
        frame = await fresh(name)
        now = situation_of(frame, Facts())
        return dataclasses.replace(now, facts=await ask(now.pool, now.suspended, paths))

    return look
