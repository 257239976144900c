"""A disk shared by a scan and applications: seeded loads, each with a latency target.

The queue follows vdev_queue.c: the scan has ``min_active`` requests (at most ``nia_credit``) in the
disk while applications have any, ``max_active`` after ``nia_delay`` of its requests without
interactive I/O, and only ``min_time`` of a transaction group that waits. A request of an
application waits behind those and behind other applications' requests. Applications are a closed
loop: a thread thinks, sends a request and waits. Disk physics are the simulated pool's. Nothing
here depends on the controller.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.sim.disk import HISTOGRAM, DiskModel, Leaf

WINDOW = 10.0
"""Seconds per step."""
DRAWN = 40
"""Requests of applications sampled per step."""
HOUR = 3600.0
TUNED_BY = (range(50), range(5000, 5100))
"""Seeds used while the controller was tuned; the present one by the second range."""
SEEDS = range(20261125, 20261175)
"""Seeds not used for tuning; two earlier controllers were judged by them, each in one run."""
LATER = range(20270101, 20270151)
"""Seeds not used for tuning; an earlier controller was judged by them, in one run."""
DEPTH = 10
"""Synchronous reads that a disk is given at once (zfs_vdev_sync_read_max_active)."""

DEFAULTS: Mapping[str, int] = {
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 3,
    "zfs_vdev_nia_credit": 5,
    "zfs_vdev_nia_delay": 5,
    "zfs_scan_vdev_limit": 16 << 20,
    "zfs_resilver_min_time_ms": 3000,
}


class Load(NamedTuple):
    """Requests of applications to one disk, and the latency they tolerate."""

    seed: int
    threads: float
    think: float
    """Seconds between an answer and the next request."""
    size: float
    writes: float
    """Share of a transaction group's time in which it waits to be synced."""
    swing: float
    """Amplitude of the variation in the number of threads, 0…1."""
    period: float
    """Period of that variation, seconds."""
    strictness: float
    """Position of the target between the latencies of the gentlest and fastest setting, 0…1."""
    seek: float
    scan_size: float

    def busy(self, t: float) -> float:
        """Return the number of threads at ``t`` seconds."""
        return self.threads * (1.0 + self.swing * math.sin(2.0 * math.pi * t / self.period))


def load(seed: int, steady: bool = False) -> Load:
    """Return the load of a seed, without variation if ``steady``."""
    draw = random.Random(seed)
    return Load(
        seed,
        threads=draw.uniform(1.0, 6.0),
        think=draw.uniform(0.03, 0.2),
        size=draw.choice((4096.0, 16384.0, 65536.0)),
        writes=draw.uniform(0.2, 0.8),
        swing=0.0 if steady else draw.uniform(0.0, 0.5),
        period=draw.uniform(600.0, 2400.0),
        strictness=draw.uniform(0.25, 0.75),
        seek=draw.uniform(0.006, 0.010),
        scan_size=draw.choice((131072.0, 262144.0, 524288.0)),
    )


class Step(NamedTuple):
    """The result of a step."""

    rate: float
    """Scan rate, bytes/s."""
    latencies: list[float]
    """Latencies as the applications measured them, seconds."""


@dataclass
class LoadedDisk:
    """A disk with the counters that ZFS keeps, and its applications."""

    load: Load
    t: float = 0.0
    answer: float = 0.02
    """Mean response time in the last step, seconds."""
    queue_wait: list[int] = field(default_factory=lambda: [0] * HISTOGRAM)
    disk_time: list[int] = field(default_factory=lambda: [0] * HISTOGRAM)

    def __post_init__(self) -> None:
        model = DiskModel("disk", 8 << 40, 220e6, 110e6, self.load.seek)
        self._leaf = Leaf("/dev/sda", "sda", 1, model, "sda")
        self._random = random.Random(self.load.seed + 1000)

    def step(self, knobs: Mapping[str, int]) -> Step:
        """Simulate another WINDOW with these tunables."""
        now, leaf, draw = self.load, self._leaf, self._random
        most = max(1.0, knobs["zfs_scan_vdev_limit"] / now.scan_size)
        own = leaf.media_time(now.size, now.size, 1.0, False)
        rate = now.busy(self.t) / (now.think + self.answer)
        crowd = min(0.95, rate * own)
        least = float(knobs["zfs_vdev_scrub_min_active"])
        beside = min(most, least, knobs["zfs_vdev_nia_credit"])
        scan_time = leaf.media_time(now.scan_size, 4 * now.scan_size, least, False)
        quiet = math.exp(-rate * knobs["zfs_vdev_nia_delay"] * scan_time)
        alone = min(most, quiet * knobs["zfs_vdev_scrub_max_active"] + (1.0 - quiet) * least)
        duty = min(1.0, 1.0 - now.writes + knobs["zfs_resilver_min_time_ms"] / 5000.0)
        busy = 1.0 - math.exp(-rate * (own + beside * scan_time))
        latencies = []
        for _ in range(DRAWN):
            scans = 0.0
            if draw.random() < duty:
                mean = beside if draw.random() < busy else alone
                scans = int(mean) + (draw.random() < mean % 1.0)
            crowded = int(math.log(max(1e-9, draw.random())) / math.log(crowd)) if crowd else 0
            waits = scans * scan_time * draw.uniform(0.6, 1.2)
            queued = max(0, crowded - DEPTH) * own
            disk = own * draw.uniform(0.5, 1.5) + min(crowded, DEPTH) * own + waits
            latencies.append(queued + disk)
            self._count(self.queue_wait, queued, rate)
            self._count(self.disk_time, disk, rate)
        speed = self._scan(beside, alone, busy, crowd, duty)
        for _ in range(DRAWN):
            mean = beside if draw.random() < busy else alone
            self._count(self.disk_time, max(1.0, mean) * scan_time, speed / now.scan_size)
        self.answer += 0.3 * (sum(latencies) / DRAWN - self.answer)
        self.t += WINDOW
        return Step(speed, latencies)

    def _scan(self, beside: float, alone: float, busy: float, crowd: float, duty: float) -> float:
        """Return the scan's bytes/s, given the load and the requests it keeps in the disk."""
        rate = 0.0
        for share, active in ((busy, beside), (1.0 - busy, alone)):
            media = self._leaf.media_time(
                self.load.scan_size, 4 * self.load.scan_size, active, False
            )
            left = active / (active + 3.0 * crowd)
            filled = min(1.0, active * media / (media + 0.004))
            rate += share * left * filled * self.load.scan_size / media
        return rate * (1.0 - crowd) * duty

    def _count(self, histogram: list[int], seconds: float, rate: float) -> None:
        bucket = max(0, int(seconds * 1e9).bit_length() - 1)
        histogram[min(bucket, HISTOGRAM - 1)] += max(1, round(rate * WINDOW / DRAWN))


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def minutes(steps: list[Step]) -> list[float]:
    """Return the p95 of every minute."""
    each = round(60.0 / WINDOW)
    groups = [steps[i : i + each] for i in range(0, len(steps), each)]
    return [p95([x for step in group for x in step.latencies]) for group in groups]


def fixed(now: Load, knobs: Mapping[str, int], seconds: float = HOUR) -> list[Step]:
    """Return the steps of a load under a fixed setting."""
    disk = LoadedDisk(now)
    return [disk.step(knobs) for _ in range(round(seconds / WINDOW))]


def held(steps: list[Step], target: float) -> float:
    """Return the share of minutes with a p95 within 1.2 times the target."""
    found = minutes(steps)
    return sum(p <= 1.2 * target for p in found) / len(found)


def speed(steps: list[Step]) -> float:
    """Return the mean bytes/s of the scan."""
    return sum(step.rate for step in steps) / len(steps)


def unscanned(now: Load) -> list[Step]:
    """Return the steps of a load without any scan."""
    none = {"zfs_vdev_scrub_min_active": 0, "zfs_vdev_scrub_max_active": 0}
    return fixed(now, {**DEFAULTS, **none})


def settings() -> list[dict[str, int]]:
    """Return plausible fixed settings, from the gentlest to the fastest."""
    return [
        {
            **DEFAULTS,
            "zfs_vdev_scrub_min_active": least,
            "zfs_vdev_scrub_max_active": most,
            "zfs_vdev_nia_credit": max(credit, least),
            "zfs_resilver_min_time_ms": ms,
        }
        for ms in (300, 750, 1500, 3000, 6000)
        for least, most in ((1, 1), (1, 3), (1, 10), (2, 3), (2, 10), (4, 10))
        for credit in (1, 12)
    ]


def target_of(now: Load) -> float:
    """Return the latency that a load's applications tolerate: between the gentlest and fastest."""
    runs = [fixed(now, settings()[end]) for end in (0, -1)]
    low, high = (p95([x for step in steps for x in step.latencies]) for steps in runs)
    return float(low * (high / low) ** now.strictness)


def best(now: Load, target: float) -> list[Step]:
    """Return the steps under the fastest fixed setting that meets the target in 9 of 10 minutes.

    Empty if there is none.
    """
    by_speed = sorted(settings(), key=lambda c: -speed(fixed(now, c, HOUR / 12)))
    return next(filter(None, (holding(now, choice, target) for choice in by_speed)), [])


def holding(now: Load, knobs: Mapping[str, int], target: float) -> list[Step]:
    """Return an hour under a fixed setting; empty as soon as the target is out of reach."""
    disk, steps = LoadedDisk(now), []
    above, bearable = 0, round(0.1 * HOUR / 60.0)
    for _ in range(round(HOUR / 60.0)):
        minute = [disk.step(knobs) for _ in range(round(60.0 / WINDOW))]
        steps += minute
        above += held(minute, target) < 1.0
        if above > bearable:
            return []
    return steps
