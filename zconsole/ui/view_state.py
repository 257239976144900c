"""What is on show: the newest round, the pool chosen of it, and the round frozen by a pause."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from operator import attrgetter

from zconsole.pool.model import Vdev
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.header import HeaderStatus
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import Playback

LEAVES_AFTER = 60.0
"""Seconds that the list of pools still has one that was exported."""


_DRAWN = attrgetter(
    *("pool", "health", "scans", "activities", "events", "flags", "limit", "troubles", "spares"),
    *("balance", "redundancy"),
)
"""What is drawn of a frame besides its rows."""
_COUNTED = Vdev._fields.index("io")
"""From here on, a vdev has counters of I/O and its children, which have rows of their own."""


def place_of(pool: str | None, frames: Sequence[Frame]) -> int:
    """Which of the frames a pool has; the first if none.

    A machine that answers for the first time goes from ``HOST`` to ``HOST:POOL``.
    """
    names = [frame.pool for frame in frames]
    if pool in names:
        return names.index(pool)
    return next((i for i, name in enumerate(names) if name.startswith(f"{pool}:")), 0)


def looks_same(before: Update, update: Update) -> bool:
    """Whether two rounds look the same but for what time alone moves.

    Never where a pool does not answer.
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
    """Counters of I/O are drawn as rates alone."""
    same = one._replace(vdev=other.vdev) == other
    return same and one.vdev[:_COUNTED] == other.vdev[:_COUNTED]


@dataclass
class ViewState:
    """The console's own state between rounds of frames."""

    options: ConsoleOptions
    look: DisplayFormat
    latest: Update | None = None
    arrived: float = 0.0
    """When ``latest`` came, on the console's clock."""
    frozen: Update | None = None
    """What the body shows while paused."""
    pool: str | None = None
    ended: bool = False
    playback: Playback | None = None
    """Steers the recording that is played; None of what happens now."""
    denied: str | None = None
    """Why nothing may be changed, empty when it may; None while unknown, and in a recording."""
    at_rest: bool = False
    """Whether the newest round looks like the one before."""
    _denied_before: str | None = None

    def take(self, update: Update, arrived: float) -> None:
        """A new round has come; a pool that joins later does not take the first one's place."""
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
        """The round with the pools that the list still has.

        One leaves it a while after it was exported, out of sight and unasked; one that merely does
        not answer stays.
        """
        seen = (self.pool, *self.options.pools)
        kept = (
            frame
            for frame in update.frames
            if not frame.absent or frame.pool in seen or (frame.stale_seconds or 0) <= LEAVES_AFTER
        )
        return replace(update, frames=tuple(kept))

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the newest round."""
        return self.latest.frames if self.latest else ()

    @property
    def index(self) -> int:
        """Which of the frames is shown: the pool chosen, else the first."""
        return place_of(self.pool, self.frames)

    @property
    def frame(self) -> Frame | None:
        """The newest frame of the pool shown."""
        return self.frames[self.index] if self.frames else None

    def select(self, index: int) -> None:
        """Show the pool at an index, counted around."""
        if self.frames:
            self.pool = self.frames[index % len(self.frames)].pool

    def toggle_pause(self) -> None:
        """Freeze the body at what it shows now, or go on with the newest."""
        if self.frozen is not None or self.latest is None:
            self.frozen = None
            return
        # Rates that take no more samples: those of a frame go on.
        frames = tuple(replace(f, series=deepcopy(f.series)) for f in self.latest.frames)
        self.frozen = replace(self.latest, frames=frames)

    @property
    def body(self) -> Frame | None:
        """The frame to show below the header: while paused, the one of then."""
        frozen = self.frozen.frames if self.frozen is not None else ()
        return next((f for f in frozen if self.frame and f.pool == self.frame.pool), self.frame)

    @property
    def source(self) -> Capabilities | None:
        """What the pools are read with."""
        return self.latest.capabilities if self.latest else None

    def why_denied(self, source: Capabilities | None, acts: str = "") -> str:
        """Why nothing may be changed; empty when it may.

        ``source``: what the pools are read with; ``acts``: why what acts here changes nothing.
        """
        if why := self.options.fault or "read-only" * self.options.read_only:
            return why
        if source is not None and not source.live:
            return "this is a recording: nothing can be changed"
        return acts or (source.denied if source is not None else "")

    def status(self, now: float, interval: float) -> HeaderStatus | None:
        """What the header says at ``now`` on the console's clock; None before the first frame.

        ``interval``: seconds between samples as it goes.
        """
        frame = self.frame
        if frame is None or self.latest is None:
            return None
        passed = max(0.0, now - self.arrived) if self.latest.capabilities.live else 0.0
        age = None if frame.stale_seconds is None else frame.stale_seconds + passed
        return HeaderStatus(
            host=self.options.host,
            flags=self._flags(self.latest),
            interval=interval,
            age=age,
            now=frame.t + (passed if age is None else age),
        )

    def _flags(self, update: Update) -> tuple[str, ...]:
        return (
            *(("DISPLAY PAUSED",) if self.frozen is not None else ()),
            *(("PAUSED",) if self.playback is not None and self.playback.paused else ()),
            *(("ENDED",) if self.ended else ()),
            *(("READ-ONLY",) if self.options.read_only else ()),
            *update.capabilities.flags,
        )
