"""Milliseconds from start to the first painted screen of the demo, in a pseudo-terminal.

    python -m tests.bench.first_paint [RUNS] [-- COMMAND …]

The first screen is painted when the terminal has been sent the name of the pool.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import signal
import statistics
import sys
import time
from collections.abc import Sequence

BUDGET = 400.0
"""Milliseconds, warm, on a machine of two cores."""
SIGN = b"tank"


def first_paint(command: Sequence[str], sign: bytes = SIGN) -> tuple[float, float]:
    """Return the milliseconds until ``sign`` has been written, and the CPU milliseconds used."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            "COLUMNS": "80",
            "LINES": "24",
        }
        os.execvpe(command[0], list(command), environ)
    seen = b""
    try:
        while sign not in seen and select.select([terminal], [], [], 10)[0]:
            seen += os.read(terminal, 65536)
        taken = (time.perf_counter() - began) * 1000
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        used = os.wait4(pid, 0)[2]
    return taken, (used.ru_utime + used.ru_stime) * 1000


def main() -> int:
    """Print best and median; returns 1 if the median is over the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=7)
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    command = args.command or [sys.executable, "-m", "zconsole", "demo"]
    first_paint(command)
    found = [first_paint(command) for _ in range(args.runs)]
    best, middle = min(wall for wall, _ in found), statistics.median(wall for wall, _ in found)
    cpu = min(cpu for _, cpu in found)
    print(
        f"first paint: best {best:.0f} ms (CPU {cpu:.0f}), median {middle:.0f} ms,"
        f" budget {BUDGET:.0f} ms"
    )
    return int(middle > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
