"""The controller of the autopilot: decides how fast scans may go, without clock, files or kernel.

A level stands for one setting of all tunables of scans: 0 is how they were found, below it they go
towards the gentle preset, above it towards the faster one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from zconsole.tunables.catalog import BY_NAME

GENTLEST, FASTEST = -4.0, 6.0
STEP = 0.5
"""Distance between the levels that are set.

The wanted level must differ by as much from the one set: so the noise of a percentile alone rarely
reverses the direction.
"""
INTERVAL = 10.0
"""Seconds between two decisions: two transaction groups (``zfs_txg_timeout``)."""
WINDOW = 60.0
"""Seconds of requests measured together: the p95 of a shorter time is noise."""
AIM = 1.05
"""Share of the target that is aimed at.

With this, and the noise of a minute's p95, 9 of 10 minutes stay within 1.2 times the target.
"""
NEAR = 0.04
"""Distance from the aim (natural logarithm) within which nothing changes."""
GAIN = 20.0
"""Levels per decision and squared distance of the latency from the aim.

The distance is that of natural logarithms, beyond NEAR. The p95 of a minute has a noise of about
6 %, and is half a minute old. With the square, noise changes little, and a growing load is followed
before minutes are lost.
"""
RISE, FALL = 0.6, 1.5
"""Most levels up and down per decision: their full effect shows only after WINDOW."""
FORGET = 2400.0
"""Seconds in which a turn downwards is forgotten to 1/e.

Rises are divided by the third power of the turns remembered. Where a single step leads from below
the target to far above it, this leaves six turns an hour in the end.
"""
FEW = 20
"""Fewest requests from which a latency is computed."""
SHARE = 0.95
"""The quantile of the latency that is held."""

READS = ("sync_r", "disk_r")
WRITES = ("sync_w", "disk_w")
"""Histograms of the queue wait of synchronous requests, and of the disk time.

The disk time is by direction only: the scan's requests are in the same histogram.
"""

LEVERS = tuple(
    tunable.name
    for tunable in BY_NAME.values()
    if "gentle" in tunable.presets and len(tunable.presets) > 1
)
"""Tunables that the autopilot sets, if the kernel has them."""

_WHOLE = ((0.0, 1.0), (0.0, 1.0))
_WAYS: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "_min_time_ms": ((0.4, 1.0), (0.0, 0.2)),
    "_min_active": ((0.0, 0.6), (0.0, 0.4)),
    "nia_credit": ((0.0, 0.6), (0.0, 0.4)),
    "_max_active": ((0.0, 0.6), (0.3, 1.0)),
    "nia_delay": ((0.0, 0.6), (0.3, 1.0)),
}
"""Part of the way down, and of the way up, in which a tunable moves, by the end of its name.

The scan's share of the time (``_min_time_ms``) costs a 95th percentile nothing, so it is the first
to rise and the last to fall. Next rise the scan's requests while applications have some, too; last
those while they have none, as the first request of an application then waits for that many. All
are small whole numbers, so one begins to rise where the other ends: levels that change nothing
would only delay the controller.
"""

Histograms = Mapping[str, Sequence[int]]
"""Requests per latency bucket, by name of the queue or disk time."""


def quantile(counts: Sequence[int], share: float = SHARE) -> float:
    """Return the seconds within which this share of requests was answered; 0.0 without requests.

    Bucket i holds 2^i to 2^(i+1) ns (``L_HISTO``, include/sys/fs/zfs.h). Within a bucket, slower
    requests are assumed to be rarer, as in an exponential tail; the true value may be anywhere in
    the bucket.
    """
    every = sum(counts)
    left = 1.0
    for index, count in enumerate(counts):
        after = left - count / every if count else left
        if count and after <= 1.0 - share:
            last = max(after, 0.5 / every)  # half a request: a tail down to none has no end
            inside = math.log(left / max(1.0 - share, last)) / math.log(left / last)
            return float(2.0**index * (1.0 + inside)) / 1e9
        left = after
    return 0.0


def added(histograms: Sequence[Histograms]) -> dict[str, list[int]]:
    """Return the sum of the histograms of several devices or times."""
    names = {name for each in histograms for name in each}
    rows = {name: [each[name] for each in histograms if name in each] for name in names}
    width = {name: max(map(len, found)) for name, found in rows.items()}
    return {
        name: [sum(row[i] for row in found if i < len(row)) for i in range(width[name])]
        for name, found in rows.items()
    }


def since(new: Histograms, old: Histograms) -> dict[str, list[int]] | None:
    """Return the requests between two readings; None if counters fell (a device came or went)."""
    if new.keys() != old.keys() or any(len(new[name]) != len(old[name]) for name in new):
        return None
    found = {name: [a - b for a, b in zip(new[name], old[name], strict=True)] for name in new}
    return None if any(n < 0 for counts in found.values() for n in counts) else found


def latency(histograms: Histograms) -> float | None:
    """Return the latency of applications in seconds; None if they made too few requests.

    It is the 95th percentile of the queue wait of synchronous reads or writes, whichever is longer,
    plus the most that it can be in the disk, where the scan's requests are counted with them.
    """
    found = [
        quantile(histograms[queue]) + _disk_time(histograms[queue], histograms.get(disk, ()))
        for queue, disk in (READS, WRITES)
        if sum(histograms.get(queue, ())) >= FEW
    ]
    return max(found, default=None)


def _disk_time(asked: Sequence[int], disk: Sequence[int]) -> float:
    """Return the most (seconds) that applications' 95th percentile can be in the disk.

    The scan's requests are in the same histogram, and faster, as they are sorted. Of n requests of
    applications, at most 5 % take longer than the slowest n/20 of all requests.
    """
    every = max(1, sum(disk))
    return quantile(disk, 1.0 - (1.0 - SHARE) * min(1.0, sum(asked) / every))


class Meter:
    """Measures the latency of applications over the newest readings of a pool's histograms."""

    def __init__(self, span: float = WINDOW) -> None:
        """``span``: seconds measured together."""
        self._span = span
        self._readings: deque[tuple[float, Histograms]] = deque()

    def take(self, at: float, histograms: Histograms) -> None:
        """Add a reading at ``at`` (steady clock); earlier ones are dropped if counters fell."""
        readings = self._readings
        if readings and since(histograms, readings[-1][1]) is None:
            readings.clear()
        readings.append((at, histograms))
        while len(readings) > 2 and readings[1][0] <= at - self._span:
            readings.popleft()

    @property
    def ready(self) -> bool:
        """Whether there are two readings to compare."""
        return len(self._readings) > 1

    @property
    def latency(self) -> float | None:
        """Latency of the requests between the oldest and the newest reading; None if unknown."""
        if not self.ready:
            return None
        return latency(since(self._readings[-1][1], self._readings[0][1]) or {})


def values(
    level: float, originals: Mapping[str, int], least: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """Return the tunables of a level, between their presets and how they were found.

    No value is gentler than the one in ``least``, if that has the name.
    """
    found = {name: _value(name, level, original) for name, original in originals.items()}
    found |= {n: _faster_of(n, found[n], value) for n, value in least.items() if n in found}
    for name in found:  # a class's minimum must not exceed its maximum (zfs(4))
        most = name.replace("_min_active", "_max_active")
        if most != name and most in found:
            found[most] = max(found[most], found[name])
    return found


def _ends(name: str) -> tuple[int, int]:
    """Return the gentle and the fast value of a tunable."""
    presets = BY_NAME[name].presets
    return presets["gentle"], next(v for n, v in presets.items() if n != "gentle")


def _faster_of(name: str, one: int, other: int) -> int:
    gentle, fast = _ends(name)
    return max(one, other) if fast > gentle else min(one, other)


def _value(name: str, level: float, original: int) -> int:
    gentle, fast = _ends(name)
    end, share = (gentle, level / GENTLEST) if level < 0 else (fast, level / FASTEST)
    begin, done = next((w for part, w in _WAYS.items() if name.endswith(part)), _WHOLE)[level > 0]
    share = min(1.0, max(0.0, (share - begin) / (done - begin)))
    # A value that is beyond its preset already stays: no level may move it the other way.
    way = (fast - gentle) * (1 if level > 0 else -1)
    if original <= 0 or (end - original) * way <= 0:
        return original
    # Each step multiplies by the same factor, as the controller works with logarithms.
    return round(original * float((end / original) ** share))


def longest(function: str, least: Mapping[str, int]) -> float:
    """Return how many times as long a scan may take at its gentlest as with ``least``, at worst.

    Its rate depends on the requests that it may have in the disks, and on its share of the time.
    """
    at_once = ("zfs_vdev_scrub_max_active", "zfs_scan_vdev_limit")
    if function == "rebuild":
        at_once = ("zfs_vdev_rebuild_max_active", "zfs_rebuild_vdev_limit")
    ratios = {name: value / _ends(name)[0] for name, value in least.items()}
    requests = [ratios.get(name, 1.0) for name in at_once]
    return max(1.0, *requests) * max(1.0, ratios.get(f"zfs_{function}_min_time_ms", 1.0))


@dataclass(frozen=True, slots=True)
class Steering:
    """The state of the controller; ``steered`` returns the next one."""

    target: float
    """Target latency in seconds."""
    level: float = 0.0
    """The level set, a multiple of STEP."""
    wanted: float = 0.0
    """The level in finer steps: the sum of the corrections by all measurements."""
    turns: float = 0.0
    """Number of turns downwards, older ones counting less."""
    rose: bool = False
    """Whether the last change of the level was upwards."""


def steered(now: Steering, measured: float | None) -> Steering:
    """Return the state after another INTERVAL; ``measured`` (seconds) is from ``latency``.

    None means that applications make no requests, so none waits. This is an integral controller:
    the squared distance of the latency from the aim, in logarithms, is added up until none is left.
    Where a single step crosses the target it would oscillate, so each turn downwards slows the
    rises after it.
    """
    turns = now.turns * math.exp(-INTERVAL / FORGET)
    change = correction(now.target, measured)
    if change > 0.0:
        change /= max(1.0, turns) ** 3
    wanted = min(FASTEST, max(GENTLEST, now.wanted + change))
    steps = int((wanted - now.level) / STEP)
    turned = steps < 0 and now.rose
    return replace(
        now,
        level=now.level + STEP * steps,
        wanted=wanted,
        turns=turns + turned,
        rose=steps > 0 or (now.rose and steps == 0),
    )


def correction(target: float, measured: float | None) -> float:
    """Return the levels by which one measurement corrects ``wanted``; positive is upwards."""
    if not measured:
        return RISE
    off = math.log(AIM * target / measured)
    beyond = max(0.0, abs(off) - NEAR)
    return min(RISE, max(-FALL, math.copysign(GAIN * beyond**2, off)))
