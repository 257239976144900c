"""Several machines at once: one source and session each, their frames side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.monitor.feed import Feed, Pairs, Update
from zconsole.monitor.frame import Frame
from zconsole.monitor.session import Session
from zconsole.monitor.session_feed import SessionFeed
from zconsole.zfs.sources.remote import RemoteSource


class Fleet(Feed):
    """The feed of all machines; with several, pools are shown as ``HOST:POOL``."""

    def __init__(
        self,
        sources: Sequence[RemoteSource],
        session: Callable[[], Session],
        interval: float,
        needed: bool = False,
    ) -> None:
        """``session`` makes one for each machine.

        With ``needed`` the first round raises its failures, like a local one.
        """
        super().__init__(interval)
        self._sources = tuple(sources)
        self._feeds = [SessionFeed(source, session(), 0.0) for source in sources]
        self._needed = needed

    async def sample(self) -> Update:
        """Every machine's frames, in their order; all are asked at the same time.

        An unreachable machine gives stale ones. All are read-only.
        """
        rounds = await asyncio.gather(*(feed.sample() for feed in self._feeds))
        pairs = [(s, r) for s, r in zip(self._sources, rounds, strict=True) if r is not None]
        if self._needed:
            self._check()
        frames = tuple(frame for pair in pairs for frame in self._named(*pair))
        notes = dict.fromkeys(note for _, update in pairs for note in update.notes)
        return Update(frames, self._sources[0].capabilities, notes=tuple(notes))

    async def pools(self) -> tuple[Frame, ...]:
        """The frames, without placeholders for machines whose pools were never seen."""
        frames = (await self.sample()).frames
        unseen = {source.host for source in self._sources if not source.seen}
        return tuple(frame for frame in frames if frame.pool not in unseen)

    def failures(self) -> tuple[ZconsoleError, ...]:
        """Failures of the last round: unreachable machines, then pools that no machine has."""
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
        """See Feed.details. Other machines give nothing beyond the sample."""
        return ()

    async def close_sources(self) -> None:
        """See Feed.close_sources."""
        await asyncio.gather(*(feed.aclose() for feed in self._feeds))

    def _check(self) -> None:
        """Raise the first failure if no pool was seen, or no machine has a requested one."""
        self._needed = False
        failures = self.failures()
        seen = any(source.seen for source in self._sources)
        if failures and (not seen or isinstance(failures[0], NotFoundError)):
            raise failures[0]

    def _named(self, source: RemoteSource, update: Update) -> Iterator[Frame]:
        host, several = source.host, len(self._sources) > 1
        for frame in update.frames:
            shown = f"{host}:{frame.pool}" if several and frame.pool != host else frame.pool
            yield replace(frame, pool=shown)
