"""One machine of a fleet: its round in flight, and what is shown of it until that has come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from zconsole.pool.health import CONNECTING
from zconsole.system.host import Clocks
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.timeline.session_feed import SessionFeed
from zconsole.zfs.sources.remote import RemoteSource, next_patience


class FleetHost:
    """Never two rounds at a time; a slow one keeps nobody waiting, and its pools say their age."""

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
        """Begin a round unless one runs; returned if it is likely to come in so many seconds."""
        self._collect()
        if self._round is not None:
            return None
        self._began = self._clocks.steady()
        self._round = asyncio.create_task(self._sampled())
        return self._round if patience is None or self._took <= patience else None

    def shown(self) -> tuple[Frame, ...]:
        """The frames of the newest round that has come; older ones are aged."""
        self._collect()
        if self._frames is None:
            failed = self._failed(self.source.host, "no answer yet")
            return tuple(replace(frame, health=CONNECTING) for frame in failed)
        if self._round is None:
            return self._frames
        return tuple(each for frame in self._frames for each in self._aged(frame))

    def take_notes(self) -> tuple[str, ...]:
        """See Session.take_notes."""
        notes, self._notes = self._notes, ()
        return notes

    async def aclose(self) -> None:
        """Abandon what is in flight, and close the source."""
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
        """Take what has come."""
        if self._round is None or not self._round.done():
            return
        update = self._round.result()
        self._round, self._took = None, self._ended - self._began
        if update is not None:
            self._frames = update.frames
            self._notes += update.notes

    def _aged(self, frame: Frame) -> Iterator[Frame]:
        """A frame while a newer one is awaited: as it was, or with why there is no newer one."""
        waited = self._clocks.steady() - self._began
        if frame.problem is None and waited < next_patience(self._took):
            yield replace(frame, age=self._clocks.steady() - self._ended)
        else:
            yield from self._failed(frame.pool, frame.problem or f"no answer for {waited:.0f} s")

    def _failed(self, pool: str, why: str) -> tuple[Frame, ...]:
        now, steady = self._clocks.wall(), self._clocks.steady()
        return self._session.advance([{"t": now, "clock": steady, "pool": pool, "problem": why}])
