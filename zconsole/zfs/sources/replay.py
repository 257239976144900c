"""Playback of a recording: a source like any other, in the recording's own time, with controls.

A time is found in the file by bisection; nothing of the file is kept in memory.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from zconsole.errors import NotUnderstoodError, UnavailableError, ZconsoleError
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.open_text import (
    FARTHEST,
    GZIP,
    LONGEST_LINE,
    STDIN,
    UTF_16,
    lines,
    reading,
)
from zconsole.zfs.sources.recording import (
    MADE_BY,
    MOST_POOLS,
    Gaps,
    NotRawError,
    pool_name,
    raw_of,
)
from zconsole.zfs.zpool_output import ZpoolOutput, zpool_output

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Playback speeds, relative to real time, that ``faster`` steps through."""


def next_speed(now: float, step: int) -> float:
    """Return the next of SPEEDS up (1) or down (-1); the same speed at either end."""
    further = [s for s in SPEEDS if (s > now if step > 0 else s < now)]
    return now if not further else further[0] if step > 0 else further[-1]


class Jump(NamedTuple):
    """Another place of a recording: a time, then rounds or events from there."""

    t: float | None = None
    """Time to go to; None for the present one."""
    steps: int = 0
    """Rounds still to go: on, or back if negative."""
    events: int = 0
    """Events still to find: later ones, or earlier ones if negative."""


PLAY_ON = Jump()
"""No other place."""


@dataclass(slots=True)
class Playback:
    """Controls of a replay; times are the recording's own (epoch seconds)."""

    speed: float | None = 1.0
    """None plays as fast as possible, for what is only read: it can't be paused or moved in."""
    paused: bool = False
    t: float | None = None
    """Time of the newest sample."""
    span: tuple[float, float] | None = None
    """The first and the last time; None if they cannot be known, as for standard input."""
    request: Jump = PLAY_ON
    """The place that was asked for, as far as it is not reached."""
    sought: float | None = None
    """The time that was asked for last; None if anything else was asked for since."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def share(self) -> float | None:
        """Position in the recording, 0…1."""
        if self.span is None or self.t is None:
            return None
        first, last = self.span
        return min(1.0, max(0.0, (self.t - first) / (last - first))) if last > first else 1.0

    @property
    def jumps(self) -> bool:
        """Whether another place was asked for, to which it is played as fast as possible."""
        return self.request != PLAY_ON

    def toggle(self) -> None:
        """Pause, or resume; a search for an event ends where it is, paused."""
        self.paused = not self.paused or self.request.events != 0
        self._ask(self.request._replace(events=0))

    def faster(self, step: int) -> float:
        """Change to the next higher (1) or lower (-1) speed, and return it."""
        self.speed = next_speed(self.speed or 1.0, step)
        self._changed.set()
        return self.speed

    def seek(self, share: float) -> bool:
        """Move by a share of the recording; return whether that is possible."""
        if self.span is None or self.t is None:
            return False
        first, last = self.span
        start = self.t if self.request.t is None else self.request.t
        self.go_to(min(last, max(first, start + share * (last - first))))
        return True

    def go_to(self, at: float) -> None:
        """Move to a time of the recording, instead of what was asked for before."""
        self._ask(Jump(at))

    def play_again(self) -> bool:
        """Play from the start; return whether that is possible."""
        if self.span is None:
            return False
        self.paused = False
        self.go_to(self.span[0])
        return True

    def pause_at(self, at: float) -> bool:
        """Move to a time and pause there; return whether that is possible."""
        if self.span is None:
            return False
        self.paused = True
        self.go_to(at)
        return True

    def step(self, direction: int) -> bool:
        """Pause one round later (1) or earlier (-1); return whether that is possible."""
        if self.span is None or self.t is None:
            return False
        self.paused = True
        self._ask(self.request._replace(steps=self.request.steps + direction, events=0))
        return True

    def search(self, direction: int) -> bool:
        """Pause at the next event (1) or the previous one (-1); return whether that is possible.

        During a search in that direction, it goes one event farther.
        """
        if self.span is None or self.t is None:
            return False
        now = self.request if self.request.events * direction > 0 else PLAY_ON
        self.paused = True
        self._ask(now._replace(events=now.events + direction))
        return True

    def _ask(self, request: Jump) -> None:
        """Change what is asked for, and end a wait for the next round."""
        self.request, self.sought = request, request.t
        self._changed.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for a number of recorded seconds; return False as soon as a jump is requested."""
        loop = asyncio.get_running_loop()
        while not self.jumps and (self.paused or seconds > 0):
            self._changed.clear()
            begun, speed = loop.time(), self.speed
            pause = None if self.paused else 0.0 if speed is None else seconds / speed
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                return True
            if pause is not None and speed is not None:
                seconds -= (loop.time() - begun) * speed
        return not self.jumps


LINE_COST = 1000
"""Characters that a line counts for while nothing is understood: decoding a quarter of a million
lines takes as long as reading FARTHEST characters in a few lines."""
_STEERED = 0.5
"""If a sample comes this many seconds before or after it was due, somebody changed the playback."""
LONGEST_PAUSE = 10.0
"""Most seconds that a gap in the recording is played for, however long it was."""


_NEAR = 2**16
"""Bytes at which the bisection stops."""
_TRIED = 100
"""Lines that are tried to find one that is a sample."""
_TAILS = tuple(2**n for n in range(16, 26, 3))
"""Sizes in bytes of the end of the file, tried in turn, to find the last sample."""


class ReplaySource:
    """The samples of a recording; ``speed`` 2 plays twice as fast, None as fast as possible.

    A line that cannot be read becomes a sample that holds only the reason (``gap``).
    """

    def __init__(self, path: str, speed: float | None = 1.0, gaps: Gaps | None = None) -> None:
        """``gaps`` also counts a last line that is cut off, which is not shown as a sample."""
        self._path = path
        self._gaps = Gaps() if gaps is None else gaps
        self.playback = Playback(speed)
        """Controls of the replay."""
        self._rounds: Iterator[tuple[Raw, ...]] | None = None
        self._last: float | None = None
        self._due = 0.0
        self._t: float | None = None
        """Time of the newest sample read."""
        self._pools: set[str] = set()
        self._shown: tuple[Raw, ...] = ()
        """The newest round that was given."""

    @property
    def capabilities(self) -> Capabilities:
        """Name and flags of a replay, which allows no actions."""
        return Capabilities(
            name="replay", live=False, denied="this is a recording", flags=("REPLAY",)
        )

    async def sample(self) -> tuple[Raw, ...] | None:
        """Wait for the next round of samples and return it; None at the end.

        If a jump is requested meanwhile, the round is returned without further waiting: it is the
        one that a step asks for, and before another jump this call has to end. Raises
        NotUnderstoodError if no line can be read.
        """
        if self._rounds is None:
            self._rounds = self._group(0)
            if self.playback.speed is not None:
                self.playback.span = span_of(self._path)
        found = next(self._rounds, None)
        if found is not None:
            await self._wait_for(found[0]["t"])
            self.playback.t, self._shown = found[0]["t"], found
        return found

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return zpool's text in the newest round. Raises UnavailableError if it has none."""
        for raw in self._shown:
            if "text" in raw and pool_name(raw) == pool:
                return (zpool_output("zpool status", raw["text"], "as recorded"),)
        raise UnavailableError(f"this recording holds no zpool text of {pool}, only its figures")

    def go_to(self, at: float, known: Mapping[str, float] = MappingProxyType({})) -> None:
        """Continue shortly before time ``at``, without samples that are ``known``.

        Not to be called during ``sample``. ``known`` has the time of each pool's newest known
        sample. Raises ZconsoleError.
        """
        self._gaps = Gaps()  # the gaps were counted when playing for the first time
        # No time yet: an unreadable line there must not get the time of the old position.
        self._rounds, self._last, self._t = self._group(self._place_of(at), known), None, None

    def before(self, at: float) -> float | None:
        """Return the time of the last round before ``at``, None if there is none.

        Raises ZconsoleError.
        """
        sought = at
        while True:
            place = self._place_of(sought)
            rounds = self.anew()._group(place)
            times = [*takewhile(lambda then: then < at, (found[0]["t"] for found in rounds))]
            # Samples of the first round may stand before that place: it is none to go to.
            if place == 0 or len(times) > 1:
                return times[-1] if times else None
            sought = min([sought, *times]) - 1.0

    def size(self, since: float, until: float) -> int:
        """Return about how many bytes the recording has between two times; 0 if they are reversed.

        Raises ZconsoleError.
        """
        return max(0, self._place_of(until) - self._place_of(since))

    def anew(self) -> ReplaySource:
        """Return the same recording from its beginning, as fast as it can be read."""
        return ReplaySource(self._path, None)

    def _place_of(self, at: float) -> int:
        try:
            return place_of(self._path, at)
        except OSError as error:
            raise ZconsoleError(f"{self._path}: {error.strerror}") from error

    async def aclose(self) -> None:
        """End the replay."""
        self._rounds = iter(())

    async def _wait_for(self, at: float) -> None:
        """Wait as long as passed between the two samples, at the current speed."""
        loop, speed = asyncio.get_running_loop(), self.playback.speed
        now = loop.time()
        if speed is not None and self._last is not None:
            pause = min(LONGEST_PAUSE, max(0.0, at - self._last) / speed)
            self._due = max(self._due + pause, now)
            await self.playback.wait((self._due - now) * speed)
            if abs(self._due - loop.time()) > _STEERED:
                self._due = loop.time()
        else:
            self._due = now
        self._last = at

    def _group(
        self, start: int, known: Mapping[str, float] = MappingProxyType({})
    ) -> Iterator[tuple[Raw, ...]]:
        """Group samples into rounds of one per pool, in the order in which pools are first seen.

        A pool seen again, or one that is before the last in that order, starts the next round:
        otherwise a pool that did not answer once would shift all later rounds.
        A form without a pool name, such as a gap or a sample while no pool was imported, is a round
        of its own.
        """
        group: dict[str, Raw] = {}
        order: dict[str, int] = {}
        last = -1
        newest = max(known.values(), default=-inf)
        for raw in self._read(start):
            pool = "" if "gap" in raw else pool_name(raw)
            if raw["t"] <= known.get(pool, newest):
                continue
            place = order.setdefault(pool, len(order))
            if group and (not pool or place <= last):
                yield tuple(group.values())
                group.clear()
            if not pool:
                yield (raw,)
            else:
                group[pool], last = raw, place
        if group:
            yield tuple(group.values())

    def _read(self, start: int) -> Iterator[Raw]:
        """Yield each sample or gap."""
        try:
            yield from self._samples(start)
        except NotUnderstoodError as error:
            if self._t is None and not start:
                raise
            self._gaps.add(str(error))
        if self._t is None and not start:
            why = self._gaps.first or f"{self._path}: no samples"
            hint = f"{MADE_BY}; zconsole status --from FILE reads saved zpool output"
            raise NotUnderstoodError(f"{why}. {hint}")

    def _samples(self, start: int) -> Iterator[Raw]:
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
                    raw = self._sample(line)
                except NotRawError as error:
                    unread = unread if error.t is None else 0
                    cut = number > 1 and line is not None and not line.endswith("\n")
                    yield from self._gap(place, error, cut)
                else:
                    self._t, unread = raw["t"], 0
                    yield {**raw, "source": "replay", "place": place}

    def _sample(self, line: str | None) -> Raw:
        raw = raw_of(line)
        pool = pool_name(raw)
        if pool not in self._pools and len(self._pools) >= MOST_POOLS:
            raise NotRawError("too many pools", raw["t"], pool)
        self._pools.add(pool)
        return raw

    def _gap(self, place: str, error: NotRawError, cut: bool) -> Iterator[Raw]:
        """Yield the gap for a line that cannot be read, if there is one to show.

        Before the first sample, a gap belongs to no pool's history; and a last line that a crash
        cut off marks no time at which a sample was missing. Both are only counted.
        """
        t = self._t if error.t is None else error.t
        if cut:
            self._gaps.add(f"{place}: the last line is cut short")
        elif t is None or self._t is None:
            self._gaps.add(f"{place}: {error}")
        else:
            raw: Raw = {"t": t, "gap": str(error), "place": place}
            yield {**raw, "pool": error.pool} if error.pool else raw


def span_of(path: str) -> tuple[float, float] | None:
    """Return the times of the first and last sample; None for a pipe or a compressed file."""
    if path == STDIN:
        return None
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with Path(path).open("rb") as file:
            head = file.read(2)
            if head == GZIP or head in UTF_16:
                return None
            first, last = _sample_from(file, 0), _last(file)
    except OSError:
        return None
    return None if first is None or last is None else (first[1], max(first[1], last))


def place_of(path: str, at: float) -> int:
    """Return the offset of a line shortly before the first sample at ``at`` or later.

    Raises OSError.
    """
    with Path(path).open("rb") as file:
        low, high = 0, file.seek(0, 2)
        while high - low > _NEAR:
            middle = (low + high) // 2
            found = _sample_from(file, middle)
            if found is None or found[0] >= high or found[1] >= at:
                high = middle
            else:
                low = found[0]
    return low


def _sample_from(file: BinaryIO, offset: int) -> tuple[int, float] | None:
    """Return offset and time of the first sample that begins after ``offset``, or at 0."""
    file.seek(offset)
    if offset:
        file.readline(LONGEST_LINE)
    for _ in range(_TRIED):
        start = file.tell()
        line = file.readline(LONGEST_LINE)
        if not line:
            return None
        if (t := _time(line)) is not None:
            return start, t
    return None


def _last(file: BinaryIO) -> float | None:
    size = file.seek(0, 2)
    for tail in _TAILS:
        file.seek(max(0, size - tail))
        for line in reversed(file.read(tail).splitlines()[-_TRIED:]):
            if (t := _time(line)) is not None:
                return t
        if tail >= size:
            break
    return None


def _time(line: bytes) -> float | None:
    try:
        raw = raw_of(line.decode("utf-8-sig", "surrogateescape").replace("\0", ""))
    except NotRawError:
        return None
    return float(raw["t"])
