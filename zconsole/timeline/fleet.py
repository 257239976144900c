"""Several machines at once: one source and session each, their frames side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.system.host import Clocks
from zconsole.timeline.feed import Feed, Pairs, Update
from zconsole.timeline.fleet_host import FleetHost
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.remote import RemoteSource

CLOCKS = Clocks()
PATIENCE = 0.5
"""Share of the interval that a round waits for its machines: it is shown while it is new."""
LEAST, MOST = 0.1, 1.0
"""Seconds of that."""
FIRST = 0.25
"""Seconds that a first round waits which is wanted at once."""


class Fleet(Feed):
    """The feed of all machines; with several, pools are shown as ``HOST:POOL``."""

    def __init__(
        self,
        sources: Sequence[RemoteSource],
        session: Callable[[], Session],
        interval: float,
        needed: bool = False,
        at_once: bool = False,
        clocks: Clocks = CLOCKS,
    ) -> None:
        """``session`` makes one for each machine.

        The first round waits for all, unless it is wanted ``at_once``. With ``needed`` it raises
        its failures, like a local one.
        """
        super().__init__(interval)
        self._sources = tuple(sources)
        self._hosts = [FleetHost(source, session(), clocks) for source in sources]
        self._needed = needed
        self._patience = FIRST if at_once else None

    async def sample(self) -> Update:
        """Every machine's frames, in their order; all are asked at the same time.

        One that takes longer than the others is shown as it was, and when it has come. An
        unreachable machine gives stale frames. All are read-only.
        """
        patience = self._patience
        self._patience = min(MOST, max(LEAST, PATIENCE * self.interval))
        if awaited := [task for host in self._hosts if (task := host.begin(patience)) is not None]:
            await asyncio.wait(awaited, timeout=patience)
        if self._needed:
            self._check()
        frames = tuple(frame for host in self._hosts for frame in self._named(host))
        notes = dict.fromkeys(note for host in self._hosts for note in host.take_notes())
        return Update(frames, self._capabilities, notes=tuple(notes))

    @property
    def _capabilities(self) -> Capabilities:
        """The first machine's, but for what is true of it alone."""
        first = self._sources[0].capabilities
        return first if len(self._sources) == 1 else first._replace(reason="", version=None)

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
        await asyncio.gather(*(host.aclose() for host in self._hosts))

    def _check(self) -> None:
        """Raise the first failure if no pool was seen, or no machine has a requested one."""
        self._needed = False
        failures = self.failures()
        seen = any(source.seen for source in self._sources)
        if failures and (not seen or isinstance(failures[0], NotFoundError)):
            raise failures[0]

    def _named(self, host: FleetHost) -> Iterator[Frame]:
        name, several = host.source.host, len(self._hosts) > 1
        for frame in host.shown():
            yield (
                replace(frame, pool=f"{name}:{frame.pool}")
                if several and frame.pool != name
                else frame
            )
