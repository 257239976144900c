"""What applications wait, from two samples that a console has seen; reckoned once it is asked."""

from __future__ import annotations

from zconsole.pool.model import Sample
from zconsole.tunables.hold_latency import WINDOW, latency, since
from zconsole.tunables.pilot import histograms

SPAN = WINDOW / 2
"""Seconds that the older sample stays the older one."""


class LatencyWindow:
    """The newest sample of a pool, and one of at most twice SPAN before."""

    def __init__(self) -> None:
        self._old: Sample | None = None
        self._middle: Sample | None = None
        self._new: Sample | None = None

    def take(self, sample: Sample) -> None:
        """The newest sample. Nothing is reckoned: every round comes here."""
        self._old, self._middle = self._old or sample, self._middle or sample
        if sample.t - self._middle.t >= SPAN:
            self._old, self._middle = self._middle, sample
        self._new = sample

    @property
    def latency(self) -> float | None:
        """Seconds between the two samples' requests; None where too few were asked."""
        if self._old is None or self._new is None:
            return None
        found = since(histograms(self._new.pool), histograms(self._old.pool))
        return latency(found) if found else None
