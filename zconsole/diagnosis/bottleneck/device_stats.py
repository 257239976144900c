"""The recent past of each disk: mean queues, best rates, recent writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

from zconsole.pool.model import IoRates, Vdev

FRESH = 0.25
"""Weight of the newest queue depths in their running mean."""
AVERAGED = 30.0
"""Seconds over which the requests in flight are averaged, to tell whose they are."""
WRITES_KEPT = 24
KEEP_EVERY = 5.0
"""Seconds between two remembered write rates: about a transaction group."""
SURE_BUSY = 0.1
TOTALS_KEPT = 8
LARGE = 128 * 1024.0
"""Request size from which busy time tells how fast a disk could stream."""


class PoolLoad(NamedTuple):
    """The rate of all devices of a pool together, read and written, in bytes/s."""

    now: float = 0.0
    most: float = 0.0
    """The highest rate over two consecutive samples."""
    unsteady: float = 1.0
    """Recent variation: standard deviation by mean; 1 with too few samples."""
    recent: tuple[float, ...] = ()
    """The last samples, oldest first."""

    def after(self, now: float) -> PoolLoad:
        """With one more sample."""
        most = max(self.most, min(self.now, now)) if self.recent else self.most
        recent = (*self.recent, now)[-TOTALS_KEPT:]
        return PoolLoad(now, most, _variation(recent, TOTALS_KEPT, 1.0), recent)


@dataclass(slots=True)
class LeafStats:
    """One leaf's recent past; bytes/s, and requests for the queues."""

    pending: dict[str, float] = field(default_factory=dict)
    active: dict[str, float] = field(default_factory=dict)
    flying: dict[str, float] = field(default_factory=dict)
    """Those in flight as ``active`` has them, averaged over AVERAGED seconds. What never was in a
    queue is in none of the three."""
    best_read: float = 0.0
    """Its best read rate, extrapolated by its busy share; 0 while it was idle."""
    best_write: float = 0.0
    seen_read: float = 0.0
    """Its best read rate over two consecutive samples, in this scan or before."""
    seen_write: float = 0.0
    """Its best write rate in this scan."""
    writes: list[float] = field(default_factory=list)
    _has_queues: bool = False
    _kept: float = float("-inf")
    _read: float = 0.0
    _first: float | None = None
    _last: float = 0.0

    def add(self, clock: float, vdev: Vdev, rates: IoRates) -> None:
        """Take in one sample."""
        self._mix(clock, vdev.queues)
        self.best_read = max(self.best_read, _possible(rates.read, rates.read_ops, rates))
        self.best_write = max(self.best_write, _possible(rates.write, rates.write_ops, rates))
        self.seen_read = max(self.seen_read, min(self._read, rates.read or 0.0))
        self._read = rates.read or 0.0
        self.seen_write = max(self.seen_write, rates.write or 0.0)
        if rates.write is not None and clock - self._kept >= KEEP_EVERY:
            self.writes = [*self.writes, rates.write][-WRITES_KEPT:]
            self._kept = clock

    def begin(self) -> None:
        """Forget write rates when another scan begins: they don't carry over."""
        self.seen_write = 0.0
        self.writes.clear()

    def _mix(self, clock: float, queues: Mapping[str, tuple[int, int]]) -> None:
        """Average the depths. Most queues of most devices are always empty: those take no room."""
        weight = FRESH if self._has_queues else 1.0
        # That of this sample in a plain mean until AVERAGED seconds have passed, then in a running
        # one.
        if self._first is None:
            self._first = self._last = clock
        passed, self._last = clock - self._last, clock
        whole = clock - self._first + passed
        average = min(1.0, passed / min(AVERAGED, whole)) if whole > 0 and passed > 0 else 1.0
        for name, (pending, active) in queues.items():
            self._has_queues = True
            if pending or name in self.pending:
                self.pending[name] = _mixed(self.pending.get(name, 0.0), pending, weight)
            if active or name in self.active:
                self.active[name] = _mixed(self.active.get(name, 0.0), active, weight)
                self.flying[name] = _mixed(self.flying.get(name, 0.0), active, average)

    @property
    def unsteady(self) -> float:
        """How much the recent write rates vary: standard deviation by mean; 0 when unknown."""
        return _variation(self.writes[-16:], 4, 0.0)


def _mixed(old: float, new: float, weight: float) -> float:
    return old + weight * (new - old)


def _possible(rate: float | None, ops: float | None, rates: IoRates) -> float:
    """What a disk could stream: its rate by its busy share, for large requests of one direction.

    A mostly idle disk doesn't show what it could do.
    """
    if not rate or not ops or (rates.busy is not None and rates.busy < SURE_BUSY):
        return 0.0
    both = (rates.read_ops or 0.0) + (rates.write_ops or 0.0)
    usable = rates.busy is not None and ops > 0.9 * both
    return rate / rates.busy if usable and rate / ops >= LARGE and rates.busy else rate


def _variation(rates: Sequence[float], enough: int, unknown: float) -> float:
    """Standard deviation by mean; ``unknown`` for fewer than ``enough`` rates, or none above 0."""
    if len(rates) < enough or not any(rates):
        return unknown
    mean = sum(rates) / len(rates)
    # Not pstdev(): its exact fractions took a tenth of the time of all that is worked out a sample.
    return sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean
