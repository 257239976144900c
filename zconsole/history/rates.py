"""Windowed I/O rates of one vdev from its cumulative counters.

Bytes and operations come from the kernel's own counters against the kernel's own clock, else
from rates a source gave ready-made, else from diskstats. A counter that fell, a device that was
swapped or a clock that jumped restarts the window: for one sample there is no rate, never an
absurd one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import NamedTuple

from zconsole.pool.model import BlockCounters, IoCounters, IoRates, Vdev

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
Counters = IoCounters | BlockCounters
NONE = IoRates()


class CounterSnapshot(NamedTuple):
    """What the rates of one vdev need to remember of one sample."""

    clock: float
    io: IoCounters | None
    block: BlockCounters | None
    wait: Wait | None


class RateWindow:
    """The last few samples of one vdev's counters."""

    __slots__ = ("_kept", "_ready", "path", "span", "windowed")

    def __init__(self) -> None:
        self._kept: deque[CounterSnapshot] = deque(maxlen=WINDOW_SAMPLES)
        self.path: str | None = None
        self.windowed = NONE
        """Over the window, for the eye."""
        self._ready = NONE
        self.span = 0.0
        """Seconds that ``windowed`` covers."""

    def add(self, clock: float, vdev: Vdev) -> None:
        """Take a sample in; ``clock`` in seconds that never jump."""
        wait = None if vdev.block else _histogram_wait(vdev.histograms)
        new = CounterSnapshot(clock, vdev.io, vdev.block, wait)
        kept = self._kept
        if kept and (vdev.path != self.path or not _continues(kept, new)):
            # Another disk in the same place, or restarted counters: no difference is a rate.
            kept.clear()
        self.path = vdev.path
        kept.append(new)
        while len(kept) > 2 and clock - kept[1].clock >= WINDOW_SECONDS:
            kept.popleft()
        self._ready = vdev.rates or NONE
        self.span = clock - kept[0].clock
        self.windowed = self._since(0)

    @property
    def latest(self) -> IoRates:
        """Over the last interval alone, for a sparkline."""
        return self._since(-2)

    def _since(self, place: int) -> IoRates:
        kept = self._kept
        return between(kept[place], kept[-1], self._ready) if len(kept) > 1 else self._ready


def between(old: CounterSnapshot, new: CounterSnapshot, ready: IoRates = NONE) -> IoRates:
    """Rates between two samples of the same device; ``ready`` are the source's own.

    Latency is time waited per request (diskstats, else the latency histograms' midpoints); busy
    is the share of time the block device had I/O in flight, None without diskstats.
    """
    before, io, was, waited = old
    now, io_now, block, waited_now = new
    seconds = now - before
    moved: Moved | None = None
    if io is not None and io_now is not None and io_now.timestamp > io.timestamp:
        # The kernel's own counters against its own clock.
        moved = _per_second(io, io_now, io_now.timestamp - io.timestamp)
    latency, busy = ready.latency, ready.busy
    if was is not None and block is not None and seconds > 0:
        if moved is None and ready.read is None:
            moved = _per_second(was, block, seconds)
        # diskstats counts every request; histograms only say which power of two each fell into.
        latency, busy = _block_load(was, block, seconds)
    elif latency is None and waited is not None and waited_now is not None:
        latency = _mean_wait(waited, waited_now)
    if moved is None:
        moved = ready.read, ready.write, ready.read_ops, ready.write_ops
    return IoRates(*moved, latency, busy)


def _per_second(a: Counters, b: Counters, seconds: float) -> Moved:
    return (
        (b.read_bytes - a.read_bytes) / seconds,
        (b.write_bytes - a.write_bytes) / seconds,
        (b.read_ops - a.read_ops) / seconds,
        (b.write_ops - a.write_ops) / seconds,
    )


def _block_load(
    a: BlockCounters, b: BlockCounters, seconds: float
) -> tuple[float | None, float | None]:
    """Seconds a request (None without one), and the mean share of time its devices were busy."""
    _, reads, _, reading, writes, _, writing, working = a
    names, reads_now, _, reading_now, writes_now, _, writing_now, working_now = b
    requests = reads_now - reads + writes_now - writes
    waited = reading_now - reading + writing_now - writing
    busy = (working_now - working) / seconds / (len(names) or 1)
    # In flight time is counted in ticks of the kernel, so a share may come out above 1.
    return (waited / requests if requests > 0 else None), (busy if busy < 1.0 else 1.0)


def _histogram_wait(histograms: Mapping[str, Sequence[int]]) -> Wait | None:
    """Requests and the seconds they waited in all; None where the source has no histograms."""
    found = [histograms[name] for name in ("disk_r", "disk_w") if name in histograms]
    if not found:
        return None
    requests = sum(sum(counts) for counts in found)
    return float(requests), sum(map(_waited, found))


def _waited(counts: Sequence[int]) -> float:
    """Seconds that the requests of a histogram waited in all."""
    return _sumprod(counts[: len(_BUCKET_SECONDS)], _BUCKET_SECONDS[: len(counts)])


def _mean_wait(old: Wait, new: Wait) -> float | None:
    requests = new[0] - old[0]
    return (new[1] - old[1]) / requests if requests > 0 else None


def _continues(kept: Sequence[CounterSnapshot], new: CounterSnapshot) -> bool:
    """Whether a sample carries on from the window: same devices, no fall, no gap, no fault."""
    old = kept[-1]
    seconds = new.clock - old.clock
    usual = old.clock - kept[-2].clock if len(kept) > 1 else seconds
    if seconds <= 0 or (seconds > GAP_SECONDS and seconds > GAP_FACTOR * usual):
        return False
    return (
        _io_continues(old.io, new.io)
        and _block_continues(old.block, new.block, seconds)
        and (old.wait is None or new.wait is None or old.wait[0] <= new.wait[0])
    )


def _io_continues(old: IoCounters | None, new: IoCounters | None) -> bool:
    if old is None or new is None:
        return old is new
    began, reads, writes, read, written = old
    now, reads_now, writes_now, read_now, written_now = new
    if now < began or reads_now < reads or writes_now < writes:
        return False
    most = ABSURD * max(now - began, 0.01)
    return 0 <= read_now - read <= most and 0 <= written_now - written <= most


def _block_continues(old: BlockCounters | None, new: BlockCounters | None, seconds: float) -> bool:
    if old is None or new is None:
        return old is new
    names, reads, read, reading, writes, written, writing, busy = old
    names_now, reads_now, read_now, reading_now, *others = new
    writes_now, written_now, writing_now, busy_now = others
    if names_now != names or reads_now < reads or writes_now < writes:
        return False
    if reading_now < reading or writing_now < writing or busy_now < busy:
        return False
    most = ABSURD * seconds
    return 0 <= read_now - read <= most and 0 <= written_now - written <= most
