"""Where frames come from: the one thing that shows and alerts ask of the rest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zconsole.monitor.frame import Frame
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.monitor.alerts.alerting import Alerting
    from zconsole.monitor.alerts.rules import Alert
    from zconsole.zfs.sources.playback import Playback

Pairs = tuple[tuple[str, str], ...]
"""Label and value, in the order they are shown."""


@dataclass(frozen=True, slots=True)
class Update:
    """One round of sampling: a frame for every pool, in an order that stays the same."""

    frames: tuple[Frame, ...]
    capabilities: Capabilities
    """Of the source as it is now; it may have fallen back since the last round."""
    alerts: tuple[Alert, ...] = ()
    """What is worth waking somebody for, each once; only of a feed with alerts."""
    ring: str = ""
    """What those alerts are to write to the terminal: its bell, notifications."""
    notes: tuple[str, ...] = ()
    """What went wrong with what is kept on disk, each thing once."""


class Feed:
    """Takes a round at every interval; history is fed whether or not anybody paints."""

    playback: Playback | None = None
    """Steers what is played; None of what happens now."""
    alerts: Alerting | None = None
    """What looks at each round for something to tell; None where nobody asked for that."""

    def __init__(self, interval: float) -> None:
        """``interval``: seconds between samples; 0 for a source with its own pace."""
        self.interval = interval
        self._changed = asyncio.Event()
        self._begun: float | None = None

    def set_interval(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; cuts the present wait short."""
        self.interval = seconds
        self._changed.set()

    async def next(self) -> Update | None:
        """The next round; the interval is from the start of one sample to that of the next."""
        loop = asyncio.get_running_loop()
        while self._begun is not None and (left := self._begun + self.interval - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        self._begun = loop.time()
        update = await self.sample()
        if update is None or self.alerts is None:
            return update
        alerts, ring = self.alerts.look(update.frames)
        return replace(update, alerts=alerts, ring=ring)

    async def aclose(self) -> None:
        """Stop sampling within a second; alerts under way are still sent."""
        await self.close_sources()
        if self.alerts is not None:
            await self.alerts.aclose()

    async def sample(self) -> Update | None:
        """A round taken now, or ``None`` once there will be no more (a recording has ended).

        A pool that does not answer is a frame with ``problem`` and ``stale_seconds``, within the
        sampling deadline; it is never an exception and never a call that stays away.
        """
        raise NotImplementedError

    async def details(self, pool: str, key: str) -> Pairs:
        """What is known of one device that sampling does not give (serial, model).

        Asked for only when a row is expanded; empty when there is nothing to tell.
        """
        raise NotImplementedError

    async def close_sources(self) -> None:
        """Keep the histories, and let go of all that is sampled."""
        raise NotImplementedError
