"""Bytes written to the terminal per refresh, at a size, with every row changing.

    python -m tests.bench.terminal_bytes [COLUMNSxLINES] [SECONDS] [-- COMMAND …]

Runs a command (the demo unless another is given) in a pseudo-terminal, lets it start, then counts.
Two more figures follow: what is written while nothing changes (a replay at its end, 0 bytes), and
how long a key takes while nobody reads (``q`` on the demo, whose terminal is not read for 5 s).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from zconsole.sim.source import samples
from zconsole.zfs.sources.recording import Recorder

ZCONSOLE = (sys.executable, "-m", "zconsole")
WARM_UP = 5.0
SCREEN = 1000
"""Minimum bytes of a first screen: more than is written while the program starts."""
LONGEST_START = 60
"""Maximum seconds until the first screen."""
BUDGET = 7 * 1024
"""Limit in bytes per refresh at 80x24, truecolor."""


@dataclass(frozen=True, slots=True)
class Written:
    """Output of a program to its terminal while it was watched."""

    seconds: float
    bursts: tuple[int, ...]
    """Bytes of each burst of writes with less than 0.2 s between them."""

    @property
    def typical(self) -> float:
        """Return the bytes of the median refresh."""
        return statistics.median(self.bursts) if self.bursts else 0.0


def watch(
    command: Sequence[str], columns: int, lines: int, seconds: float, warm_up: float = WARM_UP
) -> Written:
    """Run ``command`` on a terminal of that size and count its output after the start."""
    with running(command, columns, lines) as terminal:
        read(terminal, warm_up)
        began = time.monotonic()
        bursts = read(terminal, seconds)
        return Written(time.monotonic() - began, tuple(bursts))


@contextmanager
def running(command: Sequence[str], columns: int, lines: int) -> Iterator[int]:
    """Run a command for the duration of the block; yields the other end of its terminal."""
    pid, terminal = start(command, columns, lines)
    try:
        yield terminal
    finally:
        os.kill(pid, signal.SIGTERM)
        read(terminal, 1.0)
        os.close(terminal)
        os.waitpid(pid, 0)


def while_nothing_changes(seconds: float = 5.0) -> int:
    """Return the bytes written in ``seconds`` by a replay that has ended and come to rest.

    A busy machine draws the first screen late: until then, nothing counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "two.jsonl")
        with Recorder(path) as recorder:
            for raws in samples("resilver", 1, 1.0, 2):
                recorder.write(raws)
        with running((*ZCONSOLE, "replay", path, "--speed", "60"), 80, 24) as terminal:
            await_stillness(terminal)
            return sum(read(terminal, seconds))


def await_stillness(terminal: int) -> None:
    """Read until a screen was drawn and nothing came for a second; gives up after LONGEST_START."""
    drawn = 0
    for _ in range(LONGEST_START):
        more = sum(read(terminal, 1.0))
        if not more and drawn > SCREEN:
            break
        drawn += more


def key_while_nobody_reads(seconds: float = 5.0) -> float:
    """Return the milliseconds ``q`` takes to end the demo after its terminal was not read."""
    pid, terminal = start((*ZCONSOLE, "demo"), 200, 50)
    read(terminal, WARM_UP)
    time.sleep(seconds)
    began = time.monotonic()
    os.write(terminal, b"q")
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        read(terminal, 0.005)
    os.close(terminal)
    return (time.monotonic() - began) * 1e3


def unsized(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without COLUMNS and LINES, so that the terminal's own size counts."""
    return {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")}


def start(command: Sequence[str], columns: int, lines: int) -> tuple[int, int]:
    """Start a command; returns its process id and the other end of its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        environ = unsized(os.environ) | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        os.execvpe(command[0], list(command), environ)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    return pid, terminal


def read(terminal: int, seconds: float) -> list[int]:
    """Return the bytes of each burst that comes within ``seconds``."""
    end = time.monotonic() + seconds
    bursts: list[int] = []
    last = float("-inf")
    while (left := end - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            got = len(os.read(terminal, 65536))
        except OSError:
            break
        now = time.monotonic()
        if now - last < 0.2 and bursts:
            bursts[-1] += got
        else:
            bursts.append(got)
        last = now
    return bursts


def main() -> int:
    """Print the figures; returns 1 if over the budget at 80x24."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", default="80x24")
    parser.add_argument("seconds", nargs="?", type=float, default=15.0)
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    columns, lines = map(int, args.size.split("x"))
    command = args.command or [*ZCONSOLE, "demo"]
    written = watch(command, columns, lines, args.seconds)
    print(
        f"{args.size}: {len(written.bursts)} refreshes in {written.seconds:.1f} s, "
        f"median {written.typical:.0f} B, largest {max(written.bursts, default=0)} B, "
        f"budget {BUDGET} B at 80x24"
    )
    print(f"while nothing changes: {while_nothing_changes()} B in 5 s, budget 0 B")
    print(f"q while nobody reads: {key_while_nobody_reads():.0f} ms until it has left")
    return int(args.size == "80x24" and written.typical > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
