"""View state of the console: the newest round, the selected pool, and the frozen round."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from zconsole.pool.model import Vdev
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.display_format import DisplayFormat
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import Playback

LEAVES_AFTER = 60.0
"""Seconds for which a pool stays in the list after its export, or last sample in a recording."""


_DRAWN = attrgetter(
    *("pool", "health", "scans", "activities", "events", "flags", "limit", "troubles", "spares"),
    *("balance", "redundancy", "minutes_watched"),
)
"""Fields of a frame that are drawn, except its rows."""
_COUNTED = Vdev._fields.index("io")
"""First of the vdev fields with I/O counters and children; the children have their own rows."""


def place_of(pool: str | None, frames: Sequence[Frame]) -> int:
    """Return the index of a pool's frame; 0 if it has none.

    A machine that answers for the first time changes its name from ``HOST`` to ``HOST:POOL``.
    """
    names = [frame.pool for frame in frames]
    if pool in names:
        return names.index(pool)
    return next((i for i, name in enumerate(names) if name.startswith(f"{pool}:")), 0)


def looks_same(before: Update, update: Update) -> bool:
    """Return whether two rounds look the same, except for values that follow from the time.

    False if a pool does not answer.
    """
    if before.capabilities != update.capabilities or len(before.frames) != len(update.frames):
        return False
    return all(
        one.failure is None
        and other.failure is None
        and len(one.rows) == len(other.rows)
        and _DRAWN(one) == _DRAWN(other)
        and all(map(_is_row_alike, one.rows, other.rows))
        for one, other in zip(before.frames, update.frames, strict=True)
    )


def _is_row_alike(one: VdevRow, other: VdevRow) -> bool:
    """Return whether two rows look the same; their I/O counters are shown as rates only."""
    same = one._replace(vdev=other.vdev) == other
    return same and one.vdev[:_COUNTED] == other.vdev[:_COUNTED]


FRESH = 2.0
"""Seconds for which the age of a sample is not counted."""


class HeaderStatus(NamedTuple):
    """Data of the header besides the pool's."""

    host: str = ""
    flags: tuple[str, ...] = ()
    interval: float = 1.0
    """Seconds between samples; 0 if the source has its own pace."""
    age: float | None = 0.0
    """Seconds since the last good sample; None if there was none."""
    now: float = 0.0
    """Epoch seconds by the source's clock."""
    live: bool = True
    """False for a recording, whose samples are only late where one is missing."""

    @property
    def fresh(self) -> bool:
        """Whether the sample is so new that its age is not counted."""
        return self.age is not None and self.age < FRESH


@dataclass
class ViewState:
    """State of the console's display between rounds."""

    options: ConsoleOptions
    look: DisplayFormat
    latest: Update | None = None
    arrived: float = 0.0
    """Arrival time of ``latest``, on the console's clock."""
    frozen: Update | None = None
    """Round shown in the panes while paused."""
    pool: str | None = None
    ended: bool = False
    playback: Playback | None = None
    """Controls of the recording that is played; None for live data."""
    denied: str | None = None
    """Why nothing may be changed, empty if changes are allowed; None if unknown, or in a
    recording."""
    at_rest: bool = False
    """Whether the newest round looks like the one before."""
    _denied_before: str | None = None

    def take(self, update: Update, arrived: float) -> None:
        """Process a new round; pools that appear later don't change the selected one."""
        before, self.latest = self.latest, self.listed(update)
        self.at_rest = (
            self.playback is None
            and self.denied == self._denied_before
            and before is not None
            and looks_same(before, self.latest)
        )
        self.arrived, self._denied_before = arrived, self.denied
        if self.pool is None and update.frames:
            self.pool = update.frames[0].pool

    def listed(self, update: Update) -> Update:
        """Return the round without the pools that left the list.

        A pool leaves some time after it was exported, unless it is shown or was asked for by name;
        one without a sample at once, as after it was imported under another name. A pool that only
        does not answer stays.
        """
        seen = (self.pool, *self.options.pools)
        kept = (
            frame
            for frame in self._filled(update)
            if not frame.absent
            or frame.pool in seen
            or (frame.stale_seconds is not None and frame.stale_seconds <= LEAVES_AFTER)
        )
        return replace(update, frames=tuple(kept))

    def _filled(self, update: Update) -> Sequence[Frame]:
        """Return a round's frames; those that a recording lacks are shown again for a while.

        It has no sample of a pool that did not answer, nor of one that was exported.
        """
        now = max((frame.t + (frame.stale_seconds or 0.0) for frame in update.frames), default=0.0)
        known = {
            frame.pool: replace(frame, age=now - frame.t)
            for frame in self.frames
            if 0.0 <= now - frame.t <= LEAVES_AFTER
        }
        found = {frame.pool: frame for frame in update.frames}
        if self.playback is None or known.keys() <= found.keys():
            return update.frames
        return tuple((known | found).values())

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Frames of the newest round."""
        return self.latest.frames if self.latest else ()

    @property
    def index(self) -> int:
        """Index of the selected pool's frame, else 0."""
        return place_of(self.pool, self.frames)

    @property
    def frame(self) -> Frame | None:
        """Newest frame of the selected pool."""
        return self.frames[self.index] if self.frames else None

    def select(self, index: int) -> None:
        """Select the pool at an index, modulo the number of pools."""
        if self.frames:
            self.pool = self.frames[index % len(self.frames)].pool

    def toggle_pause(self) -> None:
        """Freeze the panes at the present round, or return to the newest."""
        if self.frozen is not None or self.latest is None:
            self.frozen = None
            return
        # The series of a frame are shared and go on growing: freeze a copy.
        frames = tuple(replace(f, series=deepcopy(f.series)) for f in self.latest.frames)
        self.frozen = replace(self.latest, frames=frames)

    @property
    def body(self) -> Frame | None:
        """Frame for the panes: the frozen one while paused."""
        frozen = self.frozen.frames if self.frozen is not None else ()
        return next((f for f in frozen if self.frame and f.pool == self.frame.pool), self.frame)

    @property
    def source(self) -> Capabilities | None:
        """Capabilities of the source that reads the pools."""
        return self.latest.capabilities if self.latest else None

    def why_denied(self, source: Capabilities | None, acts: str = "") -> str:
        """Return why nothing may be changed; empty if changes are allowed.

        ``source`` is the source of the pools; ``acts`` is why the backend refuses changes, if so.
        """
        if why := self.options.fault or "read-only" * self.options.read_only:
            return why
        if source is not None and not source.live:
            return "this is a recording: nothing can be changed"
        return acts or (source.denied if source is not None else "")

    def status(self, now: float, interval: float) -> HeaderStatus | None:
        """Return the header's status at ``now`` (console's clock); None before the first frame.

        ``interval`` is the present number of seconds between samples.
        """
        frame = self.frame
        if frame is None or self.latest is None:
            return None
        passed = max(0.0, now - self.arrived) if self.latest.capabilities.live else 0.0
        age = None if frame.stale_seconds is None else frame.stale_seconds + passed
        states = {
            "DISPLAY PAUSED": self.frozen is not None,
            "PAUSED": self.playback is not None and self.playback.paused,
            "ENDED": self.ended,
            "READ-ONLY": self.options.read_only,
        }
        said = (word for word, holds in states.items() if holds)
        return HeaderStatus(
            host=self.options.host,
            flags=(*said, *self.latest.capabilities.flags),
            interval=interval,
            age=age,
            now=frame.t + (passed if age is None else age),
            live=self.latest.capabilities.live,
        )
