"""Wall and CPU milliseconds of commands that print and exit, beyond those of their sample.

    python -m tests.bench.start [FILE] [RUNS]

FILE is saved output of `zpool status`; without it, only `--help` and the demo are timed. The
sample's time is that of reading and decoding it once more in a process where everything is loaded.
Caches are warm: the first run of each command is not counted, and leaves bytecode for the others.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

from zconsole.sim.source import samples
from zconsole.timeline.session import Session
from zconsole.zfs.sources.saved import read_states

WARM = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
BUDGET = 100.0
"""Limit in milliseconds, beyond the sample."""


def taken(command: Sequence[str]) -> tuple[float, float]:
    """Return the wall and CPU milliseconds of one run."""
    nowhere = subprocess.DEVNULL
    before, began = cpu_seconds(), time.perf_counter()
    subprocess.run(command, check=True, stdout=nowhere, stderr=nowhere, env=WARM)
    return (time.perf_counter() - began) * 1e3, (cpu_seconds() - before) * 1e3


def cpu_seconds() -> float:
    """Return the CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sample_ms(sample: Callable[[], object]) -> float:
    """Return the CPU milliseconds of the sample alone, taken for the second time."""
    sample()
    began = time.process_time()
    sample()
    return (time.process_time() - began) * 1e3


def main(words: Sequence[str]) -> int:
    """Print best and median of each command; returns 1 if one is over the budget."""
    saved = words[0] if words else ""
    runs = int(words[1]) if len(words) > 1 else 7
    commands: dict[str, Callable[[], object]] = {
        "--help": lambda: None,
        "demo --json --count 1": lambda: Session().advance(next(samples("resilver", 1, 1.0, 1))),
    }
    if saved:
        for end in ("", " --json"):
            command = f"status --from {saved}{end}"
            commands[command] = lambda: Session().advance(read_states(saved))
    bare = min(taken([sys.executable, "-c", ""])[0] for _ in range(runs))
    print(f"Python alone: best {bare:.0f} ms")
    worst = 0.0
    for command, sample in commands.items():
        argv = [sys.executable, "-m", "zconsole", *command.split()]
        taken(argv)
        times = [taken(argv) for _ in range(runs)]
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
