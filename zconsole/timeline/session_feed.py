"""The feed over a single source."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from zconsole.pool.chassis import Lights
from zconsole.pool.model import Sample
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.device_prober import DeviceProber
from zconsole.timeline.feed import Feed, Pairs, Update
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Source

BUSY, BREATH = 0.02, 0.02
"""Seconds of work on a round after which, before the next pool, keys are answered for so long."""


class SessionFeed(Feed):
    """Frames from any source."""

    def __init__(
        self,
        source: Source,
        session: Session,
        interval: float,
        details: Callable[[str], Awaitable[Pairs]] | None = None,
        prober: DeviceProber | None = None,
        lights: Callable[[], Awaitable[Lights]] | None = None,
    ) -> None:
        """``details`` maps a leaf's path to further facts; ``lights`` asks the enclosures.

        With ``prober``, devices in trouble are probed in the background.
        """
        super().__init__(interval)
        self._source = source
        self._session = session
        self._details = details
        self._prober = prober
        self._lights = lights
        self._shown = False
        """Whether there was a round: before the first, there is nothing that keys could move."""

    async def sample(self) -> Update | None:
        """See Feed.sample. At the end raises as Session.end."""
        raws = await self._source.sample()
        if raws is None:
            self._session.end()
            return None
        frames = await self._frames(raws)
        if self._prober is not None:
            frames = self._prober.look(frames)
        return Update(frames, self._source.capabilities, notes=self._session.take_notes())

    async def _frames(self, raws: Iterable[Raw]) -> tuple[Frame, ...]:
        """The frames of a round, with pauses for keys between pools."""
        loop, frames = asyncio.get_running_loop(), list[Frame]()
        since = loop.time()
        for raw in raws:
            for seen in self._session.read(raw):
                if isinstance(seen, Sample) and self._session.lacks_past(seen.pool):
                    await in_daemon_thread(self._session.recall, seen.pool)
                frames.append(self._session.push(seen))
                if self._shown and loop.time() - since > BUSY:
                    await asyncio.sleep(BREATH)
                    since = loop.time()
        self._shown = True
        return tuple(frames)

    async def details(self, pool: str, key: str) -> Pairs:
        """See Feed.details: serial, model, sector sizes."""
        if self._details is None:
            return ()
        frame = self._session.last(pool)
        rows = frame.rows if frame else ()
        path = next((row.vdev.path for row in rows if row.key == key), None)
        return await self._details(path) if path else ()

    async def lights(self) -> Lights:
        """See Feed.lights."""
        return {} if self._lights is None else await self._lights()

    async def close_sources(self) -> None:
        """See Feed.close_sources."""
        self._session.close()
        if self._prober is not None:
            await self._prober.aclose()
        await self._source.aclose()
