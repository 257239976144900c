"""Scans, activities and rates with what follows from watching them."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.eta.estimate import Estimate
from zconsole.eta.past import Comparison
from zconsole.history.known_change import Followed
from zconsole.history.past_rates import PastRates
from zconsole.history.rate_lag import RateLag
from zconsole.pool.model import Activity, Scan

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


class ActivityView(NamedTuple):
    """A removal, expansion, checkpoint, trim or initialize with its windowed rate."""

    activity: Activity
    rate: float | None
    estimate: Estimate
    stalled: float | None = None
    """Seconds without progress, once that is too long to be slow."""
    advice: str = ""
    """Why it does not go on, or why its percent is odd, and what to do."""
