"""A feed with a vigil over it: the same rounds, with what is worth waking somebody for."""

from __future__ import annotations

from dataclasses import replace

from zconsole.monitor.alerts.dispatcher import AlertDispatcher
from zconsole.monitor.feed import Feed, Update


class AlertingFeed:
    """Wraps any feed of the console."""

    def __init__(self, feed: Feed, wake: AlertDispatcher) -> None:
        self._feed = feed
        self._wake = wake

    @property
    def interval(self) -> float:
        """See Feed.interval."""
        return self._feed.interval

    def set_interval(self, seconds: float) -> None:
        """See Feed.set_interval."""
        self._feed.set_interval(seconds)

    async def next(self) -> Update | None:
        """See Feed.next; alerts of the round are in it, and their hooks under way."""
        update = await self._feed.next()
        if update is None:
            return None
        alerts = self._wake.look(update.frames)
        ring = "".join(self._wake.ways.terminal(alert) for alert in alerts)
        return replace(update, alerts=alerts, ring=ring)

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        """See Feed.details."""
        return await self._feed.details(pool, key)

    async def aclose(self) -> None:
        """See Feed.aclose; hooks under way are waited for."""
        await self._feed.aclose()
        await self._wake.aclose()
