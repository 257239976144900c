"""How well the autopilot holds a target latency, over 100 seeded loads (``scan_load.py``).

``python -m tests.bench.hold_latency [SEED…]`` prints for each load the share of minutes whose p95,
as the applications measure it, is within 1.2 times the target, and the scan's time relative to that
of the fastest fixed setting that meets the target. The goals are 0.9 or more, and 1.3 or less. A
load whose target no fixed setting meets is impossible to satisfy: it is named but not counted. For
each miss, the likely reason is printed.

With ``--steady`` first, the same loads without their ups and downs: how often in an hour the
autopilot turns from faster to gentler or back. The goal is 12 or less.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from tests.bench.scan_load import (
    DEFAULTS,
    HOUR,
    LATER,
    SEEDS,
    WINDOW,
    Load,
    LoadedDisk,
    Step,
    best,
    held,
    load,
    minutes,
    speed,
    target_of,
    unscanned,
)
from zconsole.tunables import hold_latency as pilot

HELD, SLOWER = 0.9, 1.3
"""Goals: the least share of minutes held, and the most that the scan may be slowed down."""
STEADY = "--steady"


@dataclass(frozen=True)
class Flight:
    """A load under the autopilot, and under the best of the fixed settings."""

    load: Load
    target: float
    """Target latency, seconds."""
    steps: list[Step]
    levels: list[float]
    fixed: list[Step]
    """Steps under the best fixed setting; empty if none holds the target."""

    @property
    def kept(self) -> float:
        """Return the share of minutes in which the target was held."""
        return held(self.steps, self.target)

    @property
    def slower(self) -> float:
        """Return the scan's time relative to that under the best fixed setting."""
        return speed(self.fixed) / speed(self.steps)

    @property
    def misses(self) -> list[str]:
        """Return the likely reasons for missed goals."""
        late, slow = self.kept < HELD, self.slower > SLOWER
        return [*([self._late()] if late else ()), *([self._slow()] if slow else ())]

    def _late(self) -> str:
        above = [i for i, p in enumerate(minutes(self.steps)) if p > 1.2 * self.target]
        grew = sum(self.load.busy(60.0 * i + 60.0) > self.load.busy(60.0 * i - 60.0) for i in above)
        return f"{len(above)} minutes above, {grew} of them while more and more threads asked"

    def _slow(self) -> str:
        ours, theirs = (median(minutes(s)) / self.target for s in (self.steps, self.fixed))
        low = sum(level <= 0.0 for level in self.levels) / len(self.levels)
        return (
            f"median p95 {ours:.2f} of the target, {theirs:.2f} by the fixed setting;"
            f" not above the defaults {low:.2f} of the time"
        )


def flown(now: Load, target: float, seconds: float = HOUR) -> tuple[list[Step], list[float]]:
    """Run the load under the autopilot; returns the steps, and the level at each."""
    disk, steering = LoadedDisk(now), pilot.Steering(target)
    meter = pilot.Meter()
    meter.take(disk.t, counters(disk))
    steps, levels = [], []
    for _ in range(round(seconds / WINDOW)):
        steps.append(disk.step({**DEFAULTS, **pilot.values(steering.level, DEFAULTS)}))
        levels.append(steering.level)
        meter.take(disk.t, counters(disk))
        steering = pilot.steered(steering, meter.latency)
    return steps, levels


def counters(disk: LoadedDisk) -> dict[str, list[int]]:
    """Return a copy of the disk's histograms, named as in a sample."""
    return {"sync_r": disk.queue_wait[:], "disk_r": disk.disk_time[:]}


def reversals(levels: list[float]) -> int:
    """Count the steps up after a step down, and the reverse."""
    moves = [b - a for a, b in pairwise(levels) if b != a]
    return sum(a * b < 0.0 for a, b in pairwise(moves))


def flight(seed: int) -> Flight:
    """Return the load of a seed under the autopilot and under the best fixed setting."""
    now = load(seed)
    target = target_of(now)
    return Flight(now, target, *flown(now, target), best(now, target))


def told(made: Flight) -> str:
    """Return a line about one load."""
    line = f"{made.load.seed}  target {made.target * 1e3:5.1f}ms  minutes held {made.kept:.2f}"
    if not made.fixed:
        alone = held(unscanned(made.load), made.target)
        return f"{line}  NO FIXED SETTING HOLDS IT; without any scan {alone:.2f}"
    line += f"  scan time {made.slower:.2f}  level {made.levels[-1]:+.1f}"
    return "  MISSED: ".join((line, *made.misses))


def summary(flights: list[Flight]) -> list[str]:
    """Return the figures over all loads, without those that no fixed setting holds."""
    fair = [made for made in flights if made.fixed]
    if not fair:
        return ["no load that a fixed setting holds"]
    times = sorted(made.slower for made in fair)
    return [
        f"loads {len(flights)}, of which no fixed setting holds {len(flights) - len(fair)}",
        f"of the other {len(fair)}: held {sum(made.kept >= HELD for made in fair)},"
        f" in time {sum(made.slower <= SLOWER for made in fair)},"
        f" both {sum(not made.misses for made in fair)}",
        f"scan time: median {median(times):.2f}, most {times[-1]:.2f}",
    ]


def turns(seeds: list[int]) -> bool:
    """Print the reversals in an hour of steady loads; returns whether one load has more than 12."""
    found = []
    for seed in seeds:
        _, levels = flown(load(seed, steady=True), target_of(load(seed)))
        found.append(reversals(levels))
        print(f"{seed}  reversals {found[-1]}", flush=True)
    print(f"reversals: mean {mean(found):.1f}, most {max(found)}")
    return max(found) > 12


def figures(seeds: list[int]) -> bool:
    """Print the figures of these loads; returns whether one misses a goal."""
    flights = []
    for seed in seeds:
        flights.append(flight(seed))
        print(told(flights[-1]), flush=True)
    print(*summary(flights), sep="\n", flush=True)
    return any(made.fixed and made.misses for made in flights)


def main(words: list[str]) -> int:
    """Print the figures; returns 1 if a load misses a goal."""
    shown = turns if words[:1] == [STEADY] else figures
    named = [int(word) for word in words if word != STEADY]
    missed = [shown(seeds) for seeds in ([named] if named else [list(SEEDS), list(LATER)])]
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
