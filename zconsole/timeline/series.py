"""Bounded tables of past rates, for sparklines."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from math import nan
from operator import itemgetter

from zconsole.pool.model import IoRates

DEVICE_METRICS = ("read", "write", "latency", "busy")
SCAN_METRICS = ("scan_rate", "issue_rate")
_KEPT = itemgetter(*map(IoRates._fields.index, DEVICE_METRICS))
CAPACITY = 240
"""Values kept a metric: wider than any terminal's sparkline, four minutes at a sample a second."""


class _Table:
    """A row for each tick, with all metrics of one key after those of another.

    A pool of a thousand leaves keeps a million values: single precision, and one array a row.
    """

    def __init__(self, width: int, capacity: int) -> None:
        self.width = width
        self._places: dict[str, int] = {}
        """Where each key is in a row: the same object as long as the keys are the same."""
        self._rows: deque[tuple[dict[str, int], array[float]]] = deque(maxlen=capacity)

    def advance(self) -> None:
        """Begin a row; it has no values yet."""
        self._rows.append(({}, array("f")))

    def put(self, keys: Iterable[str], values: Iterable[float | None]) -> None:
        """Store the values of every key in the newest row."""
        names = list(keys)
        if list(self._places) != names:
            self._places = {key: n * self.width for n, key in enumerate(names)}
        row = array("f", [nan if v is None else v for v in values])
        self._rows[-1] = self._places, row

    def tail(self, key: str, column: int, count: int) -> list[float | None]:
        """The newest values of a key, oldest first; None where it has none, [] if it is unknown."""
        newest = list(self._rows)[-count:]
        found = [nan if (at := p.get(key)) is None else row[at + column] for p, row in newest]
        # Not isnan(): this is asked for every leaf, and nan alone differs from itself.
        values = [None if value != value else value for value in found]
        seen = any(key in places for places, _ in newest) or key in self.known()
        return values if seen else []

    def peak(self, keys: Sequence[str], columns: Sequence[int], count: int) -> float | None:
        """The largest of the newest values of all these keys; None where they have none."""
        peaks: list[float] = []
        before, at = None, list[int]()
        for places, row in list(self._rows)[-count:]:
            if places is not before:
                before, known = places, [places[key] for key in keys if key in places]
                at = [place + column for column in columns for place in known]
            peaks.append(max((v for v in map(row.__getitem__, at) if v == v), default=nan))
        return max((v for v in peaks if v == v), default=None)  # nan alone differs from itself

    def known(self) -> dict[str, None]:
        """Every key that has values."""
        every = {id(places): places for places, _ in self._rows}
        return dict.fromkeys(key for places in every.values() for key in places)

    def forget(self, keys: Collection[str]) -> None:
        """Drop what is kept of these."""
        if not keys:
            return
        every = {id(places): places for places, _ in self._rows}
        for places in every.values():
            for key in keys:
                places.pop(key, None)
        self._places = {}


class RateSeries:
    """Past rates of every vdev and scan of a pool."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._devices = _Table(len(DEVICE_METRICS), capacity)
        self._scans = _Table(len(SCAN_METRICS), capacity)
        self._times: deque[float] = deque(maxlen=capacity)

    def advance(self, t: float = nan) -> None:
        """Begin the next sample, taken at ``t`` (epoch seconds); a key not put has no value."""
        self._devices.advance()
        self._scans.advance()
        self._times.append(t)

    def put_devices(self, rates: Mapping[str, IoRates]) -> None:
        """Keep the DEVICE_METRICS of every vdev by its key, for the present sample."""
        self._devices.put(rates, chain.from_iterable(map(_KEPT, rates.values())))

    def put_scans(self, rates: Mapping[str, tuple[float | None, float | None]]) -> None:
        """Keep the SCAN_METRICS of every scan by its key, for the present sample."""
        self._scans.put(rates, [value for pair in rates.values() for value in pair])

    def keys(self) -> tuple[str, ...]:
        """Every key that has values."""
        return (*self._devices.known(), *self._scans.known())

    def dump(self, key: str) -> list[list[float | None]]:
        """Every value kept of one of these, a list a metric, oldest first; for ``restore``."""
        table = self._scans if key in self._scans.known() else self._devices
        return [table.tail(key, n, self._capacity) for n in range(table.width)]

    def restore(self, columns: Mapping[str, Sequence[Sequence[float | None]]]) -> None:
        """Begin with what was dumped, then a gap; only before the first sample."""
        ticks = max((len(column) for rows in columns.values() for column in rows), default=0)
        for table in (self._devices, self._scans):
            for ago in range(ticks, 0, -1):
                there = {
                    key: [column[-ago] for column in rows]
                    for key, rows in columns.items()
                    if len(rows) == table.width and all(ago <= len(column) for column in rows)
                }
                table.advance()
                table.put(there, [value for values in there.values() for value in values])
            table.advance()

    def forget(self, keys: Collection[str]) -> None:
        """Drop what is kept of vdevs that are gone for good."""
        self._devices.forget(keys)

    def tail(self, key: str, metric: str, count: int) -> Sequence[float | None]:
        """The last ``count`` values of a key's metric, oldest first; None where there was none.

        Of a vdev: read and write (bytes/s), latency (seconds), busy; of a scan: scan_rate and
        issue_rate.
        """
        if count <= 0:
            return ()
        if metric in SCAN_METRICS:
            return self._scans.tail(key, SCAN_METRICS.index(metric), count)
        return self._devices.tail(key, DEVICE_METRICS.index(metric), count)

    def peak(self, keys: Sequence[str], metrics: Sequence[str], count: int) -> float | None:
        """The largest of the last ``count`` values of these metrics of all these vdevs, if any."""
        columns = [DEVICE_METRICS.index(metric) for metric in metrics]
        return self._devices.peak(keys, columns, count) if count > 0 else None

    def ages(self, count: int) -> list[float]:
        """Seconds from each of the last ``count`` samples to the newest, oldest first.

        Samples of an earlier run have none.
        """
        times = list(self._times)[-count:] if count > 0 else []
        return [times[-1] - t for t in times]
