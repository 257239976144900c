"""What a command that prints and ends takes beyond its sample, in wall and CPU milliseconds.

    python -m tests.bench.start [FILE] [RUNS]

FILE is saved output of `zpool status`; without one, `--help` and the demo alone are timed. The
sample is reading and decoding it once more in a process where everything is loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

from zconsole.session import Session
from zconsole.sim.source import samples
from zconsole.sources.saved import read_saved

BUDGET = 100.0
"""Milliseconds beyond the sample."""


def taken(command: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of one run."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system
    return wall * 1e3, (cpu - before.children_user - before.children_system) * 1e3


def sample_ms(sample: Callable[[], object]) -> float:
    """CPU milliseconds of the sample alone, the second time it is taken."""
    sample()
    began = time.process_time()
    sample()
    return (time.process_time() - began) * 1e3


def main(words: Sequence[str]) -> int:
    """Print best and median of each command; 1 when one is over the budget."""
    saved = words[0] if words else ""
    runs = int(words[1]) if len(words) > 1 else 7
    commands: dict[str, Callable[[], object]] = {
        "--help": lambda: None,
        "demo --json --count 1": lambda: Session().advance(next(samples("resilver", 1, 1.0, 1))),
    }
    if saved:
        for end in ("", " --json"):
            command = f"status --from {saved}{end}"
            commands[command] = lambda: Session().advance([read_saved(saved)])
    worst = 0.0
    for command, sample in commands.items():
        times = [taken([sys.executable, "-m", "zconsole", *command.split()]) for _ in range(runs)]
        wall, cpu = min(w for w, _ in times), min(c for _, c in times)
        middle, own = median(w for w, _ in times), sample_ms(sample)
        worst = max(worst, middle - own)
        figures = (
            f"best {wall:.0f} (CPU {cpu:.0f}), median {middle:.0f}, of it the sample {own:.0f}"
        )
        print(f"{command}: {figures} ms, budget {BUDGET:.0f} beyond it")
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
