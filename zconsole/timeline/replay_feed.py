"""The feed over a recording, which can be paused and moved in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from zconsole.timeline.feed import Update
from zconsole.timeline.session import Session
from zconsole.timeline.session_feed import SessionFeed
from zconsole.zfs.sources.playback import Playback
from zconsole.zfs.sources.replay import ReplaySource

WARM = 180.0
"""Seconds before the place looked for that are played first, for rates and estimates."""
AHEAD = 300.0
"""Seconds ahead up to which nothing is passed over, so that the history goes on."""


class ReplayFeed(SessionFeed):
    """Goes on where its playback is told to, with a history that begins shortly before."""

    playback: Playback

    def __init__(self, source: ReplaySource, session: Session, anew: Callable[[], Session]) -> None:
        """``anew`` makes the session for another place."""
        super().__init__(source, session, 0.0)
        self.playback = source.playback
        self._recording = source
        self._anew = anew

    async def sample(self) -> Update | None:
        """See Feed.sample. What leads to the place looked for is played as fast as it goes."""
        update = None
        if self.playback.target is None:
            update = await super().sample()
        while (target := self.playback.target) is not None:
            found = await self._go_to(target)
            update = found or update
        return update

    async def _go_to(self, target: float) -> Update | None:
        """The round at ``target``, or the last one before a newer wish."""
        now, update = self.playback.t, None
        if now is None or not now <= target <= now + AHEAD:
            self._session = self._anew()
            self._recording.go_to(target - WARM)
        while self.playback.target == target:
            found = await super().sample()
            there = found is None or (self.playback.t or target) >= target
            if there and self.playback.target == target:
                self.playback.target = None
            update = found or update
            await asyncio.sleep(0)  # keys and painting go on
        return update
