"""Feeds of sampled frames: what all have in common, and the one over a single source."""

from __future__ import annotations

import asyncio

from zconsole.monitor.device_details import Details, Pairs, no_details
from zconsole.monitor.device_prober import DeviceProber
from zconsole.monitor.feed import Update
from zconsole.monitor.session import Session
from zconsole.zfs.sources.base import Source


class SampledFeed:
    """Takes a round at every interval; 0 seconds for a source with its own pace."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._changed = asyncio.Event()
        self._begun: float | None = None

    def set_interval(self, seconds: float) -> None:
        """See Feed.set_interval; cuts the present wait short."""
        self.interval = seconds
        self._changed.set()

    async def next(self) -> Update | None:
        """See Feed.next; the interval is from the start of one sample to that of the next."""
        loop = asyncio.get_running_loop()
        while self._begun is not None and (left := self._begun + self.interval - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        self._begun = loop.time()
        return await self.sample()

    async def sample(self) -> Update | None:
        """A round taken now; None at the end."""
        raise NotImplementedError


class SessionFeed(SampledFeed):
    """Frames from any source."""

    def __init__(
        self,
        source: Source,
        session: Session,
        interval: float,
        details: Details = no_details,
        signs: DeviceProber | None = None,
    ) -> None:
        """With ``signs`` the devices in trouble are asked about beside the sampling."""
        super().__init__(interval)
        self._source = source
        self._session = session
        self._details = details
        self._signs = signs

    async def sample(self) -> Update | None:
        """See SampledFeed.sample. At the end raises as Session.end."""
        raws = await self._source.sample()
        if raws is None:
            self._session.end()
            return None
        frames = self._session.advance(raws)
        if self._signs is not None:
            frames = self._signs.look(frames)
        return Update(frames, self._source.capabilities, notes=self._session.take_notes())

    async def details(self, pool: str, key: str) -> Pairs:
        """What else is known of one device: serial, model, sector sizes."""
        frame = self._session.last(pool)
        rows = frame.rows if frame else ()
        path = next((row.vdev.path for row in rows if row.key == key), None)
        return await self._details(path) if path else ()

    async def aclose(self) -> None:
        """Keep the histories and close the source."""
        self._session.close()
        if self._signs is not None:
            await self._signs.aclose()
        await self._source.aclose()
