"""Logical I/O of a pool's datasets and volumes while a scan runs, and those that do most of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nlargest

from zconsole.pool.model import DatasetLoad, IoCounters
from zconsole.timeline.rates import WINDOW_SAMPLES, WINDOW_SECONDS

MOST = 3
"""Most datasets that are named."""
KEPT = 120.0
"""Seconds after which rates are dropped if no newer reading came."""

_Reading = Mapping[tuple[str, str], IoCounters]


class DatasetTracker:
    """Rates of datasets and volumes, windowed as those of devices are."""

    def __init__(self) -> None:
        self.busiest: tuple[DatasetLoad, ...] | None = None
        """Datasets with the most logical I/O, that first; None if unknown, or without a scan."""
        self._readings: list[tuple[float, _Reading]] = []
        """Steady clock in seconds and counters, oldest first."""

    def push(self, clock: float, counters: _Reading, is_scanning: bool) -> None:
        """Add the counters of a sample, if it has any, at ``clock`` (seconds)."""
        kept = self._readings
        if not is_scanning or (kept and not 0 <= clock - kept[-1][0] <= KEPT):
            self.busiest = None
            kept.clear()
        if not is_scanning or not counters:
            return
        kept.append((clock, counters))
        while len(kept) > 2 and (
            len(kept) > WINDOW_SAMPLES or clock - kept[1][0] >= WINDOW_SECONDS
        ):
            del kept[0]
        if len(kept) > 1:
            self.busiest = tuple(
                nlargest(MOST, self._loads(), key=lambda load: load.read_rate + load.write_rate)
            )

    def _loads(self) -> Iterator[DatasetLoad]:
        """Yield the rates of each dataset that was mounted before the newest reading."""
        for key, new in self._readings[-1][1].items():
            old = next(found[key] for _, found in self._readings if key in found)
            seconds, *counted = (after - before for before, after in zip(old, new, strict=True))
            if seconds > 0 and min(counted) >= 0:
                reads, writes, read, written = (count / seconds for count in counted)
                yield DatasetLoad(key[0], read, written, reads, writes)
