"""Scans, activities and rates with what follows from having watched them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from zconsole.eta import Estimate
from zconsole.pool.model import Activity, Scan


class Series(Protocol):
    """Past rates, newest last, for sparklines; bounded, never mutated by a reader."""

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        """The last ``count`` values of ``metric`` (read, write: bytes/s; latency: s; busy) of a
        vdev key, or of a scan (metric scan_rate, issue_rate); None where there was no sample."""

    def since(self, t: float) -> int | None:
        """How many samples ago (0: the newest) the first one at or after ``t`` was taken; None
        when no sample before ``t`` is kept."""


@dataclass(frozen=True, slots=True)
class ScanView:
    """A scan with what follows from having watched it."""

    scan: Scan
    key: str
    """For ``Series.tail``."""
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
    """To full redundancy, where that is later than this pass (deferred devices, scrub to come)."""
    notes: tuple[str, ...] = ()
    """In words, newest first: ``restarted 12:03 after sdc came back``, ``follow-on pass``."""


class ActivityView(NamedTuple):
    """A removal, expansion, checkpoint, trim or initialize with its windowed rate."""

    activity: Activity
    rate: float | None
    estimate: Estimate
