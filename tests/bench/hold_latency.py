"""How well the autopilot holds a latency, over 100 seeded loads (``scan_load.py``).

``python -m tests.bench.hold_latency [SEED…]`` prints for each the share of minutes whose p95,
as the applications measure it, is within 1.2 times the target, and the scan's time against that of
the fastest fixed setting that meets the target. Wanted: 0.9 or more, and 1.3 or less.
"""

from __future__ import annotations

import sys

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
    speed,
    target_of,
)
from zconsole.tunables import hold_latency as pilot


def flown(now: Load, target: float, seconds: float = HOUR) -> tuple[list[Step], list[float]]:
    """The load under the autopilot: what each step brought, and the level it had."""
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
    """A copy of the disk's histograms, called as in a sample."""
    return {"sync_r": disk.queue_wait[:], "disk_r": disk.disk_time[:]}


def main(words: list[str]) -> int:
    """Print the figures; 1 where a load misses one of them."""
    missed = 0
    for seed in map(int, words) if words else (*SEEDS, *LATER):
        now = load(seed)
        target = target_of(now)
        steps, levels = flown(now, target)
        kept, most = held(steps, target), best(now, target)
        slower = most / speed(steps)
        ok = kept >= 0.9 and slower <= 1.3
        missed += not ok
        print(
            f"{seed:2}  target {target * 1e3:5.1f}ms  minutes held {kept:.2f}"
            f"  scan time {slower:.2f}  level {levels[-1]:+.1f}  {'' if ok else 'MISSED'}",
            flush=True,
        )
    print(f"missed: {missed}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
