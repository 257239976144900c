"""How fast a scan may go beside applications: a controller without clock, files or kernel.

A level stands for one setting of all the scan's tunables: 0 is how they were found, below it they
go towards the gentle preset, above it towards the faster one.
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
"""Levels up at once."""
LARGEST = 2.0
"""Levels down at once, when latency is far above the target."""
INTERVAL = 10.0
"""Seconds between two decisions: about two transaction groups."""
WINDOW = 3
"""Intervals of requests looked at together."""
LOW, HIGH = 0.95, 1.1
"""Shares of the target between which nothing changes."""
WAIT, LONGEST_WAIT = 60.0, 960.0
"""Seconds before a level that was too fast is tried again; doubled each time, up to this."""
FEW = 20
"""Requests below which a window says nothing."""
SHARE = 0.95

READS = ("sync_r", "disk_r")
WRITES = ("sync_w", "disk_w")
"""Queue wait of synchronous requests, and disk time by direction, which the scan shares."""

LEVERS = tuple(
    tunable.name
    for tunable in BY_NAME.values()
    if "gentle" in tunable.presets and len(tunable.presets) > 1
)
"""What the autopilot sets, where the kernel has it."""

Histograms = Mapping[str, Sequence[int]]


def quantile(counts: Sequence[int], share: float = SHARE) -> float:
    """Seconds within which this share of requests was answered; 0.0 for none.

    Bucket i holds 2^i to 2^(i+1) ns; inside it the requests that take longer get fewer as in an
    exponential tail. The true value may be anywhere in the bucket.
    """
    every = sum(counts)
    left = 1.0
    for index, count in enumerate(counts):
        after = left - count / every if count else left
        if count and after <= 1.0 - share:
            last = max(after, 0.5 / every)
            inside = math.log(left / max(1.0 - share, last)) / math.log(left / last)
            return float(2.0**index * (1.0 + inside)) / 1e9
        left = after
    return 0.0


def added(histograms: Sequence[Histograms]) -> dict[str, list[int]]:
    """The histograms of several devices or times as one."""
    names = {name for each in histograms for name in each}
    rows = {name: [each[name] for each in histograms if name in each] for name in names}
    width = {name: max(map(len, found)) for name, found in rows.items()}
    return {
        name: [sum(row[i] for row in found if i < len(row)) for i in range(width[name])]
        for name, found in rows.items()
    }


def since(new: Histograms, old: Histograms) -> dict[str, list[int]] | None:
    """The requests between two readings; None where counters fell (a device came or went)."""
    if new.keys() != old.keys() or any(len(new[name]) != len(old[name]) for name in new):
        return None
    found = {name: [a - b for a, b in zip(new[name], old[name], strict=True)] for name in new}
    return None if any(n < 0 for counts in found.values() for n in counts) else found


def latency(histograms: Histograms) -> float | None:
    """What applications wait, in seconds; None where too few asked.

    The 95th percentile of the queue wait of synchronous reads or writes, plus the most that it can
    be in the disk, where the scan's requests are counted with them.
    """
    found = [
        quantile(histograms[queue]) + _disk_time(histograms[queue], histograms.get(disk, ()))
        for queue, disk in (READS, WRITES)
        if sum(histograms.get(queue, ())) >= FEW
    ]
    return max(found, default=None)


def _disk_time(asked: Sequence[int], disk: Sequence[int]) -> float:
    """The most that the 95th percentile of applications can be in the disk.

    Requests of the scan are in the same histogram, and faster: they are sorted. Of n requests of
    applications, 5 % at most take longer than the slowest n/20 of all.
    """
    every = max(1, sum(disk))
    return quantile(disk, 1.0 - (1.0 - SHARE) * min(1.0, sum(asked) / every))


class Meter:
    """What applications wait, over the newest readings of a pool's histograms."""

    def __init__(self, span: float = WINDOW * INTERVAL) -> None:
        """``span``: seconds looked at together."""
        self._span = span
        self._readings: deque[tuple[float, Histograms]] = deque()

    def take(self, t: float, histograms: Histograms) -> None:
        """A reading at ``t`` (steady clock); those before it count no more where counters fell."""
        readings = self._readings
        if readings and since(histograms, readings[-1][1]) is None:
            readings.clear()
        readings.append((t, histograms))
        while len(readings) > 2 and readings[1][0] <= t - self._span:
            readings.popleft()

    def restart(self) -> None:
        """Forget what was before the newest reading: the scan goes at another pace now."""
        while len(self._readings) > 1:
            self._readings.popleft()

    @property
    def latency(self) -> float | None:
        """See ``latency``; None before the second reading, too."""
        if len(self._readings) < 2:
            return None
        return latency(since(self._readings[-1][1], self._readings[0][1]) or {})


def values(
    level: float, originals: Mapping[str, int], least: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """The tunables of a level, between their presets and how they were found.

    None is gentler than in ``least``, where that names it.
    """
    found = {name: _value(name, level, original) for name, original in originals.items()}
    found |= {n: _faster_of(n, found[n], value) for n, value in least.items() if n in found}
    for name in found:
        most = name.replace("_min_active", "_max_active")
        if most != name and most in found:
            found[most] = max(found[most], found[name])
    return found


def _ends(name: str) -> tuple[int, int]:
    """The gentle and the fast value of a tunable."""
    presets = BY_NAME[name].presets
    return presets["gentle"], next(v for n, v in presets.items() if n != "gentle")


def _faster_of(name: str, one: int, other: int) -> int:
    gentle, fast = _ends(name)
    return max(one, other) if fast > gentle else min(one, other)


def _value(name: str, level: float, original: int) -> int:
    gentle, fast = _ends(name)
    end, share = (gentle, level / GENTLEST) if level < 0 else (fast, level / FASTEST)
    # One that is beyond its preset already stays there: no level turns its direction round.
    way = (fast - gentle) * (1 if level > 0 else -1)
    if original <= 0 or (end - original) * way <= 0:
        return original
    return round(original * float((end / original) ** share))


def longest(function: str, least: Mapping[str, int]) -> float:
    """How many times as long a scan may take at its gentlest as at ``least``, at the very worst.

    Its rate follows the requests that it may have in the disks, and its share of the time.
    """
    kind = "rebuild" if function == "rebuild" else "scrub"
    at_once = (f"zfs_vdev_{kind}_max_active", "zfs_rebuild_vdev_limit", "zfs_scan_vdev_limit")
    ratios = {name: value / _ends(name)[0] for name, value in least.items()}
    other = "zfs_scan_vdev_limit" if kind == "rebuild" else "zfs_rebuild_vdev_limit"
    requests = [ratios.get(name, 1.0) for name in at_once if name != other]
    return max(1.0, *requests) * max(1.0, ratios.get(f"zfs_{function}_min_time_ms", 1.0))


@dataclass(frozen=True, slots=True)
class Steering:
    """Where the autopilot is; ``steered`` gives the next one."""

    target: float
    """Seconds."""
    level: float = 0.0
    too_fast: float | None = None
    """The lowest level at which latency was above the target."""
    until: float = 0.0
    """The time before which ``too_fast`` is not tried again."""
    wait: float = WAIT
    changed: float | None = None
    """When the level changed last: requests before that say nothing about it."""
    rose: bool = True
    """Whether it changed upwards: going down is then a reversal, and makes ``wait`` longer."""


def steered(now: Steering, t: float, measured: float | None) -> Steering:
    """The next state at ``t`` seconds of a steady clock; ``measured`` is from ``latency``.

    None means that no application asks for anything, so nobody waits.
    """
    if now.changed is not None and t - now.changed < (WINDOW - 0.5) * INTERVAL / 2:
        return now
    ratio = 0.0 if measured is None else measured / now.target
    if ratio > HIGH:
        return _slower(now, t, ratio)
    if ratio < LOW:
        return _faster(now, t)
    return now


def _slower(now: Steering, t: float, ratio: float) -> Steering:
    step = min(LARGEST, STEP * (1 + int((ratio - HIGH) / 0.25)))
    level = max(GENTLEST, now.level - step)
    if level == now.level:
        return now
    wait = now.wait
    if now.rose:
        again = now.too_fast is not None and t - now.until < LONGEST_WAIT
        wait = min(LONGEST_WAIT, 2 * wait) if again else WAIT
    until = t + wait
    return replace(
        now, level=level, too_fast=now.level, until=until, wait=wait, changed=t, rose=False
    )


def _faster(now: Steering, t: float) -> Steering:
    level = min(FASTEST, now.level + STEP)
    barred = now.too_fast is not None and level >= now.too_fast and t < now.until
    if barred or level == now.level:
        return now
    return replace(now, level=level, changed=t, rose=True)
