"""Runs the demo in a terminal of its own, presses keys, and records what it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cast import script
from tests.cast.asciicast import INPUT, OUTPUT, Cast, Event

ROOT = Path(__file__).parents[2]
SENT = {"enter": "\r", "escape": "\x1b"}
"""What a terminal sends for keys that are not printable characters."""
SMALL = (80, 1)
"""Columns and rows while nothing is recorded, so that the demo has little to paint."""
BURST = 0.06
"""Seconds without output after which an update of the screen is complete."""
SETTLED = 0.3
"""Seconds between a sample and the start, so that later samples come at the same times every time.
"""
GRID = 0.1
"""Seconds to which times are rounded."""


def record() -> Cast:
    """Run the demo to the end of the script."""
    with tempfile.TemporaryDirectory() as home, running(home) as terminal:
        recording = Recording(terminal)
        recording.warm_up()
        for at, key in script.KEYS:
            recording.read_until(at)
            recording.press(key)
        recording.read_until(script.SECONDS)
    return Cast(
        script.COLUMNS, script.ROWS, " ".join(script.COMMAND), script.SECONDS, recording.events()
    )


@contextmanager
def running(home: str) -> Iterator[int]:
    """Run the demo for the duration of the block; yields the other end of its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-m", *script.COMMAND], environment(home))
    resize(terminal, *SMALL)
    try:
        yield terminal
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def resize(terminal: int, columns: int, rows: int) -> None:
    """Set the size of the terminal."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def environment(home: str) -> dict[str, str]:
    """Return the environment of the demo, free of the user's own settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "ZCONSOLE_STATE": home,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


@dataclass
class Recording:
    """Output of a terminal so far, in bursts: each update of the screen is one event."""

    terminal: int
    began: float = field(default_factory=time.monotonic)
    bursts: list[tuple[float, str, str]] = field(default_factory=list)
    last: float = 0.0

    def __post_init__(self) -> None:
        self.decode = getincrementaldecoder("utf-8")().decode

    def warm_up(self) -> None:
        """Let the demo collect a history, then start with a freshly painted screen.

        Of the earlier output, only the first part is kept, because it sets up the terminal.
        """
        self.read_until(script.WARM_UP)
        select.select([self.terminal], [], [])
        self.read_until(time.monotonic() - self.began + SETTLED)
        first = self.bursts[0]
        resize(self.terminal, script.COLUMNS, script.ROWS)
        self.began, self.last, self.bursts = time.monotonic(), 0.0, [(0.0, *first[1:])]

    def read_until(self, end: float) -> None:
        """Read output until ``end``, in seconds since the beginning."""
        while (left := end - (time.monotonic() - self.began)) > 0:
            if select.select([self.terminal], [], [], left)[0]:
                self.take(self.decode(os.read(self.terminal, 1 << 16)))

    def take(self, text: str) -> None:
        """Add output to the current burst, or start a new one."""
        now = time.monotonic() - self.began
        if self.bursts and self.bursts[-1][1] == OUTPUT and now - self.last < BURST:
            at, kind, before = self.bursts.pop()
            self.bursts.append((at, kind, before + text))
        else:
            self.bursts.append((now, OUTPUT, text))
        self.last = now

    def press(self, key: str) -> None:
        """Type a key and record it as an event."""
        sent = SENT.get(key, key)
        os.write(self.terminal, sent.encode())
        self.bursts.append((time.monotonic() - self.began, INPUT, sent))

    def events(self) -> tuple[Event, ...]:
        """Return the bursts as events, at rounded times."""
        return tuple(
            Event(round(round(at / GRID) * GRID, 1), kind, text) for at, kind, text in self.bursts
        )
