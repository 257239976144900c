"""I/O rates of a pool's vdevs: windowed, from their cumulative counters, and past ones.

Bytes and operations come from the kernel's own counters against the kernel's own clock, else
from rates a source gave ready-made, else from diskstats. A counter that fell, a device that was
swapped or a clock that jumped restarts the window: for one sample there is no rate, never an
absurd one. Past rates of vdevs and scans stand in bounded tables, for sparklines.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from math import nan
from operator import itemgetter, mul, sub
from typing import NamedTuple

from zconsole.pool.model import IoRates, Vdev
from zconsole.pool.topology import Placed

WINDOW_SECONDS = 5.0
"""About one transaction group: writes come in bursts that long (``zfs_txg_timeout``)."""
WINDOW_SAMPLES = 6
GAP_FACTOR = 10.0
GAP_SECONDS = 30.0
"""A pause in sampling this long, and ten times the last one, is a suspend or an export."""
ABSURD = 1e12
"""Bytes a second beyond which a delta is a counter fault."""

_BUCKET_SECONDS = tuple(1.5 * 2.0**i / 1e9 for i in range(64))
"""Midpoint of bucket i, which counts requests of 2^i to 2^(i+1) ns."""

Numbers = Sequence[float]
"""What is counted of a vdev: the ``IoCounters``, or what devices counted in their place; requests,
and seconds they waited in all; seconds that the devices were busy. 0 for what nobody counts."""
Source = tuple[str | None, bool, tuple[str, ...] | None, bool]
"""What counts a vdev's I/O: its path, whether it has ``IoCounters``, the devices of its
``BlockCounters``; without any, whether there are histograms in their place."""
NEW: Source = ("", False, (), False)
"""That of a vdev not seen before."""
NONE = IoRates()

_WIDTH = 8
"""How many ``Numbers``."""
_NOTHING = (0.0,) * 5
_ZEROS = (0.0,) * _WIDTH


class _Row(NamedTuple):
    """One sample: the ``Numbers`` of every vdev, one after the other.

    As objects they take ten times the room. They are exact up to 2^53, and beyond by far enough
    for a rate.
    """

    number: int
    """Which sample it is."""
    clock: float
    counted: array[float]

    def of(self, place: int) -> array[float]:
        """Those of one vdev."""
        return self.counted[_WIDTH * place : _WIDTH * (place + 1)]


class RateWindows:
    """The last few samples of all vdevs of a pool."""

    def __init__(self) -> None:
        self._rows: deque[_Row] = deque()
        """Oldest first."""
        self._keys: list[str] = []
        self._sources: list[Source] = []
        self._ready: list[IoRates] = []
        self._late: dict[str, int] = {}
        """The vdevs whose window begins after the oldest row: the number of the row it does."""
        self._number = 0

    def add(self, clock: float, vdevs: Mapping[str, Vdev]) -> None:
        """Take a sample in: all vdevs by key; ``clock`` in seconds that never jump."""
        self._align(list(vdevs))
        every = vdevs.values()
        past = self._past(every) if self._rows else repeat(_ZEROS)
        counted = array("d", chain.from_iterable(map(_numbers, repeat(clock), every, past)))
        sources: list[Source] = [
            (v.path, v.io is not None, v.block[0], False)
            if v.block is not None
            else (v.path, v.io is not None, None, bool(v.histograms))
            for v in every
        ]
        self._ready = [v.rates or NONE for v in every]
        self._number += 1
        new = _Row(self._number, clock, counted)
        broken = set(self._swapped(sources)).union(self._broken(new))
        self._sources = sources
        self._late |= {self._keys[place]: new.number for place in broken}
        self._rows.append(new)
        self._trim()

    def _past(self, vdevs: Iterable[Vdev]) -> Iterator[Numbers]:
        """The last ``Numbers`` of each vdev; zeros where something else counted its waits."""
        last = self._rows[-1]
        for place, (vdev, source) in enumerate(zip(vdevs, self._sources, strict=True)):
            yield last.of(place) if source[:3] == (vdev.path, True, None) else _ZEROS

    def windowed(self) -> dict[str, IoRates]:
        """Rates over the window by key, for the eye."""
        return self._since(self._rows[0])

    def latest(self) -> dict[str, IoRates]:
        """Over the last interval alone, for a sparkline."""
        return self._since(self._rows[max(0, len(self._rows) - 2)])

    def short(self) -> dict[str, float]:
        """Seconds that ``windowed`` covers for those for which it covers less than for others."""
        clocks = {row.number: row.clock for row in self._rows}
        return {key: self._rows[-1].clock - clocks[n] for key, n in self._late.items()}

    def _align(self, keys: list[str]) -> None:
        """Put the rows into the order of these keys."""
        if keys == self._keys:
            return
        places = {key: place for place, key in enumerate(self._keys)}
        there = [places.get(key) for key in keys]
        empty = array("d", bytes(8 * _WIDTH))
        self._rows = deque(
            row._replace(
                counted=array("d", chain(*(empty if n is None else row.of(n) for n in there)))
            )
            for row in self._rows
        )
        self._sources = [NEW if n is None else self._sources[n] for n in there]
        self._late = {key: self._late[key] for key in keys if key in self._late}
        self._keys = keys

    def _swapped(self, sources: list[Source]) -> Iterator[int]:
        """Where something else counts than before: no difference is a rate."""
        if sources != self._sources:
            pairs = zip(self._sources, sources, strict=True)
            yield from (place for place, (old, new) in enumerate(pairs) if old != new)

    def _broken(self, new: _Row) -> Iterator[int]:
        """Where the newest row does not carry on from the last one: a fall, a gap, a fault."""
        if not self._rows:
            return
        last = self._rows[-1]
        seconds = new.clock - last.clock
        moved = list(map(sub, new.counted, last.counted))
        if seconds <= 0:
            yield from range(len(self._keys))
        elif seconds > GAP_SECONDS and len(self._rows) > 1:
            usual, late = last.clock - self._rows[-2].clock, self._late
            gap = seconds > GAP_FACTOR * usual
            every = enumerate(self._keys if gap else ())
            yield from (place for place, key in every if late.get(key, 0) < last.number)
        if moved and min(moved) < 0:
            yield from (place // _WIDTH for place, each in enumerate(moved) if each < 0)
        leaps = zip(moved[::_WIDTH], moved[3::_WIDTH], moved[4::_WIDTH], strict=True)
        for place, (time, read, written) in enumerate(leaps):
            if (read if read > written else written) > ABSURD * (time if time > 0.01 else 0.01):
                yield place

    def _trim(self) -> None:
        """Let go of what is in no window."""
        rows, clock = self._rows, self._rows[-1].clock
        oldest = min(self._late.values(), default=0) if len(self._late) == len(self._keys) else 0
        while (
            rows[0].number < oldest
            or len(rows) > WINDOW_SAMPLES
            or (len(rows) > 2 and clock - rows[1].clock >= WINDOW_SECONDS)
        ):
            rows.popleft()
        if self._late:
            first = rows[0].number
            self._late = {key: n for key, n in self._late.items() if n > first}

    def _since(self, old: _Row) -> dict[str, IoRates]:
        """Rates from a row, or the later one where a window begins, to the newest, by key."""
        new, counted = self._rows[-1], old.counted
        # Nearly all count as the oldest row does: a call for each would take four times as long.
        lengths = [new.clock - old.clock] * len(self._keys)
        if late := {key: number for key, number in self._late.items() if number > old.number}:
            counted, rows = counted[:], {row.number: row for row in self._rows}
            for place, key in enumerate(self._keys):
                if key in late:
                    first = rows[late[key]]
                    counted[_WIDTH * place : _WIDTH * (place + 1)] = first.of(place)
                    lengths[place] = new.clock - first.clock
        moved = list(map(sub, new.counted, counted))
        columns = [moved[column::_WIDTH] for column in range(_WIDTH)]
        counts = zip(*columns, strict=True)
        every = zip(self._keys, lengths, self._sources, self._ready, counts, strict=True)
        return {
            key: IoRates(
                read / time,
                written / time,
                reads / time,
                writes / time,
                waited / requests if requests > 0 else None,
                min(1.0, busy / length / len(source[2])) if source[2] else None,
            )
            if time > 0 and ready is NONE
            else _odd(
                length,
                source,
                ready,
                (time, reads, writes, read, written, requests, waited, busy),
            )
            for key, length, source, ready, (
                time,
                reads,
                writes,
                read,
                written,
                requests,
                waited,
                busy,
            ) in every
        }


def _numbers(clock: float, vdev: Vdev, before: Numbers) -> Numbers:
    """What is counted of a vdev; ``before``: as of the sample before, zeros without one."""
    io, block = vdev.io, vdev.block
    if block is None:
        if io is not None and before[0] and io[1:3] == (before[1], before[2]):
            return (*io, before[5], before[6], 0.0)  # no request since, so none in the histograms
        wait = _histogram_wait(vdev.histograms) if vdev.histograms else (0.0, 0.0)
        return (*(io or _NOTHING), *wait, 0.0)
    _, reads, read, reading, writes, written, writing, busy = block
    counted = io or (clock, reads, writes, read, written)
    return (*counted, reads + writes, reading + writing, busy)


def _odd(seconds: float, source: Source, ready: IoRates, moved: Numbers) -> IoRates:
    """Rates of a vdev of which the source gives some, ``ready``, or whose own clock stood still.

    Latency is time waited per request (diskstats, else the latency histograms' midpoints); busy
    is the share of time the block device had I/O in flight, None without diskstats.
    """
    _, io, devices, histograms = source
    read, write, reads, writes, latency, busy = ready
    if not seconds:
        return ready
    time, *counts, requests, waited, in_flight = moved
    if time > 0 and (io or read is None):
        # The kernel's own counters against its own clock, where there are any.
        reads, writes, read, write = (count / time for count in counts)
    if devices is not None or (latency is None and histograms):
        # diskstats counts every request; histograms only say which power of two each fell into.
        latency = waited / requests if requests > 0 else None
    if devices is not None:
        # In flight time is counted in ticks of the kernel, so a share may come out above 1.
        busy = min(1.0, in_flight / seconds / (len(devices) or 1))
    return IoRates(read, write, reads, writes, latency, busy)


def _histogram_wait(histograms: Mapping[str, Sequence[int]]) -> tuple[float, float]:
    """Requests and the seconds they waited in all."""
    # Each is asked for once: what came packed is unpacked then, also to see whether it is there.
    found = [histograms.get(name) or () for name in ("disk_r", "disk_w")]
    waited = sum(sum(map(mul, counts, _BUCKET_SECONDS)) for counts in found)
    return float(sum(map(sum, found))), float(waited)


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


NO_DATA = ("cache", "spare")
"""Classes whose I/O is not part of the pool's own sum."""


class PoolRates:
    """The rates of all vdevs of a pool, now and before."""

    def __init__(self) -> None:
        self.series = RateSeries()
        """Past ones, of scans too: a vdev's over each interval alone."""
        self.now: Mapping[str, IoRates] = {}
        """Windowed rates of every vdev by its key (from ``pool.topology.placed``).

        An interior vdev has the kernel's own counters where there are any, else the sum of its
        leaves; its latency is the leaves' mean by requests, its busy share the busiest leaf's.
        """
        self._windows = RateWindows()

    def push(self, t: float, clock: float, tree: dict[str, Placed]) -> None:
        """Take in the vdevs of a sample; ``t`` in epoch seconds, ``clock`` never jumps."""
        self.series.forget(self.now.keys() - tree.keys())
        self._windows.add(clock, {key: place.vdev for key, place in tree.items()})
        rates, latest = self._windows.windowed(), self._windows.latest()
        _fill_in(tree, rates, self._windows.short())
        _fill_in(tree, latest, {})  # one interval long for all: there is no span to compare
        self.series.advance(t)
        self.series.put_devices(latest)
        self.now = rates


def _fill_in(
    tree: dict[str, Placed], rates: dict[str, IoRates], short: Mapping[str, float]
) -> None:
    """Give every interior vdev what it lacks, from its children, bottom up.

    It lacks all that its own counters tell over a shorter time than its children's: they fell when
    a device left, and started again. ``short``: seconds covered where it is less than for most.
    """
    below: dict[str, list[str]] = {}
    covered = dict(short)
    for key, depth, vdev, parent, _ in reversed(tree.values()):  # children behind their parents
        if (children := below.pop(key, None)) is not None:
            own = rates[key]
            if covered:
                longest = max([covered.get(child, math.inf) for child in children])
                own = own if covered.get(key, math.inf) >= longest else NONE
                covered[key] = max(covered.get(key, math.inf), longest)
            rates[key] = _combined(own, [rates[child] for child in children])
        if parent is not None and (depth > 1 or vdev.vclass not in NO_DATA):
            below.setdefault(parent, []).append(key)


def _combined(own: IoRates, below: list[IoRates]) -> IoRates:
    busy = max([r.busy for r in below if r.busy is not None], default=None)
    latency = own.latency if own.latency is not None else _mean_latency(below)
    if own.read is not None:
        return IoRates(own.read, own.write, own.read_ops, own.write_ops, latency, busy)
    return IoRates(
        read=_sum(r.read for r in below),
        write=_sum(r.write for r in below),
        read_ops=_sum(r.read_ops for r in below),
        write_ops=_sum(r.write_ops for r in below),
        latency=latency,
        busy=busy,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _mean_latency(below: list[IoRates]) -> float | None:
    requests = waited = 0.0
    for _, _, reads, writes, latency, _ in below:
        if latency is not None:
            count = (reads or 0.0) + (writes or 0.0)
            requests += count
            waited += count * latency
    return waited / requests if requests > 0 else None
