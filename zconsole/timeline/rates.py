"""Windowed I/O rates of a pool's vdevs from their cumulative counters.

Bytes and operations come from the kernel's own counters against the kernel's own clock, else
from rates a source gave ready-made, else from diskstats. A counter that fell, a device that was
swapped or a clock that jumped restarts the window: for one sample there is no rate, never an
absurd one.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import mul, sub
from typing import NamedTuple

from zconsole.pool.model import IoRates, Vdev

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


def _added(counts: Sequence[int], seconds: Sequence[float]) -> float:
    total: float = sum(map(mul, counts, seconds))
    return total


_sumprod: Callable[[Sequence[int], Sequence[float]], float] = getattr(math, "sumprod", _added)
"""Python's own from 3.12 on, in a third of the time."""

Numbers = Sequence[float]
"""What is counted of a vdev: the ``IoCounters``, or what devices counted in their place; requests,
and seconds they waited in all; seconds that the devices were busy. 0 for what nobody counts."""
Source = tuple[str | None, bool, tuple[str, ...] | None, bool]
"""What counts a vdev's I/O: its path, whether it has ``IoCounters``, the devices of its
``BlockCounters``; without any, whether there are histograms in their place."""
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

    def of(self, place: int) -> Numbers:
        """Those of one vdev."""
        return self.counted[_WIDTH * place : _WIDTH * (place + 1)]


class RateWindows:
    """The last few samples of all vdevs of a pool.

    Nearly all of them have counted since the oldest, and their rates are worked out in one go: one
    by one, ten thousand took four times as long (tests/bench/tick.py).
    """

    def __init__(self) -> None:
        self._rows: deque[_Row] = deque()
        """Oldest first."""
        self._keys: list[str] = []
        self._sources: list[Source | None] = []
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
        sources: list[Source | None] = [
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
            same = source is not None and source[:3] == (vdev.path, True, None)
            yield last.of(place) if same else _ZEROS

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
        self._sources = [None if n is None else self._sources[n] for n in there]
        self._late = {key: self._late[key] for key in keys if key in self._late}
        self._keys = keys

    def _swapped(self, sources: list[Source | None]) -> Iterator[int]:
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
        new = self._rows[-1]
        if old is new:
            return dict(zip(self._keys, self._ready, strict=True))
        found = self._at_once(old, new)
        odd = {place: old for place, rates in enumerate(found) if rates is None}
        if late := {key: n for key, n in self._late.items() if n > old.number}:
            begun = {row.number: row for row in self._rows}
            places = enumerate(self._keys)
            odd |= {place: begun[late[key]] for place, key in places if key in late}
        for place, first in odd.items():
            found[place] = self._alone(place, first)
        return dict(zip(self._keys, found, strict=True))  # type: ignore[arg-type]

    def _at_once(self, old: _Row, new: _Row) -> list[IoRates | None]:
        """The rates of all vdevs; None for those that are not like most."""
        moved = list(map(sub, new.counted, old.counted))
        columns = [moved[column::_WIDTH] for column in range(_WIDTH)]
        length = new.clock - old.clock
        devices = [source and source[2] and len(source[2]) for source in self._sources]
        return [
            IoRates(
                read / time,
                written / time,
                reads / time,
                writes / time,
                waited / requests if requests > 0 else None,
                (share if (share := busy / length / disks) < 1.0 else 1.0) if disks else None,
            )
            if time > 0 and ready is NONE
            else None
            for time, reads, writes, read, written, requests, waited, busy, disks, ready in zip(
                *columns, devices, self._ready, strict=True
            )
        ]

    def _alone(self, place: int, old: _Row) -> IoRates:
        """The rates of one vdev since a row."""
        new, ready, source = self._rows[-1], self._ready[place], self._sources[place]
        if old is new or source is None:
            return ready
        moved = list(map(sub, new.of(place), old.of(place)))
        return _rates(new.clock - old.clock, moved, source, ready)


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


def _rates(seconds: float, moved: Numbers, source: Source, ready: IoRates) -> IoRates:
    """Rates from what a vdev's numbers moved by; ``ready`` are the source's own.

    Latency is time waited per request (diskstats, else the latency histograms' midpoints); busy
    is the share of time the block device had I/O in flight, None without diskstats.
    """
    _, io, devices, histograms = source
    read, write, reads, writes, latency, busy = ready
    if moved[0] > 0 and (io or read is None):
        # The kernel's own counters against its own clock, where there are any.
        time, *counts = moved[:5]
        reads, writes, read, write = (count / time for count in counts)
    if devices is not None:
        # diskstats counts every request; histograms only say which power of two each fell into.
        latency = _mean_wait(moved)
        # In flight time is counted in ticks of the kernel, so a share may come out above 1.
        busy = min(1.0, moved[7] / seconds / (len(devices) or 1))
    elif latency is None and histograms:
        latency = _mean_wait(moved)
    return IoRates(read, write, reads, writes, latency, busy)


def _mean_wait(moved: Numbers) -> float | None:
    """Seconds a request; None without one."""
    return moved[6] / moved[5] if moved[5] > 0 else None


def _histogram_wait(histograms: Mapping[str, Sequence[int]]) -> tuple[float, float]:
    """Requests and the seconds they waited in all."""
    # Each is asked for once: what came packed is unpacked then, also to see whether it is there.
    each = map(histograms.get, ("disk_r", "disk_w"))
    found = [counts for counts in each if counts is not None]
    return float(sum(map(sum, found))), sum(map(_waited, found), 0.0)


def _waited(counts: Sequence[int]) -> float:
    """Seconds that the requests of a histogram waited in all."""
    return _sumprod(counts[: len(_BUCKET_SECONDS)], _BUCKET_SECONDS[: len(counts)])
