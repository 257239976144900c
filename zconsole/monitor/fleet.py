"""Several machines at once: one source and session each, their frames side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.monitor.feed import Update
from zconsole.monitor.frame import Frame
from zconsole.monitor.session import Session
from zconsole.system.sample_timer import SampleTimer
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.remote import RemoteSource


class Member:
    """One machine."""

    def __init__(self, host: str, source: RemoteSource, session: Session, prefix: bool) -> None:
        """With ``prefix`` its pools are shown as ``HOST:POOL``."""
        self.host = host
        self.source = source
        self._session = session
        self._prefix = prefix

    async def frames(self) -> tuple[Frame, ...]:
        """A frame for each of its pools now; a machine that is away gives stale ones."""
        found = self._session.advance(await self.source.sample() or ())
        if not self._prefix:
            return found
        return tuple(replace(frame, pool=self._named(frame.pool)) for frame in found)

    def take_notes(self) -> tuple[str, ...]:
        """See Session.take_notes."""
        return self._session.take_notes()

    def _named(self, pool: str) -> str:
        return pool if pool == self.host else f"{self.host}:{pool}"

    async def aclose(self) -> None:
        """Keep its histories and let go of it."""
        self._session.close()
        await self.source.aclose()


class Fleet:
    """All machines."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = tuple(members)

    async def frames(self) -> tuple[Frame, ...]:
        """Every machine's frames, in their order; all are asked at the same time."""
        rounds = await asyncio.gather(*(member.frames() for member in self._members))
        return tuple(frame for frames in rounds for frame in frames)

    async def pools(self) -> tuple[Frame, ...]:
        """The same without the frames that stand for machines no pool was ever seen of."""
        frames = await self.frames()
        unseen = {member.host for member in self._members if not member.source.seen}
        return tuple(frame for frame in frames if frame.pool not in unseen)

    def failures(self) -> tuple[ZconsoleError, ...]:
        """What the last round lacks: machines out of reach, then pools that no other one has."""
        down = [m for m in self._members if m.source.failure]
        up = [m for m in self._members if not m.source.failure]
        lacking = [set(m.source.missing) for m in up]
        missing = sorted(set.intersection(*lacking)) if lacking else []
        found: list[ZconsoleError] = [
            UnavailableError(f"{m.host}: {m.source.failure}") for m in down
        ]
        if missing:
            hosts = ", ".join(m.host for m in up)
            found.append(NotFoundError(f"{hosts}: no such pool: {', '.join(missing)}"))
        return tuple(found)

    def check(self) -> None:
        """Raise the first failure where no pool was seen, or where no machine has one asked for."""
        failures = self.failures()
        seen = any(member.source.seen for member in self._members)
        if failures and (not seen or isinstance(failures[0], NotFoundError)):
            raise failures[0]

    def take_notes(self) -> tuple[str, ...]:
        """What went wrong with the histories since this was last asked, each thing once."""
        return tuple(dict.fromkeys(n for member in self._members for n in member.take_notes()))

    @property
    def capabilities(self) -> Capabilities:
        """Those of the first machine: nothing may be changed on any."""
        return self._members[0].source.capabilities

    async def aclose(self) -> None:
        """Let go of all."""
        await asyncio.gather(*(member.aclose() for member in self._members))


class FleetFeed:
    """The console's feed over a fleet."""

    def __init__(self, fleet: Fleet, interval: float) -> None:
        self._fleet = fleet
        self._pace = SampleTimer(interval)

    @property
    def interval(self) -> float:
        """See Feed.interval."""
        return self._pace.interval

    def set_interval(self, seconds: float) -> None:
        """See Feed.set_interval."""
        self._pace.change(seconds)

    async def next(self) -> Update | None:
        """See Feed.next."""
        await self._pace.wait()
        frames = await self._fleet.frames()
        return Update(frames, self._fleet.capabilities, notes=self._fleet.take_notes())

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        """Nothing beyond the sample is asked of another machine."""
        return ()

    async def aclose(self) -> None:
        """See Feed.aclose."""
        await self._fleet.aclose()
