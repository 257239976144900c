"""CPU of the console while a pool resilvers, side by side with ``watch -n1 zpool status -v``.

    python -m tests.bench.live_cpu POOL [SECONDS] [ROUNDS]

On a machine with a real pool, as root, with its resilver running and slow enough to outlast the
measurement. Both run by turns on a terminal of 80x24, for SECONDS (60) a turn after they have
started, ROUNDS (3) turns each. Counted is what the kernel has counted for the command and all
processes below it, those that have ended too. The medians of milliseconds a second are printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.terminal_bytes import ZCONSOLE, read, start

SIZE = (80, 24)
STARTING = 30.0
"""Seconds until all is loaded that the console loads, on an emulated machine."""
_TICK = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat behind the name: the parent; utime, stime, cutime, cstime."""


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all below it so far, with that of ended ones."""
    fields = dict(_processes())
    below = [pid]
    for each in below:
        below.extend(p for p, found in fields.items() if int(found[_PARENT]) == each)
    ticks = sum(int(value) for each in below for value in fields.get(each, [])[_TIMES])
    return ticks / _TICK


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(errors="replace")
            except OSError:
                continue
            yield int(folder.name), text.rpartition(")")[2].split()


def turn(command: Sequence[str], seconds: float) -> float:
    """Milliseconds of CPU a second that the command takes once it has started."""
    pid, terminal = start(command, *SIZE)
    try:
        read(terminal, STARTING)
        before, began = cpu_seconds(pid), time.monotonic()
        read(terminal, seconds)
        return 1e3 * (cpu_seconds(pid) - before) / (time.monotonic() - began)
    finally:
        os.kill(pid, signal.SIGTERM)
        read(terminal, 2.0)
        os.close(terminal)
        os.waitpid(pid, 0)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pool")
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    args = parser.parse_args()
    ways = {
        "watch": ("watch", "-n1", "zpool", "status", "-v", args.pool),
        "zconsole": (*ZCONSOLE, args.pool),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, command in ways.items():
            found[name].append(turn(command, args.seconds))
            print(f"{name:<10} {found[name][-1]:6.1f} ms/s", flush=True)
    watch, ours = (statistics.median(found[name]) for name in ways)
    print(f"medians: {watch:.1f} and {ours:.1f} ms/s, ratio {ours / watch:.2f} (at most 1)")


if __name__ == "__main__":
    main()
