"""CPU of the console on real pools, side by side with ``watch -n1 zpool status -v``.

    python -m tests.bench.live_cpu [POOL] [--idle N] [--seconds S] [--rounds R]

Run it as root, on a machine with OpenZFS. It uses the existing pools, with resilvers that outlast
the measurement, or N idle pools on files, which are created and destroyed. Both commands run in
turn on a terminal of 80x24, for S (60) seconds per turn after they have started, R (3) turns each.
The kernel's CPU time of the command and all its descendants counts, including those that have
ended. The medians of CPU milliseconds per second are printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.terminal_bytes import ZCONSOLE, read, start

SIZE = (80, 24)
STARTING = 90.0
"""Seconds until everything is loaded and the first samples are taken, on an emulated machine."""
WIDTH, FILE = 6, 256 * 2**20
"""Files in a pool created for the benchmark, a raidz2, and bytes of each file."""
_TICK = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat after the name: the parent; utime, stime, cutime, cstime."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants, including ended ones."""
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
    """Return the CPU milliseconds per second that the command uses once it has started."""
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


@contextmanager
def idle_pools(count: int) -> Iterator[None]:
    """Provide idle pools on sparse files for the duration of the block."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ExitStack() as stack:
        for number in range(1, count + 1):
            pool = f"bench{number}"
            files = [Path(folder) / f"disk{number}-{n}" for n in range(WIDTH)]
            for file in files:
                with file.open("wb") as opened:
                    opened.truncate(FILE)
            where = ("-m", str(Path(folder) / pool), pool)
            _run("zpool", "create", *where, "raidz2", *map(str, files))
            stack.callback(_run, "zpool", "destroy", pool)
        yield


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def compare(pools: Sequence[str], seconds: float, rounds: int) -> None:
    """Print the CPU use of both commands, measured in turns."""
    ways = {
        "watch": ("watch", "-n1", "zpool", "status", "-v", *pools),
        "zconsole": (*ZCONSOLE, *pools),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            found[name].append(turn(command, seconds))
            print(f"{name:<10} {found[name][-1]:6.1f} ms/s", flush=True)
    watch, ours = (statistics.median(found[name]) for name in ways)
    print(f"medians: {watch:.1f} and {ours:.1f} ms/s, ratio {ours / watch:.2f} (at most 1)")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pool", nargs="?", help="one that is there; all of the machine without it")
    parser.add_argument("--idle", type=int, default=0, metavar="N", help="so many are made")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with idle_pools(args.idle):
        compare([args.pool] if args.pool else [], args.seconds, args.rounds)


if __name__ == "__main__":
    main()
