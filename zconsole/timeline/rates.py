"""I/O rates of a pool's vdevs: windowed, from their cumulative counters, and past ones.

Bytes and operations come from the kernel's own counters and clock, else from rates that the source
already computed, else from diskstats. A counter that fell, a device that was swapped or a clock
that jumped restarts the window: then one sample has no rate rather than an absurd one. A bounded
number of past rates of vdevs and scans is kept for sparklines. A leaf that is much slower than the
others of its top-level vdev is marked as a slow sibling. Datasets have their own tracker.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import repeat
from math import fsum, inf, nan
from operator import mul, sub
from typing import NamedTuple

from zconsole import units
from zconsole.pool.model import APART, DATA, DatasetLoad, IoCounters, IoRates, Placed, Vdev

WINDOW_SECONDS = 5.0
"""About one transaction group: writes come in bursts of that length (``zfs_txg_timeout``)."""
WINDOW_SAMPLES = 6
"""Most samples in a window."""
GAP_FACTOR = 10.0
GAP_SECONDS = 30.0
"""A pause in sampling of this many seconds, and ten times the last interval, is a suspend or an
export."""
ABSURD = 1e12
"""Bytes per second beyond which a delta is a counter fault."""

_BUCKET_SECONDS = tuple(1.5 * 2.0**i / 1e9 for i in range(64))
"""Midpoint of bucket i, which counts requests of 2^i to 2^(i+1) ns."""

Numbers = Sequence[float]
"""Cumulative counters of a vdev: the ``IoCounters``, or those of devices in their place; requests,
and the total seconds they waited; seconds that the devices were busy, and the clock when these were
read. 0 if not counted."""
Source = tuple[str | None, bool, tuple[str, ...] | None, bool]
"""Origin of a vdev's counters: its path, whether it has ``IoCounters``, the devices of its
``BlockCounters``; without these, whether there are histograms instead."""
NONE = IoRates()


class _Reading(NamedTuple):
    """Counters of a vdev in one sample."""

    clock: float
    source: Source
    ready: IoRates
    """Rates that the sample already has."""
    counted: Numbers


def _reading(clock: float, vdev: Vdev, before: _Reading | None) -> _Reading:
    """Read the counters of a vdev; optimized, as it runs for each of a thousand vdevs."""
    io, block, ready = vdev.io, vdev.block, vdev.rates or NONE
    if block is not None:
        names, reads, read, reading, writes, written, writing, busy, at = block
        at = clock if at is None else at
        waits = (reads + writes, reading + writing, busy, at)
        counted = (*(io or (at, reads, writes, read, written)), *waits)
        return _Reading(clock, (vdev.path, io is not None, names, False), ready, counted)
    source = (vdev.path, io is not None, None, bool(vdev.histograms))
    waited = requests = 0.0
    if (
        before is not None
        and io is not None
        and before.source[:3] == source[:3]
        and io[1:3] == before.counted[1:3]
    ):
        requests, waited = before.counted[5:7]  # there was no request
    elif vdev.histograms:
        found = [vdev.histograms.get(name) or () for name in ("disk_r", "disk_w")]
        requests = float(sum(map(sum, found)))
        # fsum is exact: the result of ``sum`` on floats depends on the version of Python.
        waited = fsum(fsum(map(mul, counts, _BUCKET_SECONDS)) for counts in found)
    return _Reading(clock, source, ready, (*(io or (0.0,) * 5), requests, waited, 0.0, 0.0))


def _continued(readings: Sequence[_Reading], clock: float, vdev: Vdev) -> list[_Reading]:
    """Return a vdev's readings of the window with a new one, oldest first; only that after a break.

    A break is another source, a counter that fell, a gap or a fault. At least two are kept, and the
    oldest one that completes the window.
    """
    if not readings:
        return [_reading(clock, vdev, None)]
    last = readings[-1]
    new, seconds = _reading(clock, vdev, last), clock - last.clock
    usual = last.clock - readings[-2].clock if len(readings) > 1 else seconds
    is_gap = seconds > GAP_SECONDS and seconds > GAP_FACTOR * usual
    if seconds <= 0 or is_gap or new.source != last.source:
        return [new]
    moved: list[float] = list(map(sub, new.counted, last.counted))
    most = ABSURD * (moved[0] if moved[0] > 0.01 else 0.01)
    if min(moved) < 0 or moved[3] > most or moved[4] > most:
        return [new]
    kept = [*readings, new]
    while (count := len(kept)) > 2 and (
        count > WINDOW_SAMPLES or clock - kept[1].clock >= WINDOW_SECONDS
    ):
        del kept[0]
    return kept


def _rates(old: _Reading, new: _Reading) -> IoRates:
    """Return rates between two readings of a vdev, or the source's own if both are the same.

    The kernel's own counters and clock are preferred. Latency is time waited per request
    (diskstats, else the midpoints of the latency histograms); busy is the share of time the block
    device had I/O in flight, None without diskstats.
    """
    clock, (_, io, devices, histograms), ready, counted = new
    if clock == old.clock:
        return ready
    read, write, reads, writes, latency, busy = ready
    time, did_read, did_write, got, put, requests, waited, in_flight, watched = map(
        sub, counted, old.counted
    )
    if time > 0 and (io or read is None):
        read, write, reads, writes = got / time, put / time, did_read / time, did_write / time
    if devices is not None or (latency is None and histograms):
        # diskstats counts every request; histograms only show which power of two each fell into.
        latency = waited / requests if requests > 0 else None
    if watched > 0:
        # Counted in ticks of the kernel, and for several paths each, so a share may exceed 1.
        busy = min(1.0, in_flight / watched)
    return IoRates(read, write, reads, writes, latency, busy)


DEVICE_METRICS = ("read", "write", "latency", "busy")
SCAN_METRICS = ("scan_rate", "issue_rate")
CAPACITY = 240
"""Values kept per metric: wider than any terminal's sparkline, four minutes at a sample per
second."""


class RateSeries:
    """Past rates of every vdev and scan of a pool.

    A pool of a thousand leaves keeps a million values, so they are stored in arrays, with nan for
    missing values.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._count = 0
        self._values: dict[str, dict[str, array[float]]] = {
            metric: {} for metric in (*DEVICE_METRICS, *SCAN_METRICS)
        }
        """Values of the last ``_count`` samples, oldest first, by metric and key."""
        self._times: deque[float] = deque(maxlen=capacity)

    def advance(self, at: float = nan, gone: Collection[str] = ()) -> None:
        """Begin the next sample, taken at ``at`` (epoch seconds), without vdevs that left for good.

        Keys without a ``put`` have no value in it.
        """
        self._times.append(at)
        self._count = min(self._capacity, self._count + 1)
        for series in self._values.values():
            for key in gone:
                series.pop(key, None)
            for values in series.values():
                values.append(nan)
                del values[: -self._capacity]

    def put(self, fields: Sequence[str], rates: Mapping[str, Sequence[float | None]]) -> None:
        """Store rates of vdevs or scans, by their keys, for the current sample.

        ``fields`` names the values of a row; those that are not metrics are ignored.
        """
        for at, metric in enumerate(fields):
            series = self._values.get(metric)
            if series is None:
                continue
            for key, row in rates.items():
                if (value := row[at]) is not None:
                    if key not in series:
                        series[key] = array("f", repeat(nan, self._count))
                    series[key][-1] = value

    def keys(self) -> tuple[str, ...]:
        """Return every key that has values."""
        every = (key for series in self._values.values() for key in series)
        return tuple(dict.fromkeys(every))

    def dump(self, key: str) -> list[list[float | None]]:
        """Return all values of a key, one list per metric, oldest first; for ``restore``."""
        metrics = SCAN_METRICS if key in self._values["issue_rate"] else DEVICE_METRICS
        nothing: list[float | None] = [None] * self._count
        return [self.tail(key, metric, self._capacity) or nothing for metric in metrics]

    def restore(self, columns: Mapping[str, Sequence[Sequence[float | None]]]) -> None:
        """Load values that were dumped, followed by a gap; only before the first sample."""
        longest = max((len(column) for rows in columns.values() for column in rows), default=0)
        self._count = min(self._capacity, longest + 1)
        for key, rows in columns.items():
            metrics = SCAN_METRICS if len(rows) == len(SCAN_METRICS) else DEVICE_METRICS
            for metric, column in zip(metrics, rows, strict=False):
                if any(value is not None for value in column):
                    values = array("f", repeat(nan, longest - len(column)))
                    values.extend(nan if value is None else value for value in (*column, None))
                    self._values[metric][key] = values[-self._capacity :]

    def tail(self, key: str, metric: str, count: int) -> list[float | None]:
        """Return the last ``count`` values of a key's metric, oldest first, with None for gaps.

        Metrics of a vdev: read and write (bytes/s), latency (seconds), busy; of a scan: scan_rate
        and issue_rate. Empty if there never was a value.
        """
        values = self._values[metric].get(key)
        if values is None or count <= 0:
            return []
        # Only nan differs from itself.
        return [None if value != value else value for value in values[-count:]]

    def peak(self, keys: Sequence[str], metrics: Sequence[str], count: int) -> float | None:
        """Return the largest of the last ``count`` values of these metrics and vdevs, if any."""
        peaks = [
            max((value for value in values[-count:] if value == value), default=nan)
            for metric in metrics
            for key in keys
            if count > 0 and (values := self._values[metric].get(key)) is not None
        ]
        return max((peak for peak in peaks if peak == peak), default=None)

    def ages(self, count: int) -> list[float]:
        """Return the seconds from each of the last ``count`` samples to the newest, oldest first.

        Samples of an earlier run have no entry.
        """
        times = list(self._times)[-count:] if count > 0 else []
        return [times[-1] - t for t in times]


class PoolRates:
    """Present and past rates of all vdevs of a pool."""

    def __init__(self) -> None:
        self.series = RateSeries()
        """Past rates, including scans; those of vdevs are over a single interval each."""
        self.now: Mapping[str, IoRates] = {}
        """Windowed rates of every vdev by its key (from ``pool.model.placed``).

        An interior vdev has the kernel's own counters if there are any, else the sum of its leaves;
        its latency is the mean of the leaves weighted by requests, its busy share that of the
        busiest leaf."""
        self._readings: dict[str, list[_Reading]] = {}
        """The last few samples of every vdev, oldest first, by key."""

    def push(self, at: float, clock: float, tree: dict[str, Placed]) -> None:
        """Add the vdevs of a sample at ``at`` (epoch seconds); ``clock`` in seconds never jumps."""
        before, self._readings = self._readings, {}
        rates, latest, seconds = dict[str, IoRates](), dict[str, IoRates](), dict[str, float]()
        for key, place in tree.items():
            readings = _continued(before.get(key, ()), clock, place.vdev)
            self._readings[key] = readings
            oldest, newest = readings[0], readings[-1]
            rates[key], seconds[key] = _rates(oldest, newest), clock - oldest.clock
            latest[key] = _rates(readings[-2:][0], newest)
        _fill_in(tree, rates, seconds)
        _fill_in(tree, latest, {})  # all cover the same interval: no times to compare
        self.series.advance(at, self.now.keys() - tree.keys())
        self.series.put(IoRates._fields, latest)
        self.now = rates


def _fill_in(
    tree: dict[str, Placed], rates: dict[str, IoRates], seconds: Mapping[str, float]
) -> None:
    """Fill in what interior vdevs lack, from their children, bottom up.

    Own counters that cover less time than the children's are ignored: they were reset when a device
    left. ``seconds`` is the time covered, by key.
    """
    below: dict[str, list[str]] = {}
    covered = dict(seconds)
    for key, depth, vdev, parent, _ in reversed(tree.values()):  # children come after their parents
        if (children := below.pop(key, None)) is not None:
            own = rates[key]
            longest = max([covered.get(child, 0.0) for child in children])
            if covered.get(key, 0.0) < longest:
                own, covered[key] = NONE, longest
            rates[key] = _combined(own, [rates[child] for child in children])
        if parent is not None and (depth > 1 or vdev.vclass not in APART):
            below.setdefault(parent, []).append(key)


def _combined(own: IoRates, below: list[IoRates]) -> IoRates:
    busy = max([r.busy for r in below if r.busy is not None], default=None)
    latency = own.latency
    if latency is None:
        waits = [
            ((each.read_ops or 0.0) + (each.write_ops or 0.0), each.latency)
            for each in below
            if each.latency is not None
        ]
        requests = fsum(count for count, _ in waits)
        latency = fsum(count * wait for count, wait in waits) / requests if requests > 0 else None
    if own.read is not None:
        return IoRates(own.read, own.write, own.read_ops, own.write_ops, latency, busy)
    sums: list[float | None] = []
    for column in list(zip(*below, strict=True))[:4]:
        known = [value for value in column if value is not None]
        sums.append(fsum(known) if known else None)
    read, write, reads, writes = sums
    return IoRates(read, write, reads, writes, latency, busy)


LATENCY_FACTOR = 3.0
"""Multiple of the siblings' median above which a leaf's latency stands out."""
LATENCY_FLOOR = 0.010
"""Below 10 ms, latency says more about caches than about the disk."""
BUSY_SHARE = 0.9
BUSY_GAP = 0.3
"""A leaf stands out if it is busy for BUSY_SHARE of the time, and BUSY_GAP above the siblings'
median."""


def slow_siblings(rows: Sequence[Placed], rates: Mapping[str, IoRates]) -> dict[str, str]:
    """Return keys of leaves that stand out, with why: ``61ms, siblings 8ms`` or ``97 % busy, …``.

    A leaf stands out if its latency is over three times the median of the other leaves of the same
    top-level vdev (and over 10 ms), or if it is at least 90 % busy and 30 points above their
    median. A device that is being filled is written to instead of read, so it is not compared with
    others.
    """
    by_top: dict[str, list[str]] = {}
    for key, _, vdev, _, top in rows:
        filled = vdev.resilvering or vdev.awaiting_resilver
        data = vdev.state == "ONLINE" and vdev.vclass in DATA
        if top is not None and not vdev.children and data and not filled:
            by_top.setdefault(top, []).append(key)
    found: dict[str, str] = {}
    for leaves in by_top.values():
        known = {leaf: rates[leaf] for leaf in leaves if leaf in rates}
        waits = sorted([each.latency for each in known.values() if each.latency is not None])
        shares = sorted([each.busy for each in known.values() if each.busy is not None])
        for leaf, own in known.items() if len(leaves) > 2 else ():
            wait, busy = own.latency or 0.0, own.busy or 0.0
            if wait >= LATENCY_FLOOR and wait > LATENCY_FACTOR * (usual := _usual(waits, wait)):
                found[leaf] = f"{units.latency(wait)}, siblings {units.latency(usual)}"
            elif busy >= BUSY_SHARE and busy - (usual := _usual(shares, busy)) >= BUSY_GAP:
                found[leaf] = f"{units.percent(busy)} busy, siblings {units.percent(usual)}"
    return found


def _usual(values: Sequence[float], own: float) -> float:
    """Return the median of sorted values without ``own``, one of them; infinite without others."""
    rest, place = len(values) - 1, bisect_left(values, own)
    if rest == 0:
        return inf
    low, high = (rest - 1) // 2, rest // 2
    return (values[low + (low >= place)] + values[high + (high >= place)]) / 2


MOST_DATASETS = 3
"""Most datasets that are named."""
DATASETS_KEPT = 600.0
"""Seconds after which rates of datasets are dropped if no newer reading came. It is longer than the
pause between readings that take the kernel seconds (``DatasetMeter``)."""
_Datasets = Mapping[tuple[str, str], IoCounters]
"""Counters of datasets, by name and time of mounting."""


class DatasetTracker:
    """Rates of logical I/O of datasets and volumes while a scan runs; windows are as of devices."""

    def __init__(self) -> None:
        self.busiest: tuple[DatasetLoad, ...] | None = None
        """Datasets with the most logical I/O, that first; None if unknown, or without a scan."""
        self._readings: list[tuple[float, _Datasets]] = []
        """Steady clock in seconds and counters, oldest first."""

    def push(self, clock: float, counters: _Datasets, is_scanning: bool) -> None:
        """Add the counters of a sample, if it has any, at ``clock`` (seconds)."""
        kept = self._readings
        if not is_scanning or (kept and not 0 <= clock - kept[-1][0] <= DATASETS_KEPT):
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
                nlargest(
                    MOST_DATASETS, self._loads(), key=lambda load: load.read_rate + load.write_rate
                )
            )

    def _loads(self) -> Iterator[DatasetLoad]:
        """Yield the rates of each dataset that was mounted before the newest reading."""
        for key, new in self._readings[-1][1].items():
            old = next(found[key] for _, found in self._readings if key in found)
            seconds, *counted = (after - before for before, after in zip(old, new, strict=True))
            if seconds > 0 and min(counted) >= 0:
                reads, writes, read, written = (count / seconds for count in counted)
                yield DatasetLoad(key[0], read, written, reads, writes)
