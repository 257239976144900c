"""Scans, activities and rates with what follows from watching them."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.diagnosis.bottleneck.evidence import WatchedScan
from zconsole.pool.model import Activity, Scan
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.known_change import Followed
from zconsole.timeline.past_rates import PastRates
from zconsole.timeline.rate_lag import RateLag

RESTARTED = "restarted "
"""How a note on a restart begins."""


class ScanView(NamedTuple):
    """A scan with what follows from watching it."""

    scan: Scan
    key: str
    """For ``RateSeries.tail``."""
    stage: str | None
    percent: float | None
    scan_rate: float | None
    """Bytes/s over a window; the pass average when there was only one sample."""
    issue_rate: float | None
    window: float | None
    """Seconds the rates cover; None for a pass average."""
    estimate: Estimate
    restarts: int | None
    stalled: float | None = None
    """Seconds without progress, once that is long enough to call it stalled."""
    full: Estimate | None = None
    """Time to full redundancy, if later than this pass (deferred devices, a scrub to follow)."""
    notes: tuple[str, ...] = ()
    """In words, newest first: ``restarted 12:03 after sdc came back``, ``follow-on pass``."""
    past: PastRates = PastRates()
    """Its issue rate since it began, through restarts and follow-on passes."""
    comparison: Comparison | None = None
    """How it goes against the earlier scan by which it is told."""
    lag: RateLag | Followed | None = None
    """What the rate of now would give, where the estimate has not followed it yet; or that it
    has followed a change of tunables."""

    @property
    def watched(self) -> WatchedScan:
        """The scan, as what limits it is judged by."""
        rate = self.issue_rate if self.scan.two_stage else self.scan_rate
        return WatchedScan(self.scan, self.stage, rate)


class ActivityView(NamedTuple):
    """A removal, expansion, checkpoint, trim or initialize with its windowed rate."""

    activity: Activity
    rate: float | None
    estimate: Estimate
    stalled: float | None = None
    """Seconds without progress, once that is too long to be slow."""
    advice: str = ""
    """Why it does not go on, or why its percent is odd, and what to do."""
