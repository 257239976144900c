"""Effect of tunable changes on a pool's scan and on the latency of applications."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from statistics import fmean

from zconsole.diagnosis.bottleneck.finding import TunableStep
from zconsole.pool.model import Event, Sample
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import DONE, Frame
from zconsole.tunables.effect import (
    LONGEST,
    SETTLE,
    WINDOW,
    EffectSample,
    TunableEffect,
    measure,
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
        self._old: Sample | None = None
        self._middle: Sample | None = None
        self._new: Sample | None = None

    def take(self, sample: Sample) -> None:
        """Keep the newest sample. Computes nothing, as it is called for every round."""
        self._old, self._middle = self._old or sample, self._middle or sample
        if sample.t - self._middle.t >= SPAN:
            self._old, self._middle = self._middle, sample
        self._new = sample

    @property
    def latency(self) -> float | None:
        """Latency of the requests between the two samples, in seconds; None with too few."""
        if self._old is None or self._new is None:
            return None
        found = since(histograms(self._new.pool), histograms(self._old.pool))
        return latency(found) if found else None


KEPT = 3600
"""Points of issue rate and latency kept for each pool."""

SEEN_WITHIN = 120.0
"""Most seconds between a change and a suggestion's record of it: samples may be a minute apart."""


class EffectWatch:
    """Issue rate and latency of each pool over time, and the effects of changes on them."""

    def __init__(self) -> None:
        self._points: dict[str, deque[EffectSample]] = {}
        self._windows: dict[str, LatencyWindow] = {}
        self._effects: dict[tuple[str, Change], TunableEffect] = {}
        self._tried: dict[tuple[str, str, TunableStep], float] = {}
        """When each step that suggestions judge by was made (epoch seconds), by pool, tunable and
        step."""

    def take(self, update: Update) -> None:
        """Record the issue rates and latencies of a round."""
        for frame in update.frames:
            points = self._points.setdefault(frame.pool, deque(maxlen=KEPT))
            scan = frame.scan
            running = scan is not None and scan.scan.state == "running"
            rate = scan.issue_rate if scan is not None and running else None
            limit = frame.limit.beyond_tunables if frame.limit else ""
            stage = (scan.stage if scan is not None and running else None) or ""
            points.append(EffectSample(frame.t, rate, _latency(frame), limit, stage))
            if frame.sample is not None:
                self._keep_tried(frame, frame.sample)
                self._windows.setdefault(frame.pool, LatencyWindow()).take(frame.sample)

    def latency(self) -> float | None:
        """Return the latency of the slowest pool's requests in seconds; None if there are few."""
        found = (window.latency for window in self._windows.values())
        return max((each for each in found if each is not None), default=None)

    def best_rate(self, frame: Frame) -> float | None:
        """Return the highest issue rate seen during the current scan of a pool, in bytes/s."""
        begun = (frame.scan.scan.start if frame.scan else None) or 0.0
        points = self._points.get(frame.pool, ())
        return max((p.issue_rate for p in points if p.issue_rate and p.t >= begun), default=None)

    def rate_lost(self, frame: Frame) -> float | None:
        """Return by what share the scan is now slower than its highest rate; None if unknown."""
        now, best = frame.scan.issue_rate if frame.scan else None, self.best_rate(frame)
        return None if now is None or best is None or now >= best else 1.0 - now / best

    def effect(self, pool: str, change: Change, changes: tuple[Change, ...]) -> TunableEffect:
        """Return the measured effect of a change on the scan of a pool.

        Where a suggestion is based on a measurement of this change, its issue rates are used, so
        that both say the same.
        """
        found = self._measured(pool, change, changes)
        tried = self._tried_by(pool, change, changes)
        if tried is None:
            return found
        return replace(
            found,
            issue_before=tried.issue_before,
            issue_after=tried.issue_after,
            issue_clear=tried.issue_clear,
            doubt=tried.doubt,
        )

    def _keep_tried(self, frame: Frame, sample: Sample) -> None:
        step = frame.limit.tried if frame.limit else None
        if frame.limit is not None and step is not None and step.effect is not None:
            key = (frame.pool, frame.limit.suggestion.tunable, step)
            # The sample's clock is steady, its t is epoch seconds: convert the one to the other.
            self._tried.setdefault(key, sample.t - (sample.clock - step.at))

    def _tried_by(
        self, pool: str, change: Change, changes: tuple[Change, ...]
    ) -> TunableEffect | None:
        """Return the suggestion's measurement of this change, not of another equal change."""
        values = (change.name, change.before, change.after)
        same = [c.t for c in changes if (c.name, c.before, c.after) == values]
        for (where, name, step), t in self._tried.items():
            if (where, name, step.before, step.after) != (pool, *values):
                continue
            if abs(t - change.t) <= SEEN_WITHIN and change.t == min(
                same, key=lambda at: abs(at - t)
            ):
                return step.effect
        return None

    def _measured(self, pool: str, change: Change, changes: tuple[Change, ...]) -> TunableEffect:
        """Return the effect of a change; cached once later samples can't alter it."""
        if (pool, change) in self._effects:
            return self._effects[pool, change]
        points = self._points.get(pool, deque())
        if not points or change.t < points[0].t:
            return TunableEffect(None, None, None, None, over=True)
        found = measure(points, change.t, [c.t for c in changes])
        known = found.gain is not None and points[-1].t > change.t + SETTLE + WINDOW
        if known or points[-1].t > change.t + SETTLE + LONGEST:
            self._effects[pool, change] = found
        return found

    def events(self, pool: str, changes: tuple[Change, ...]) -> Iterator[Event]:
        """Yield an event for each time at which tunables were set, with the effect on a pool."""
        for t, group in groupby(changes, key=lambda change: change.t):  # one event per time
            together = tuple(group)
            text = changes_text(together, self.effect(pool, together[0], changes))
            yield Event(t, DONE, text, "notice", origin="console")


def _latency(frame: Frame) -> float | None:
    """Mean latency of the pool's devices in seconds: what other I/O experiences during a scan."""
    found = (row.rates.latency for row in frame.rows if not row.vdev.children)
    known = [wait for wait in found if wait is not None]
    return fmean(known) if known else None
