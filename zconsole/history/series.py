"""Bounded rings of past rates, for sparklines."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from math import isnan, nan

DEVICE_METRICS = ("read", "write", "latency", "busy")
SCAN_METRICS = ("scan_rate", "issue_rate")
CAPACITY = 240
"""Values kept a metric: wider than any terminal's sparkline, four minutes at a sample a second."""


class _Ring:
    """The values of one key, all metrics of a tick side by side; a missed tick reads as none."""

    __slots__ = ("_capacity", "_last", "_values", "width")

    def __init__(self, width: int, capacity: int) -> None:
        self.width = width
        self._capacity = capacity
        # Single precision: a pool of a thousand leaves keeps a million values.
        self._values = array("f")
        self._last = -1

    def put(self, tick: int, values: Sequence[float | None]) -> None:
        """Store one value a column for ``tick``; ticks skipped since the last hold no value."""
        if tick == self._last:
            del self._values[-self.width :]
        elif self._last >= 0:
            missed = min(tick - self._last - 1, self._capacity)
            self._values.extend([nan] * (missed * self.width))
        self._values.extend([nan if value is None else value for value in values])
        self._last = tick
        most = self._capacity * self.width
        if len(self._values) >= 2 * most:  # now and then: each time moves all that is kept
            del self._values[:-most]

    def tail(self, tick: int, column: int, count: int) -> list[float | None]:
        """The values up to ``tick``, oldest first."""
        count = min(count, self._capacity, tick + 1)
        after = min(count, tick - self._last)
        kept = self._values[column :: self.width][after - count :] if count > after else []
        every = (*[nan] * (count - after - len(kept)), *kept, *[nan] * after)
        return [None if isnan(value) else value for value in every]


class RateSeries:
    """Past rates of every vdev and scan of a pool."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._tick = -1
        self._rings: dict[str, _Ring] = {}
        self._times: deque[float] = deque(maxlen=capacity)

    def advance(self, t: float = nan) -> None:
        """Begin the next sample, taken at ``t`` (epoch seconds); a key not put has no value."""
        self._tick += 1
        self._times.append(t)

    def put(self, key: str, *values: float | None) -> None:
        """Keep a vdev's DEVICE_METRICS, or a scan's SCAN_METRICS, for the present sample."""
        ring = self._rings.get(key)
        if ring is None:
            ring = self._rings[key] = _Ring(len(values), self._capacity)
        ring.put(self._tick, values)

    def keys(self) -> tuple[str, ...]:
        """Every key that has values."""
        return tuple(self._rings)

    def dump(self, key: str) -> list[list[float | None]]:
        """Every value kept of one of these, a list a metric, oldest first; for ``restore``."""
        ring = self._rings[key]
        return [ring.tail(self._tick, n, self._capacity) for n in range(ring.width)]

    def restore(self, columns: Mapping[str, Sequence[Sequence[float | None]]]) -> None:
        """Begin with what was dumped, then a gap; only before the first sample."""
        ticks = max((len(column) for rows in columns.values() for column in rows), default=0)
        for key, rows in columns.items():
            ring = _Ring(len(rows), self._capacity)
            for tick in range(ticks):
                values = [c[tick - ticks + len(c)] for c in rows if ticks - tick <= len(c)]
                if len(values) == len(rows):
                    ring.put(tick, values)
            self._rings[key] = ring
        self._tick = ticks

    def forget(self, keys: set[str]) -> None:
        """Drop the rings of keys that are gone for good."""
        for key in keys:
            self._rings.pop(key, None)

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        """The last ``count`` values of a key's metric, oldest first; None where there was none.

        Of a vdev: read and write (bytes/s), latency (seconds), busy; of a scan: scan_rate and
        issue_rate.
        """
        ring = self._rings.get(key)
        if ring is None or count <= 0:
            return ()
        metrics = SCAN_METRICS if metric in SCAN_METRICS else DEVICE_METRICS
        return ring.tail(self._tick, metrics.index(metric), count)

    def ages(self, count: int) -> list[float]:
        """Seconds from each of the last ``count`` samples to the newest, oldest first.

        Samples of an earlier run have none.
        """
        times = list(self._times)[-count:] if count > 0 else []
        return [times[-1] - t for t in times]
