"""Playing a recording: a source like any other, with the recording's own time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from zconsole.errors import NotUnderstoodError, ZconsoleError
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.open_text import FARTHEST, LONGEST_LINE, lines, reading
from zconsole.zfs.sources.playback import Playback
from zconsole.zfs.sources.recording_index import place_of, span_of
from zconsole.zfs.sources.samples import (
    MOST_MEMORY,
    Gaps,
    NoSampleError,
    pool_name,
    sample_of,
)

LINE_COST = 1000
"""Characters that a line counts for where nothing is understood: to decode a quarter of a million
lines takes as long as to read FARTHEST characters of few."""
_STEERED = 0.5
"""Seconds between when a sample was due and when it came from which on somebody steered."""
LONGEST_PAUSE = 10.0
"""Seconds a gap in the recording takes at most, however long it was."""


class ReplaySource:
    """The samples of a recording; ``speed`` 2 plays twice as fast, None as fast as it goes.

    A line that cannot be read is a sample with nothing but the reason (``gap``).
    """

    def __init__(self, path: str, speed: float | None = 1.0, gaps: Gaps | None = None) -> None:
        """``gaps`` counts the end that is cut off, which is no sample."""
        self._path = path
        self._gaps = Gaps() if gaps is None else gaps
        self.playback = Playback(speed)
        """Steers it."""
        self._rounds: Iterator[tuple[Raw, ...]] | None = None
        self._last: float | None = None
        self._due = 0.0
        self._t: float | None = None
        """Of the newest sample."""
        self._pools: dict[str, int] = {}
        """Bytes of the largest sample of each pool."""

    @property
    def capabilities(self) -> Capabilities:
        """See Source.capabilities."""
        return Capabilities(
            name="replay", live=False, denied="this is a recording", flags=("REPLAY",)
        )

    async def sample(self) -> tuple[Raw, ...] | None:
        """See Source.sample. Raises NotUnderstoodError where there is no line that can be read.

        A round that is due while the playback is to go on elsewhere comes at once.
        """
        if self._rounds is None:
            self._rounds = self._group(0)
            if self.playback.speed is not None:
                self.playback.span = span_of(self._path)
        found = next(self._rounds, None)
        if found is not None:
            await self._wait_for(found[0]["t"])
            self.playback.t = found[0]["t"]
        return found

    def go_to(self, t: float) -> None:
        """Have the next sample be one shortly before ``t``. Raises ZconsoleError."""
        self._gaps = Gaps()  # those of the first time through are counted
        try:
            place = place_of(self._path, t)
        except OSError as error:
            raise ZconsoleError(f"{self._path}: {error.strerror}") from error
        # A line there that cannot be read has no time: that of where it came from is another.
        self._rounds, self._last, self._t = self._group(place), None, None

    async def aclose(self) -> None:
        """See Source.aclose."""
        self._rounds = iter(())

    async def _wait_for(self, t: float) -> None:
        """Let as much time pass as between the two samples, at the asked speed."""
        loop, speed = asyncio.get_running_loop(), self.playback.speed
        now = loop.time()
        if speed is not None and self._last is not None:
            pause = min(LONGEST_PAUSE, max(0.0, t - self._last) / speed)
            self._due = max(self._due + pause, now)
            await self.playback.passes((self._due - now) * speed)
            if abs(self._due - loop.time()) > _STEERED:
                self._due = loop.time()
        else:
            self._due = now
        self._last = t

    def _group(self, start: int) -> Iterator[tuple[Raw, ...]]:
        """Rounds of one sample a pool: a pool seen again begins the next.

        What names no pool, as a gap may, or the sample of an hour in which none was imported, is a
        round of its own.
        """
        group: dict[str, Raw] = {}
        memory = 0
        for raw, size in self._read(start):
            pool = "" if "gap" in raw else pool_name(raw)
            if group and (not pool or pool in group or memory + size > MOST_MEMORY):
                yield tuple(group.values())
                group.clear()
                memory = 0
            if not pool:
                yield (raw,)
            else:
                group[pool] = raw
                memory += size
        if group:
            yield tuple(group.values())

    def _read(self, start: int) -> Iterator[tuple[Raw, int]]:
        """Each sample or gap, and the bytes that it takes in memory."""
        try:
            yield from self._samples(start)
        except NotUnderstoodError as error:
            if self._t is None and not start:
                raise
            self._gaps.add(str(error))
        if self._t is None and not start:
            raise NotUnderstoodError(self._gaps.first or f"{self._path}: no samples")

    def _samples(self, start: int) -> Iterator[tuple[Raw, int]]:
        unread = 0
        after = f"after byte {start}, " if start else ""
        with reading(self._path, start) as file:
            for number, line in enumerate(lines(file), 1):
                unread += LONGEST_LINE if line is None else len(line) + LINE_COST
                if unread > FARTHEST:
                    raise EOFError(f"no sample in {FARTHEST >> 20} MiB")
                if line is not None and not line.strip():
                    continue
                place = f"{self._path}: {after}line {number}"
                try:
                    raw, size = self._sample(line)
                except NoSampleError as error:
                    unread = unread if error.t is None else 0
                    cut = number > 1 and line is not None and not line.endswith("\n")
                    yield from self._gap(place, error, cut)
                else:
                    self._t, unread = raw["t"], 0
                    yield {**raw, "source": "replay", "place": place}, size

    def _sample(self, line: str | None) -> tuple[Raw, int]:
        raw, size = sample_of(line)
        pool = pool_name(raw)
        if pool not in self._pools and sum(self._pools.values()) + size > MOST_MEMORY:
            raise NoSampleError("too many pools", raw["t"], pool)
        self._pools[pool] = max(size, self._pools.get(pool, 0))
        return raw, size

    def _gap(self, place: str, error: NoSampleError, cut: bool) -> Iterator[tuple[Raw, int]]:
        """What a line that cannot be read leaves.

        Before the first sample there is nothing that lacks it, and the end that a crash cut off is
        no moment at which anything was missing.
        """
        t = self._t if error.t is None else error.t
        if cut:
            self._gaps.add(f"{place}: the last line is cut short")
        elif t is None or self._t is None:
            self._gaps.add(f"{place}: {error}")
        else:
            raw: Raw = {"t": t, "gap": str(error), "place": place}
            yield ({**raw, "pool": error.pool} if error.pool else raw), 0
