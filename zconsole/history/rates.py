"""Windowed I/O rates of one vdev from its cumulative counters.

Bytes and operations come from the kernel's own counters against the kernel's own clock, else
from rates a source gave ready-made, else from diskstats. A counter that fell, a device that was
swapped or a clock that jumped restarts the window: for one sample there is no rate, never an
absurd one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import mul, sub
from struct import Struct

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

Wait = tuple[float, float]
"""Requests, and seconds they waited in all."""
Moved = tuple[float | None, float | None, float | None, float | None]
"""Read, write, read_ops and write_ops of ``IoRates``."""
Source = tuple[str | None, bool, tuple[str, ...] | None, Struct]
"""What counts a vdev's I/O: its path, whether it has ``IoCounters``, the devices of its
``BlockCounters``, and how a row of its numbers is packed."""
NONE = IoRates()

_ROWS = tuple(Struct(f"{n}d") for n in range(10))
"""Rows of so many numbers: the clock; the ``IoCounters``, or what devices counted in their place; a
``Wait``; seconds that the devices were busy. Without a source, the last three are missing."""
_CLOCK = _ROWS[1]


class RateWindow:
    """The last few samples of one vdev's counters, packed: as objects they take ten times the room.

    The numbers are exact up to 2^53, and beyond by far enough for a rate.
    """

    __slots__ = ("_kept", "_ready", "_source", "span", "windowed")

    def __init__(self) -> None:
        self._kept = bytearray()
        """Rows of the same source, oldest first."""
        self._source: Source = None, False, None, _CLOCK
        self.windowed = NONE
        """Over the window, for the eye."""
        self._ready = NONE
        self.span = 0.0
        """Seconds that ``windowed`` covers."""

    def add(self, clock: float, vdev: Vdev) -> None:
        """Take a sample in; ``clock`` in seconds that never jump."""
        new, kept = _numbers(clock, vdev), self._kept
        row = _ROWS[len(new)]
        source = vdev.path, vdev.io is not None, vdev.block and vdev.block[0], row
        if kept and (source != self._source or not self._continues(new)):
            # Another disk in the same place, or restarted counters: no difference is a rate.
            kept.clear()
        self._source = source
        kept += row.pack(*new)
        while len(kept) > WINDOW_SAMPLES * row.size or (
            len(kept) > 2 * row.size and clock - _clock(kept, row.size) >= WINDOW_SECONDS
        ):
            del kept[: row.size]
        self._ready = vdev.rates or NONE
        self.span = clock - _clock(kept, 0)
        self.windowed = self._since(0, new)

    @property
    def latest(self) -> IoRates:
        """Over the last interval alone, for a sparkline."""
        row = self._source[-1]
        end = len(self._kept) - row.size
        return self._since(end - row.size, row.unpack_from(self._kept, end))

    def _since(self, at: int, new: Sequence[float]) -> IoRates:
        """Rates from the row at ``at`` to the newest."""
        row = self._source[-1]
        if len(self._kept) == row.size:
            return self._ready
        moved = list(map(sub, new, row.unpack_from(self._kept, at)))
        return _rates(moved, self._source, self._ready)

    def _continues(self, new: Sequence[float]) -> bool:
        """Whether a row carries on from those before: no fall, no gap, no fault."""
        _, io, devices, row = self._source
        kept, end = self._kept, len(self._kept) - row.size
        moved = list(map(sub, new, row.unpack_from(kept, end)))
        seconds = moved[0]
        if seconds <= 0 or min(moved) < 0:
            return False
        if seconds > GAP_SECONDS:
            usual = _clock(kept, end) - _clock(kept, end - row.size) if end else seconds
            if seconds > GAP_FACTOR * usual:
                return False
        counted = io or devices is not None
        return not counted or max(moved[4], moved[5]) <= ABSURD * max(moved[1], 0.01)


def _numbers(clock: float, vdev: Vdev) -> tuple[float, ...]:
    """A row of ``_ROWS``."""
    if vdev.block is None:
        return (clock, *(vdev.io or ()), *(_histogram_wait(vdev.histograms) or ()))
    _, reads, read, reading, writes, written, writing, busy = vdev.block
    counted = vdev.io or (clock, reads, writes, read, written)
    return (clock, *counted, reads + writes, reading + writing, busy)


def _clock(kept: bytearray, at: int) -> float:
    """The time of the row at ``at``."""
    clock: float = _CLOCK.unpack_from(kept, at)[0]
    return clock


def _rates(moved: Sequence[float], source: Source, ready: IoRates) -> IoRates:
    """Rates from what a row's numbers moved by; ``ready`` are the source's own.

    Latency is time waited per request (diskstats, else the latency histograms' midpoints); busy
    is the share of time the block device had I/O in flight, None without diskstats.
    """
    _, io, devices, _ = source
    found: Moved = ready.read, ready.write, ready.read_ops, ready.write_ops
    counted = io or devices is not None
    if counted and moved[1] > 0 and (io or ready.read is None):
        # The kernel's own counters against its own clock, where there are any.
        seconds, read_ops, write_ops, read, written = moved[1:6]
        found = read / seconds, written / seconds, read_ops / seconds, write_ops / seconds
    latency, busy, load = ready.latency, ready.busy, moved[6:] if counted else moved[1:]
    if devices is not None and moved[0] > 0:
        # diskstats counts every request; histograms only say which power of two each fell into.
        latency = _mean_wait(load)
        # In flight time is counted in ticks of the kernel, so a share may come out above 1.
        busy = min(1.0, load[2] / moved[0] / (len(devices) or 1))
    elif latency is None and load:
        latency = _mean_wait(load)
    return IoRates(*found, latency, busy)


def _mean_wait(load: Sequence[float]) -> float | None:
    """Seconds a request; None without one."""
    return load[1] / load[0] if load[0] > 0 else None


def _histogram_wait(histograms: Mapping[str, Sequence[int]]) -> Wait | None:
    """Requests and the seconds they waited in all; None where the source has no histograms."""
    # Each is asked for once: what came packed is unpacked then, also to see whether it is there.
    each = map(histograms.get, ("disk_r", "disk_w"))
    found = [counts for counts in each if counts is not None]
    if not found:
        return None
    requests = sum(map(sum, found))
    return float(requests), sum(map(_waited, found))


def _waited(counts: Sequence[int]) -> float:
    """Seconds that the requests of a histogram waited in all."""
    return _sumprod(counts[: len(_BUCKET_SECONDS)], _BUCKET_SECONDS[: len(counts)])
