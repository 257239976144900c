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
"""Levels between two that are set, and by how much the wanted one must differ from that which is:
the noise of a percentile alone then rarely turns the scan round."""
INTERVAL = 10.0
"""Seconds between two decisions: two transaction groups (``zfs_txg_timeout``)."""
WINDOW = 60.0
"""Seconds of requests looked at together: a p95 of fewer is noise."""
AIM = 1.05
"""Share of the target that is aimed at: as near to it as the noise of a minute's p95 lets 9 of 10
minutes stay within 1.2 times the target."""
NEAR = 0.04
"""Distance from the aim (natural logarithm) within which nothing changes."""
GAIN = 20.0
"""Levels a decision, times the square of what latency is off beyond NEAR (natural logarithm).

A p95 of a minute has a noise of about 6 %, and is half a minute old. By its square, noise moves
little, and a load that grows is followed before minutes are lost.
"""
RISE, FALL = 0.6, 1.5
"""The most levels up and down a decision: what they bring is seen whole after WINDOW."""
FORGET = 2400.0
"""Seconds in which a turn downwards is forgotten to 1/e. By the third power of those remembered,
there are six an hour in the end where one step leads from below the target to far above it."""
FEW = 20
"""Requests below which a window says nothing."""
SHARE = 0.95
"""The quantile that is held."""

READS = ("sync_r", "disk_r")
WRITES = ("sync_w", "disk_w")
"""Queue wait of synchronous requests, and disk time by direction, which the scan shares."""

LEVERS = tuple(
    tunable.name
    for tunable in BY_NAME.values()
    if "gentle" in tunable.presets and len(tunable.presets) > 1
)
"""What the autopilot sets, where the kernel has it."""

_WHOLE = ((0.0, 1.0), (0.0, 1.0))
_WAYS: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "_min_time_ms": ((0.4, 1.0), (0.0, 0.2)),
    "_min_active": ((0.0, 0.6), (0.0, 0.4)),
    "nia_credit": ((0.0, 0.6), (0.0, 0.4)),
    "_max_active": ((0.0, 0.6), (0.3, 1.0)),
    "nia_delay": ((0.0, 0.6), (0.3, 1.0)),
}
"""Between which shares of the way down, and of that up, a tunable moves, by the end of its name.

The scan's share of the time costs a 95th percentile nothing, so it is the first to rise and the
last to fall. Requests beside those of applications come before more of them while no application
asks: that many may be met by the first one that does. All are small whole numbers, so one begins
to rise where the other ends: levels that change nothing would only keep the controller waiting.
"""

Histograms = Mapping[str, Sequence[int]]


def quantile(counts: Sequence[int], share: float = SHARE) -> float:
    """Seconds within which this share of requests was answered; 0.0 for none.

    Bucket i holds 2^i to 2^(i+1) ns (``L_HISTO``, include/sys/fs/zfs.h); inside it the requests
    that take longer get fewer as in an exponential tail. The true value may be anywhere in it.
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

    def __init__(self, span: float = WINDOW) -> None:
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
    begin, done = next((w for part, w in _WAYS.items() if name.endswith(part)), _WHOLE)[level > 0]
    share = min(1.0, max(0.0, (share - begin) / (done - begin)))
    # One that is beyond its preset already stays there: no level turns its direction round.
    way = (fast - gentle) * (1 if level > 0 else -1)
    if original <= 0 or (end - original) * way <= 0:
        return original
    return round(original * float((end / original) ** share))


def longest(function: str, least: Mapping[str, int]) -> float:
    """How many times as long a scan may take at its gentlest as at ``least``, at the very worst.

    Its rate follows the requests that it may have in the disks, and its share of the time.
    """
    at_once = ("zfs_vdev_scrub_max_active", "zfs_scan_vdev_limit")
    if function == "rebuild":
        at_once = ("zfs_vdev_rebuild_max_active", "zfs_rebuild_vdev_limit")
    ratios = {name: value / _ends(name)[0] for name, value in least.items()}
    requests = [ratios.get(name, 1.0) for name in at_once]
    return max(1.0, *requests) * max(1.0, ratios.get(f"zfs_{function}_min_time_ms", 1.0))


@dataclass(frozen=True, slots=True)
class Steering:
    """Where the autopilot is; ``steered`` gives the next one."""

    target: float
    """Seconds."""
    level: float = 0.0
    wanted: float = 0.0
    """Levels in finer steps: the sum of what each measurement asked for."""
    turns: float = 0.0
    """How often it turned downwards, older times counting less."""
    rose: bool = False
    """Whether the level changed upwards last."""


def steered(now: Steering, measured: float | None) -> Steering:
    """The state after another INTERVAL; ``measured`` (seconds) is from ``latency``.

    None means that no application asks for anything, so nobody waits. An integral controller: what
    the logarithm of latency is off by, squared, is added up until nothing is left of it. Where one
    step crosses the target it would go to and fro: each turn down slows the rises after it.
    """
    turns = now.turns * math.exp(-INTERVAL / FORGET)
    change = _correction(now.target, measured)
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


def _correction(target: float, measured: float | None) -> float:
    """Levels that one measurement asks for, upwards positive."""
    if not measured:
        return RISE
    off = math.log(AIM * target / measured)
    beyond = max(0.0, abs(off) - NEAR)
    return min(RISE, max(-FALL, math.copysign(GAIN * beyond**2, off)))
