"""The console's feed: samples a source at an interval and turns each round into frames."""

from __future__ import annotations

from zconsole.monitor.device_details import Details, Pairs, no_details
from zconsole.monitor.device_prober import DeviceProber
from zconsole.monitor.feed import Update
from zconsole.monitor.session import Session
from zconsole.system.sample_timer import SampleTimer
from zconsole.zfs.sources.base import Source


class SessionFeed:
    """Frames from any source. ``interval`` seconds apart, 0 for a source with its own pace."""

    def __init__(
        self,
        source: Source,
        session: Session,
        interval: float,
        details: Details = no_details,
        signs: DeviceProber | None = None,
    ) -> None:
        self._source = source
        self._session = session
        self._pace = SampleTimer(interval)
        self._details = details
        self._signs = signs

    @property
    def interval(self) -> float:
        """Seconds between two samples."""
        return self._pace.interval

    def set_interval(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; cuts the present wait short."""
        self._pace.change(seconds)

    async def next(self) -> Update | None:
        """Wait for the next sample's time, take it, and return its frames; None at the end."""
        await self._pace.wait()
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
