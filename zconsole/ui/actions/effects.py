"""Effect of tunable changes on a pool's scan and on the latency of applications."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from zconsole.pool.model import Event, Sample
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import DONE, Frame
from zconsole.tunables.effect import (
    LONGEST,
    SETTLE,
    WINDOW,
    TunableEffect,
)
from zconsole.tunables.hold_latency import WINDOW as LATENCY_WINDOW
from zconsole.tunables.hold_latency import latency, since
from zconsole.tunables.pilot import histograms
from zconsole.tunables.store import Change
from zconsole.ui.actions.tunables_pane import changes_text

SPAN = LATENCY_WINDOW / 2
"""Seconds between the samples that a latency window keeps as its start."""


class LatencyWindow:
    """The newest sample of a pool, and one from up to 2 * SPAN seconds earlier."""

    def __init__(self) -> None:
        self._kept: tuple[Sample, ...] = ()
        """The older one, the one to follow it, and the newest."""

    def take(self, sample: Sample) -> None:
        """Keep the newest sample. Computes nothing, as it is called for every round."""
        old, middle, _ = self._kept or (sample,) * 3
        if sample.t - middle.t >= SPAN:
            old, middle = middle, sample
        self._kept = old, middle, sample

    @property
    def latency(self) -> float | None:
        """Latency of the requests between the two samples, in seconds; None with too few."""
        if not self._kept:
            return None
        old, _, new = self._kept
        found = since(histograms(new.pool), histograms(old.pool))
        return latency(found) if found else None


SEEN_WITHIN = 120.0
"""Most seconds between a change and a suggestion's record of it: samples may be a minute apart."""


class EffectWatch:
    """How long applications wait for each pool, and what changed tunables did."""

    def __init__(self) -> None:
        self._windows: dict[str, LatencyWindow] = {}
        self._effects: dict[tuple[str, Change], TunableEffect] = {}
        """Effects that later samples can't alter."""

    def take(self, update: Update) -> None:
        """Record the latencies of a round."""
        for frame in update.frames:
            if frame.sample is not None:
                self._windows.setdefault(frame.pool, LatencyWindow()).take(frame.sample)

    def latency(self) -> float | None:
        """Return the latency of the slowest pool's requests in seconds; None if there are few."""
        found = (window.latency for window in self._windows.values())
        return max((each for each in found if each is not None), default=None)

    def rate_lost(self, frame: Frame) -> float | None:
        """Return by what share the scan is now slower than its highest rate; None if unknown."""
        now, best = frame.scan.issue_rate if frame.scan else None, frame.effects.best_rate
        return None if now is None or best is None or now >= best else 1.0 - now / best

    def effect(self, frame: Frame, change: Change, changes: tuple[Change, ...]) -> TunableEffect:
        """Return the effect of a change on the scan of a pool.

        Where suggestions are based on a measurement of this change, it is that, so that both say
        the same.
        """
        key = (frame.pool, change)
        if key in self._effects:
            return self._effects[key]
        found = _tried(frame, change, changes)
        final = found is not None
        if found is None:
            found = frame.effect(change.t, [c.t for c in changes])
            if found is None:
                return TunableEffect(None, None, None, None, over=True)
            age = frame.t - change.t - SETTLE
            final = age > (LONGEST if found.gain is None else WINDOW)
        if final:
            self._effects[key] = found
        return found

    def events(self, frame: Frame, changes: tuple[Change, ...]) -> Iterator[Event]:
        """Yield an event for each time at which tunables were set, with the effect on a pool."""
        for t, group in groupby(changes, key=lambda change: change.t):  # one event per time
            together = tuple(group)
            text = changes_text(together, self.effect(frame, together[0], changes))
            yield Event(t, DONE, text, "notice", origin="console")


def _tried(frame: Frame, change: Change, changes: tuple[Change, ...]) -> TunableEffect | None:
    """Return the suggestions' measurement of this change, not of another equal change."""
    step, values = frame.effects.steps.get(change.name), (change.before, change.after)
    if step is None or (step.before, step.after) != values:
        return None
    t = frame.t - (frame.clock - step.at)
    equal = [c.t for c in changes if (c.name, c.before, c.after) == (change.name, *values)]
    nearest = min(equal, key=lambda each: abs(each - t))
    return step.effect if change.t == nearest and abs(t - change.t) <= SEEN_WITHIN else None
