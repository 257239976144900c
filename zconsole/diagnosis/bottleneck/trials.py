"""What raising a tunable brought to the scan that runs: further steps follow only a gain."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from zconsole.tunables.effect import (
    ENOUGH,
    SETTLE,
    WINDOW,
    EffectSample,
    TunableEffect,
    measure,
)

LEAST_GAIN = 0.05
"""Share of the rate below which a step brought nothing: a scan varies by that much."""
LARGE = 1.5
"""Times the value before, from which a raise tells whether the next one helps; an autopilot's do
not. What is suggested is twice the value, or more."""
MOST_RARE = 4 * ENOUGH
"""Samples kept however long ago they were: where they are rare, these are what both sides need."""


class TunableStep(NamedTuple):
    """The newest large raise of a tunable."""

    before: int
    after: int
    effect: TunableEffect | None = None
    """On the issue rate; None until it is measured, without figures where it cannot be."""
    at: float = 0.0
    """When it was seen (steady clock)."""

    @property
    def clear(self) -> bool:
        """Whether the rate changed by more than it varies by; see ``TunableEffect.issue_clear``."""
        return self.effect is not None and self.effect.issue_clear

    @property
    def helped(self) -> bool:
        """Whether the scan became clearly faster by it."""
        gain = self.effect.gain if self.effect else None
        return self.clear and gain is not None and gain >= LEAST_GAIN


class TunableTrials:
    """Takes every judged sample of one scan, and measures each large raise that it sees.

    Whoever sets a tunable: the kernel's values are looked at. One that is set back is remembered.
    """

    def __init__(self) -> None:
        self.steps: dict[str, TunableStep] = {}
        """By tunable."""
        self._known: dict[str, int] = {}
        self._points: deque[EffectSample] = deque()
        self._changed: dict[str, float] = {}
        """When the steps were made that are not measured yet."""
        self._times: list[float] = []

    def take(self, clock: float, rate: float | None, tunables: Mapping[str, int]) -> None:
        """A sample at ``clock`` (steady); ``rate`` in issued bytes/s."""
        for name, value in tunables.items():
            before = self._known.setdefault(name, value)
            if value != before:
                self._known[name] = value
                self._times.append(clock)
                tried = self.steps.get(name)
                if tried is not None and before < value < tried.after:
                    continue  # as an autopilot puts back what it found: more than that was tried
                if value >= LARGE * before:
                    self.steps[name] = TunableStep(before, value, at=clock)
                    self._changed[name] = clock
                elif value < before and self._changed.pop(name, None) is not None:
                    del self.steps[name]  # taken back before it could be measured
        self._points.append(EffectSample(clock, rate, None))
        oldest = clock - 2 * WINDOW - SETTLE
        while self._points[0].t < oldest and len(self._points) > MOST_RARE:
            self._points.popleft()
        for name in list(self._changed):
            self._measure(clock, name)

    def _measure(self, clock: float, name: str) -> None:
        """Measure a step once all that counts was seen."""
        changed = self._changed[name]
        cut = any(changed < t < clock for t in self._times)
        if not cut and clock < changed + SETTLE + WINDOW:
            return
        found = measure(self._points, changed, self._times)
        if found.gain is None and not (cut or found.over):
            return  # samples are rare: a few more tell
        del self._changed[name]
        self.steps[name] = self.steps[name]._replace(effect=found)
