"""Fresh looks at a pool: a sample taken now, and the facts about its machine."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from typing import Protocol

from zconsole.actions.gather import gather, guid_of
from zconsole.actions.machine import Machine
from zconsole.actions.plan import Facts, Situation
from zconsole.errors import NotFoundError, UnavailableError
from zconsole.monitor.frame import Frame
from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.system.async_process import CommandRunner
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.base import Source

SUSPENDED = "SUSPENDED"


class Asker(Protocol):
    """Finds out the facts about a pool's machine."""

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """What is known now; unknown things stay unknown."""

    async def guid(self, pool: str) -> str | None:
        """The GUID of the pool that has this name now; None when nobody tells."""


class MachineFacts:
    """The facts about a real machine, asked of it each time."""

    def __init__(self, runner: CommandRunner, machine: Machine) -> None:
        self._runner = runner
        self._machine = machine

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """See Asker."""
        return await gather(self._runner, pool, suspended, self._machine, paths)

    async def guid(self, pool: str) -> str | None:
        """See Asker.guid."""
        return await guid_of(self._runner, pool)


def situation_of(frame: Frame, facts: Facts) -> Situation:
    """What the views show, as plans want it; the last good sample of a pool that is stuck."""
    if frame.sample is None:
        raise UnavailableError(f"{frame.pool}: {frame.problem or 'nothing is known of it yet'}")
    suspended = SUSPENDED in (frame.state, frame.kstat)
    return Situation(frame.sample.pool, facts, frame.t, suspended, frame.looked, frame.problem)


PATIENCE = 15.0
"""Seconds to wait for a sample younger than the question: a read that hangs takes five to be given
up, and the next one as long."""


class Look(Protocol):
    """Fresh looks at a pool."""

    async def __call__(self, pool: str, since: float) -> Situation:
        """The pool by a look that began after ``since`` (seconds of the steady clock), if one
        comes in time; ``looked`` and ``problem`` tell. Raises ZconsoleError without the pool."""

    async def guid(self, pool: str) -> str | None:
        """See Asker.guid."""


class SourceRefresher:
    """Looks through a source of its own; a stuck pool is looked at as it last was."""

    def __init__(
        self, source: Source, ask: Asker, paths: tuple[str, ...] = (), zone: tzinfo = UTC
    ) -> None:
        """``paths`` are devices the operator named, to be asked about too."""
        self._source = source
        self._ask = ask
        self._paths = paths
        self._zone = zone
        self._last: dict[str, Situation] = {}

    async def __call__(self, pool: str, since: float) -> Situation:
        """See Look. Raises NotFoundError, or UnavailableError when nothing is known."""
        now = await self._sampled(pool)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not is_answer(now.looked, now.problem, now.suspended, since):
                    now = await self._sampled(pool)
        facts = await self._ask(now.pool, now.suspended, self._paths)
        return dataclasses.replace(now, facts=facts)

    async def guid(self, pool: str) -> str | None:
        """See Look.guid."""
        return await self._ask.guid(pool)

    async def _sampled(self, name: str) -> Situation:
        for raw in await self._source.sample() or ():
            for seen in decode(raw, self._zone):
                if _pool_name(seen) == name:
                    return self._situation(seen)
        raise NotFoundError(f"{name}: no such pool is imported")

    def _situation(self, seen: Sample | SampleFailure) -> Situation:
        name = _pool_name(seen)
        if isinstance(seen, Sample):
            stuck = SUSPENDED in (seen.pool.state, seen.kstat)
            self._last[name] = Situation(seen.pool, Facts(), seen.t, stuck, seen.began)
        elif seen.absent or name not in self._last:
            raise UnavailableError(f"{name}: {seen.text}")
        else:
            self._last[name] = dataclasses.replace(
                self._last[name],
                suspended=seen.kstat == SUSPENDED,
                looked=seen.began,
                problem=seen.text,
            )
        return self._last[name]


def is_answer(looked: float | None, problem: str | None, suspended: bool, since: float) -> bool:
    """Whether a look that began at ``looked`` says how the pool was after ``since``.

    Of a suspended pool, that it is suspended is all there is to be had.
    """
    return looked is not None and looked > since and (problem is None or suspended)


def _pool_name(seen: Sample | SampleFailure) -> str:
    return seen.pool.name if isinstance(seen, Sample) else seen.pool


FreshFrame = Callable[[str, float], Awaitable[Frame]]
"""The first frame of a pool whose sampling began after so many seconds of the steady clock."""


class FrameLook:
    """Looks through the console's own feed: a frame that is fresh, with facts asked for anew."""

    def __init__(self, fresh: FreshFrame, ask: Asker, paths: tuple[str, ...] = ()) -> None:
        self._fresh = fresh
        self._ask = ask
        self._paths = paths

    async def __call__(self, pool: str, since: float) -> Situation:
        """See Look."""
        now = situation_of(await self._fresh(pool, since), Facts())
        facts = await self._ask(now.pool, now.suspended, self._paths)
        return dataclasses.replace(now, facts=facts)

    async def guid(self, pool: str) -> str | None:
        """See Look.guid."""
        return await self._ask.guid(pool)
