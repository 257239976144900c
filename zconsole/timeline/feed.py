"""Source of frames: the only interface that views and alerts use.

A feed takes rounds at an interval, from a single source, a recording, which can be paused and moved
in, or several machines (``fleet``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import dropwhile
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zconsole.diagnosis.device_errors.faults import HOUR
from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.pool.chassis import Lights
from zconsole.pool.model import Event, Sample, SampleFailure
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.patient import NotAskedError
from zconsole.timeline.events import runs
from zconsole.timeline.frame import Additions, Frame, Pairs
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import PLAY_ON

if TYPE_CHECKING:
    from zconsole.timeline.alerts.alerting import Alerting
    from zconsole.timeline.alerts.rules import Alert
    from zconsole.timeline.devices import DeviceProber
    from zconsole.timeline.pool import PoolTimeline
    from zconsole.timeline.session import Session
    from zconsole.zfs.sources.base import Source
    from zconsole.zfs.sources.replay import Playback, ReplaySource
    from zconsole.zfs.zpool_output import ZpoolOutput


@dataclass(frozen=True, slots=True)
class Update:
    """One round of sampling: a frame for every pool, in a stable order."""

    frames: tuple[Frame, ...]
    capabilities: Capabilities
    """Current capabilities of the source; it may have fallen back since the last round."""
    alerts: tuple[Alert, ...] = ()
    """New alerts, each once; empty if alerts were not requested."""
    ring: str = ""
    """Terminal output for those alerts: bell, notifications."""
    notes: tuple[str, ...] = ()
    """Problems with stored history and reports, and with hooks of alerts, each once."""
    reached: tuple[Event, ...] = ()
    """The events of a recording that this round was asked for; empty if it was not for one."""


class Contributor(Protocol):
    """Provides what consoles and jobs do to the pools."""

    def take(self, update: Update) -> None:
        """Process a round before it is shown."""

    def additions(self, frame: Frame) -> Additions:
        """Return what consoles and jobs do to a frame's pool."""


class Feed:
    """Takes a round at every interval; history is updated even if nothing is painted."""

    playback: Playback | None = None
    """Controls of a replay; None if it is not one."""
    faster: Callable[[int], float] | None = None
    """Changes the speed of simulated time to the next (1) or previous (-1), and returns it; None
    for real time."""
    alerts: Alerting | None = None
    """Finds alerts in each round, and adds them to the events of its frames; None if none were
    requested."""
    contributor: Contributor | None = None
    """Provides what consoles and jobs do, which is added to each frame; None if nothing acts."""

    def __init__(self, interval: float) -> None:
        """``interval`` is in seconds between samples; 0 for a source with its own pace."""
        self.interval = interval
        self._changed = asyncio.Event()
        self._begun: float | None = None
        self._hurries: list[float] = []
        """Requested seconds between samples, one entry per caller waiting for one."""
        self._newest: Update | None = None
        """The newest round, without what ``joined`` adds."""

    @property
    def pace(self) -> float:
        """Actual seconds between samples: less than ``interval`` while a caller waits."""
        return min(self.interval, *self._hurries) if self._hurries else self.interval

    @contextmanager
    def hurried(self, seconds: float) -> Iterator[None]:
        """Sample at least every ``seconds`` within this context, because a caller waits."""
        self._hurries.append(seconds)
        self._changed.set()
        try:
            yield
        finally:
            self._hurries.remove(seconds)

    def set_interval(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; this ends the current wait."""
        self.interval = seconds
        self._changed.set()

    async def next(self) -> Update | None:
        """Return the next round.

        The interval is from the start of one sample to that of the next.
        """
        loop = asyncio.get_running_loop()
        while self._begun is not None and (left := self._begun + self.pace - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        self._begun = loop.time()
        update = await self.sample()
        if update is None:
            return None
        if self.alerts is not None:
            alerts, ring = self.alerts.look(update.frames)
            notes = (*update.notes, *self.alerts.take_notes())
            update = replace(update, alerts=alerts, ring=ring, notes=notes)
        self._newest = update
        if self.contributor is not None:
            self.contributor.take(update)
        return self.joined()

    def joined(self) -> Update | None:
        """Return the newest round, with its alerts and what consoles and jobs do now."""
        if self._newest is None:
            return None
        frames = list[Frame]()
        for frame in self._newest.frames:
            added = Additions() if self.contributor is None else self.contributor.additions(frame)
            if self.alerts is not None:
                added = added._replace(events=(*added.events, *self.alerts.events(frame.pool)))
            frames.append(frame.joined(added))
        return replace(self._newest, frames=tuple(frames))

    async def aclose(self, patience: float | None = None) -> None:
        """Stop sampling, within ``patience`` seconds if given; running alert hooks still finish."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.close_sources()
        if self.alerts is not None:
            await self.alerts.aclose()

    async def sample(self) -> Update | None:
        """Take a round now, or return ``None`` if there are no more (the end of a recording).

        A pool that does not answer is never an exception, but a frame with ``problem`` and
        ``stale_seconds``. The others wait for it as long as ``Source.sample`` does: in the first
        round as long as a read may take, later briefly.
        """
        raise NotImplementedError

    async def details(self, pool: str, key: str) -> Pairs:
        """Return facts about one device that samples do not have (serial, model).

        Called only when a row is expanded; empty if nothing is known.
        """
        raise NotImplementedError

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool itself says about a pool now. Raises UnavailableError."""
        raise NotImplementedError

    async def lights(self) -> Lights:
        """Read the lights of the slots from the enclosures; empty if there is no source."""
        return {}

    async def close_sources(self) -> None:
        """Store the histories, and close the sources."""
        raise NotImplementedError


class SessionFeed(Feed):
    """Feed with frames from any source."""

    def __init__(
        self,
        source: Source,
        session: Session,
        interval: float,
        details: Callable[[str], Awaitable[Pairs]] | None = None,
        prober: DeviceProber | None = None,
        lights: Callable[[], Awaitable[Lights]] | None = None,
        zpool_outputs: Callable[[str], Awaitable[tuple[ZpoolOutput, ...]]] | None = None,
    ) -> None:
        """``details`` maps a leaf's path to further facts; ``lights`` asks the enclosures.

        ``zpool_outputs`` asks zpool about a pool.

        With ``prober``, devices in trouble are probed in the background.
        """
        super().__init__(interval)
        self._source = source
        self._session = session
        self._details = details
        self._prober = prober
        self._lights = lights
        self._zpool_outputs = zpool_outputs

    async def sample(self) -> Update | None:
        """Take a round from the source; at its end raise as ``Session.end`` does."""
        raws = await self._source.sample()
        if raws is None:
            self._session.end()
            return None
        frames = list[Frame]()
        for raw in raws:
            for seen in self._session.identify(raw):
                frames.append(await self._framed(seen))
        return Update(tuple(frames), self._source.capabilities, notes=self._session.take_notes())

    async def _framed(self, seen: Sample | SampleFailure) -> Frame:
        """Return the frame of a sample; before a pool's first one, recall what was stored of it."""
        if isinstance(seen, Sample) and self._session.lacks_past(seen.pool):
            try:
                await in_daemon_thread(self._session.recall, seen.pool)  # a disk may hang
            except NotAskedError as error:  # as it lacks a sample, the next round tries again
                failure = SampleFailure(seen.pool.name, seen.t, seen.clock, str(error))
                return self._session.push(failure)
        return self._session.push(seen, self._prober)

    async def details(self, pool: str, key: str) -> Pairs:
        """Return facts about one device: serial, model, sector sizes."""
        if self._details is None:
            return ()
        frame = self._session.last(pool)
        rows = frame.rows if frame else ()
        path = next((row.vdev.path for row in rows if row.key == key), None)
        return await self._details(path) if path else ()

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool itself says about a pool now. Raises UnavailableError."""
        if self._zpool_outputs is None:
            raise UnavailableError("zpool is not asked here")
        return await self._zpool_outputs(pool)

    async def lights(self) -> Lights:
        """Return the lights of the slots, if there is a source for them."""
        return {} if self._lights is None else await self._lights()

    async def close_sources(self) -> None:
        """End the probes, close the source, then store the histories, which may block."""
        try:
            if self._prober is not None:
                await self._prober.aclose()
            await self._source.aclose()
        finally:
            self._session.close()


SEARCHED = 180.0
"""Seconds before a place that are first searched for an earlier event."""
WARM_ROUNDS = 300
"""Fewest rounds played before a jump's target; read in about a second for seven disks."""
FAR_BYTES = 32 << 20
"""Most of the recording that is played to know the hour that errors are told of; read in about six
seconds, and an hour of seven disks if they were recorded every two seconds."""
AHEAD = 300.0
"""Seconds ahead up to which a jump skips nothing, so that the history continues."""
MOST_PLACES = 40
"""Places of a recording from which a jump can go on; each takes 0.2 MB for seven disks, 3 MB for a
thousand."""
_SHOWN_AFTER = 0.5
"""Seconds of searching for an event, after which it is shown how far that has come."""


def _events(update: Update, partial: bool = False) -> set[Event]:
    """Return what happened by a round, without new errors of a device that had errors just before.

    ``partial``: the history does not begin at the start, so that the errors that come before
    anything else may have begun earlier.
    """
    found = set[Event]()
    for frame in update.frames:
        firsts: Iterable[Event] = (run[0] for run in runs(frame.events))
        if partial:
            firsts = dropwhile(lambda event: event.name == "errors", firsts)
        found.update(firsts)
    return found


def _at_events(update: Update | None, at: float) -> Update | None:
    """Return a round with the events of the time that was asked for, which it is for."""
    if update is None:
        return None
    return replace(update, reached=tuple(e for e in _events(update) if e.t == at))


class _Place(NamedTuple):
    """What was known at a round of a recording."""

    since: float
    """Time of the first round that was played."""
    timelines: Mapping[str, PoolTimeline]


class ReplayFeed(SessionFeed):
    """Feed of a replay.

    After a jump back its history is what it was there, of the newest ``MOST_PLACES`` places; after
    one to a place that was not played it begins an hour before that, or later in a recording of
    more than ``FAR_BYTES`` an hour. ``minutes_watched`` of a frame tells.
    """

    playback: Playback

    def __init__(self, source: ReplaySource, session: Session, anew: Callable[[], Session]) -> None:
        """``anew`` creates the session for another position."""
        super().__init__(source, session, 0.0, zpool_outputs=source.zpool_outputs)
        self.playback = source.playback
        self._recording = source
        self._anew = anew
        self.events: dict[str, Sequence[Event]] = {}
        """The events of each pool that ``read_events`` has found, as they happened."""
        self.read_until = float("-inf")
        """Time up to which they were read; infinite at the end."""
        self.chosen: tuple[str, Event] | None = None
        """Time and pool of the event that was gone to last, and the event."""
        self._places: dict[float, _Place] = {}
        """What was known by the time of the round, in the order in which it was kept."""
        self._since: float | None = None
        """Time of the first round that the present history knows."""
        self._played = 0
        """Number of rounds since a jump."""
        self._reading: SessionFeed | None = None
        """What reads them; None before it begins, and after an error."""

    async def sample(self) -> Update | None:
        """Take a round; on the way to another place, play as fast as possible.

        If there is no way, as the file is gone, a note of the round says so.
        """
        playback, shown, update = self.playback, self.playback.t, None
        if not playback.jumps:
            update = await self._round()
            if steps := playback.request.steps:  # asked for meanwhile: this round came early
                playback.request = playback.request._replace(steps=steps - 1)
        try:
            return await self._jump(shown, update)
        except ZconsoleError as error:
            if (stays := update or self._newest) is None:
                raise
            playback.request = PLAY_ON
            notes = () if update is None else update.notes
            return replace(stays, alerts=(), ring="", notes=(*notes, str(error)))

    async def _jump(self, shown: float | None, update: Update | None) -> Update | None:
        """Return the round at the place asked for from ``shown``; ``update`` if none was."""
        playback = self.playback
        while playback.jumps:
            request = playback.request
            if request.t is not None:
                found = _at_events(await self._go_to(request.t), request.t)
            elif request.steps:
                found = await self._step(request.steps)
            elif request.events < 0:
                found = await self._search_back(shown)
            else:
                update = await self._search_on(update)
                if playback.request.events:
                    return update  # shows how far it has come
                continue
            update = found or update
        return update

    async def _round(self) -> Update | None:
        """Take the next round; now and then keep what is known."""
        update, at = await super().sample(), self.playback.t
        if update is not None and at is not None:
            self._since = at if self._since is None else self._since
            self._played += 1
            if self._played % WARM_ROUNDS == 0:
                self._keep(at)
        # Lets keys and painting continue, where samples cannot be read as fast as they are due.
        await asyncio.sleep(0)
        return update

    def _keep(self, at: float) -> None:
        """Keep what is known at the round of this time, unless more was known there."""
        known = self._places.get(at)
        if self._since is not None and (known is None or self._since < known.since):
            self._places[at] = _Place(self._since, self._session.timelines())
            if len(self._places) > MOST_PLACES:
                del self._places[next(iter(self._places))]

    def _place_before(self, target: float, begin: float, reach: float) -> float | None:
        """Return the place to go on from to ``target``, where most is known; None without one.

        It is at most ``reach`` seconds before ``begin``, and knows all since then; a round is left
        to play.
        """
        last = self._recording.before(target) or target
        found = (
            (place.since, -at)
            for at, place in self._places.items()
            if begin - reach <= at < last and place.since <= begin
        )
        best = min(found, default=None)
        return None if best is None else -best[1]

    async def read_events(self) -> None:
        """Read the recording for its events, beside the replay; a later call continues.

        Raises ZconsoleError; then a later call begins again.
        """
        merged: dict[str, tuple[Event, ...]] = {}
        while self.read_until < float("inf"):
            if self._reading is None:
                self._reading = SessionFeed(self._recording.anew(), self._anew(), 0.0)
            try:
                update = await self._reading.sample()
            except ZconsoleError:
                self._reading = None
                raise
            frames = () if update is None else update.frames
            for frame in frames:
                now = frame.events  # the newest ones, as they were merged with those before
                if now and now is not merged.get(frame.pool):
                    past = self.events.get(frame.pool, ())
                    self.events[frame.pool] = [*(e for e in past if e.t < now[0].t), *now]
                    merged[frame.pool] = now
            # A round may have no frames: no pool was imported then.
            ends = float("inf") if update is None else self.read_until
            self.read_until = max((frame.t for frame in frames), default=ends)
            await asyncio.sleep(0)  # lets keys and painting continue

    async def _step(self, steps: int) -> Update | None:
        """Take the next round, or request the one before, as often as was asked for."""
        playback = self.playback
        if steps > 0:
            update = await self._round()
            left = 0 if update is None else max(0, playback.request.steps - 1)
            playback.request = playback.request._replace(steps=left)
            return update
        t = playback.t or 0.0
        for _ in range(-steps):
            t = self._recording.before(t) or t
        playback.go_to(t)
        return None

    async def _search_on(self, update: Update | None) -> Update | None:
        """Play to the event that was asked for, or to the end, but at most for _SHOWN_AFTER.

        ``update`` is a round that was taken already.
        """
        playback, until = self.playback, asyncio.get_running_loop().time() + _SHOWN_AFTER
        known = set() if self._newest is None else _events(self._newest)
        while True:
            if update is not None and (new := _events(update) - known):
                left = max(0, playback.request.events - 1)
                playback.request = playback.request._replace(events=left)
                known |= new
                update = replace(update, reached=tuple(sorted(new, key=attrgetter("t"))))
            is_over = playback.request.events <= 0 or asyncio.get_running_loop().time() > until
            if update is not None and is_over:
                return update
            if (found := await self._round()) is None:
                playback.request = playback.request._replace(events=0)
                return update
            update = found

    async def _search_back(self, shown: float | None) -> Update | None:
        """Request the round of an event before ``shown``, or the first round.

        What changed between two samples is known only after playing: play more and more of what
        was before, until there are as many events.
        """
        playback, update, back = self.playback, None, SEARCHED
        first = playback.span[0] if playback.span is not None else 0.0
        before = self._recording.before(shown or 0.0)
        if before is None:
            playback.go_to(first)
        while before is not None and playback.request.events < 0:
            playback.request = playback.request._replace(t=before)
            update = await self._go_to(before, back)
            events = set() if update is None else _events(update, before - back > first)
            past = sorted({event.t for event in events if event.t <= before})
            wanted = -playback.request.events
            if wanted > 0 and (len(past) >= wanted or before - back <= first):
                playback.go_to(past[-wanted] if len(past) >= wanted else first)
            back *= 4
        return update

    def _interval_at(self, at: float) -> float:
        """Return the seconds between the last two rounds before a time; 0 if there are no two."""
        last = self._recording.before(at)
        earlier = None if last is None else self._recording.before(last)
        return 0.0 if last is None or earlier is None else last - earlier

    async def _go_to(self, target: float, searched: float = 0.0) -> Update | None:
        """Return the round at ``target``, or the last one before a newer request.

        ``searched``: play so many seconds before it; else what errors are told of, or a part.
        """
        now, update = self.playback.t, None
        first = 0.0 if self.playback.span is None else self.playback.span[0]
        least = WARM_ROUNDS * self._interval_at(target)
        back = searched or HOUR
        while not searched and self._recording.size(target - back, target) > FAR_BYTES:
            back /= 2
        begin = max(first, target - max(back, least))
        ahead = now is not None and now < target <= now + AHEAD
        if searched or not ahead or self._since is None or self._since > begin:
            if now is not None:
                self._keep(now)
            place = self._place_before(target, begin, least)
            since, timelines = (None, {}) if place is None else self._places[place]
            known = {name: timeline.until for name, timeline in timelines.items()}
            # Somewhat more than is needed, so that a step back can go on from one of its places.
            start = begin - least if place is None else place
            self._recording.go_to(start, known)
            self._session = self._anew()  # not before: if the file is gone, it stays where it is
            self._session.go_on_from(timelines)
            self._since, self._played = since, 0
        while self.playback.request.t == target:
            found = await self._round()
            there = found is None or (self.playback.t or target) >= target
            if there and self.playback.request.t == target:
                self.playback.request = self.playback.request._replace(t=None)
            update = found or update
        return update
