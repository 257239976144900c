"""Scanning metadata and issuing by turns, as a scan does whose queues fill its memory limit."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from zconsole.pool.model import Scan

WINDOW = 3600.0
"""Seconds of the window."""
CHECKPOINT = 7200.0
"""Seconds between checkpoints (zfs_scan_checkpoint_intval), which empty the queues
regardless of memory; the first is due this long after the scan began or the pool was imported."""
WALKED = 0.99
"""Share of the total from which scanning is over, or nearly: it often ends a little short of it."""
MINUTE = 60.0
TURNS = 3
"""Changes from one to the other within the window that only a limit explains."""
LEFT = 0.25
"""Share of what was sorted that is left when a limit ends a turn of issuing; a checkpoint leaves
nothing."""
MIXED = 0.1
"""Bytes issued for each walked from which a sample counts as having seen both: gang blocks are
issued as soon as they are found (dsl_scan_enqueue, module/zfs/dsl_scan.c)."""


class StageCycles(NamedTuple):
    """How scanning and issuing alternated recently."""

    changes: int = 0
    """Changes within the window."""
    early: bool = False
    """Whether it issued before any checkpoint was due."""
    returned: bool = False
    """Whether scanning resumed while many sorted blocks were still to be issued."""
    issuing: float = 0.0
    """Share of the window's time spent issuing."""

    @property
    def limited(self) -> bool:
        """Whether that indicates a memory limit on sorting."""
        return self.changes >= TURNS or self.early or self.returned


class _Step(NamedTuple):
    clock: float
    seconds: float
    changes: int
    issuing: bool


class StageCycleTracker:
    """Takes the counters of one scan; forgets those older than the window."""

    def __init__(self) -> None:
        self.stage: str | None = None
        """scanning or issuing, whichever moved last; None before anything did, and once all
        metadata has been walked."""
        self._last: tuple[float, Scan] | None = None
        self._steps: deque[_Step] = deque()
        self._peak = 0.0
        self._early = self._returned = False

    def add(self, t: float, clock: float, scan: Scan) -> None:
        """Take in one sample with exact counters, at epoch ``t``."""
        last, self._last = self._last, (clock, scan)
        walked = (scan.scanned_bytes or 0) >= WALKED * (scan.total_bytes or 0)
        if scan.stage != "scanning" or not scan.two_stage or walked:
            self.stage = None
            self._steps.clear()
            return
        # On import, scanned bytes count as issued: counters do not go on.
        goes_on = last is not None and last[1].pass_start == scan.pass_start
        if last is not None and goes_on and last[1].stage == "scanning":
            self._step(clock, clock - last[0], last[1], scan)
            due = scan.pass_start is None or t - scan.pass_start >= CHECKPOINT
            self._early = self._early or (self.stage == "issuing" and not due)
        self._peak = max(self._peak, queued(scan))

    def turns(self) -> StageCycles:
        """As evidence."""
        total = sum(step.seconds for step in self._steps)
        issuing = sum(step.seconds for step in self._steps if step.issuing)
        changes = sum(step.changes for step in self._steps)
        return StageCycles(changes, self._early, self._returned, issuing / total if total else 0.0)

    def _step(self, clock: float, seconds: float, old: Scan, new: Scan) -> None:
        """The stage that moved, or moved last: bytes count as issued when sent."""
        walked = (new.scanned_bytes or 0) - (old.scanned_bytes or 0)
        issued = (new.issued_bytes or 0) - (old.issued_bytes or 0)
        stage = "scanning" if walked > 0 else "issuing" if issued > 0 else self.stage
        if stage is None:
            return
        changed = self.stage is not None and stage != self.stage
        both = not changed and _both(new, walked, issued)
        self._keep(_Step(clock, seconds, 2 if both else int(changed), stage == "issuing"))
        while self._steps[0].clock < clock - WINDOW:
            self._steps.popleft()
        if changed and stage == "scanning":
            self._returned = self._returned or queued(old) > LEFT * self._peak
            self._peak = 0.0
        self.stage = stage

    def _keep(self, step: _Step) -> None:
        """Steps of one minute in which nothing changed are kept as one."""
        last = self._steps[-1] if self._steps else None
        alike = last is not None and not step.changes and last.issuing == step.issuing
        if last is not None and alike and last.clock // MINUTE == step.clock // MINUTE:
            self._steps.pop()
            step = _Step(step.clock, last.seconds + step.seconds, last.changes, step.issuing)
        self._steps.append(step)


def queued(scan: Scan) -> float:
    """Scanned bytes that are still to be issued."""
    done = (scan.skipped_bytes or 0) + (scan.issued_bytes or 0)
    return float(max(0, (scan.scanned_bytes or 0) - done))


def _both(scan: Scan, walked: int, issued: int) -> bool:
    """Whether one sample saw walking and then issuing, or the other way round.

    Before 2.2 a resilver counts what it skips as issued while it walks; with zfs_scan_legacy
    nothing is kept to be sorted.
    """
    apart = scan.skipped_bytes is not None or scan.function == "scrub"
    return apart and walked > 0 and issued > MIXED * walked and queued(scan) > issued
