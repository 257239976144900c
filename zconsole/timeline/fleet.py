"""Several machines in parallel: one source and session for each, their frames side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.pool.health import CONNECTING
from zconsole.system.host import Clocks
from zconsole.timeline.feed import Feed, SessionFeed, Update
from zconsole.timeline.frame import Frame, Pairs
from zconsole.timeline.session import Session
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.remote import RemoteSource, next_patience
from zconsole.zfs.zpool_output import ZpoolOutput


class FleetHost:
    """One machine of a fleet, with at most one round at a time.

    A slow round delays no other machine; meanwhile its frames show their age.
    """

    def __init__(self, source: RemoteSource, session: Session, clocks: Clocks) -> None:
        self.source = source
        self._session = session
        self._feed = SessionFeed(source, session, 0.0)
        self._clocks = clocks
        self._round: asyncio.Task[Update | None] | None = None
        self._frames: tuple[Frame, ...] | None = None
        self._notes: tuple[str, ...] = ()
        self._began = self._ended = 0.0
        """When the newest round began, and when the one that gave ``_frames`` ended."""
        self._took = 0.0
        """Seconds of the last round; 0 before there was one."""

    def begin(self, patience: float | None) -> asyncio.Task[Update | None] | None:
        """Begin a round unless one runs.

        Returns the round if it is likely to finish within ``patience`` seconds.
        """
        self._collect()
        if self._round is not None:
            return None
        self._began = self._clocks.steady()
        self._round = asyncio.create_task(self._sampled())
        return self._round if patience is None or self._took <= patience else None

    def shown(self) -> tuple[Frame, ...]:
        """Return the frames of the newest finished round; aged while a newer one is running."""
        self._collect()
        if self._frames is None:
            failed = self._failed(self.source.host, "no answer yet")
            return tuple(replace(frame, health=CONNECTING) for frame in failed)
        if self._round is None:
            return self._frames
        # While waiting for a newer round: the old frames, or the reason why there is no newer one.
        steady = self._clocks.steady()
        waited, found = steady - self._began, list[Frame]()
        for frame in self._frames:
            if frame.problem is None and waited < next_patience(self._took):
                found.append(replace(frame, age=frame.age + steady - self._ended))
            else:
                why = frame.problem or f"no answer for {waited:.0f} s"
                found += self._failed(frame.pool, why, frame.absent)
        return tuple(found)

    def take_notes(self) -> tuple[str, ...]:
        """Return problems with stored history and reports since the last call, each once."""
        notes, self._notes = self._notes, ()
        return notes

    async def aclose(self) -> None:
        """Abandon a running round, and close the source."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait((self._round,))
        await self._feed.aclose()

    async def _sampled(self) -> Update | None:
        try:
            return await self._feed.sample()
        finally:
            self._ended = self._clocks.steady()

    def _collect(self) -> None:
        """Store the result of a finished round."""
        if self._round is None or not self._round.done():
            return
        update = self._round.result()
        self._round, self._took = None, self._ended - self._began
        if update is not None:
            self._frames = update.frames
            self._notes += update.notes

    def _failed(self, pool: str, why: str, absent: bool = False) -> tuple[Frame, ...]:
        times: Raw = {"t": self._clocks.wall(), "clock": self._clocks.steady()}
        return self._session.advance([{**times, "pool": pool, "problem": why, "absent": absent}])


CLOCKS = Clocks()
PATIENCE = 0.5
"""Share of the interval that a round waits for its machines, so that it is shown while current."""
LEAST, MOST = 0.1, 1.0
"""Limits of that wait in seconds."""
FIRST = 0.25
"""Seconds that the first round waits if it is wanted at once."""


class Fleet(Feed):
    """Feed of all machines; with several, pools are shown as ``HOST:POOL``."""

    def __init__(
        self,
        sources: Sequence[RemoteSource],
        session: Callable[[], Session],
        interval: float,
        needed: bool = False,
        at_once: bool = False,
        clocks: Clocks = CLOCKS,
    ) -> None:
        """``session`` creates one for each machine.

        The first round waits for all machines, unless it is wanted ``at_once``. With ``needed`` it
        raises their failures, like a local source does.
        """
        super().__init__(interval)
        self._sources = tuple(sources)
        self._hosts = [FleetHost(source, session(), clocks) for source in sources]
        self._needed = needed
        self._patience = FIRST if at_once else None

    async def sample(self) -> Update:
        """Return every machine's frames, in order; all machines are asked at the same time.

        A slower machine is shown with its previous frames until it has answered. An unreachable
        machine gives stale frames. All are read-only.
        """
        patience = self._patience
        self._patience = min(MOST, max(LEAST, PATIENCE * self.interval))
        if awaited := [task for host in self._hosts if (task := host.begin(patience)) is not None]:
            await asyncio.wait(awaited, timeout=patience)
        if self._needed:
            self._check()
        several, frames = len(self._hosts) > 1, list[Frame]()
        for host in self._hosts:
            name = host.source.host
            for frame in host.shown():
                is_plain = not several or frame.pool == name
                frames.append(frame if is_plain else replace(frame, pool=f"{name}:{frame.pool}"))
        notes = dict.fromkeys(note for host in self._hosts for note in host.take_notes())
        told = self._sources[0].capabilities
        if several:  # drop what is true for the first machine only
            told = told._replace(reason="", version=None)
        return Update(tuple(frames), told, notes=tuple(notes))

    async def pools(self) -> tuple[Frame, ...]:
        """Return the frames, without placeholders for machines whose pools were never seen."""
        frames = (await self.sample()).frames
        unseen = {source.host for source in self._sources if not source.seen}
        return tuple(frame for frame in frames if frame.pool not in unseen)

    def failures(self) -> tuple[ZconsoleError, ...]:
        """Return failures of the last round: unreachable machines, then pools that none has."""
        up = [source for source in self._sources if not source.failure]
        lacking = [set(source.missing) for source in up]
        missing = sorted(set.intersection(*lacking)) if lacking else []
        found: list[ZconsoleError] = [
            UnavailableError(f"{s.host}: {s.failure}") for s in self._sources if s.failure
        ]
        if missing:
            hosts = ", ".join(source.host for source in up)
            found.append(NotFoundError(f"{hosts}: no such pool: {', '.join(missing)}"))
        return tuple(found)

    async def details(self, *_: str) -> Pairs:
        """Return no facts: other machines give nothing beyond the sample."""
        return ()

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what the zpool of a pool's machine says about it. Raises UnavailableError."""
        if len(self._sources) == 1:
            return await self._sources[0].zpool_outputs(pool)
        for source in self._sources:
            if pool.startswith(f"{source.host}:"):
                return await source.zpool_outputs(pool.removeprefix(f"{source.host}:"))
        raise UnavailableError(f"{pool} has not shown its pools")

    async def close_sources(self) -> None:
        """Close every machine's source."""
        await asyncio.gather(*(host.aclose() for host in self._hosts))

    def _check(self) -> None:
        """Raise the first failure if no pool was seen, or no machine has a requested one."""
        self._needed = False
        failures = self.failures()
        seen = any(source.seen for source in self._sources)
        if failures and (not seen or isinstance(failures[0], NotFoundError)):
            raise failures[0]
