"""Leaving a program that a call inside the kernel keeps from hearing its signals.

On a dead server or a suspended pool a call may never end. No handler of the thread that makes it
runs meanwhile, and the kernel keeps the signal pending, where everybody can see it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from zconsole.errors import ExitCode

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK = 0.5
"""Seconds between two looks."""


@contextlib.contextmanager
def left_when_deaf(patience: float) -> Iterator[None]:
    """End the program, from a thread beside, when a signal has been pending for so many seconds."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over, patience), daemon=True, name="deaf")
    watch.start()
    try:
        yield
    finally:
        over.set()


def _watch(over: threading.Event, patience: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # not for this thread to take
    looks = 0
    while not over.wait(LOOK):
        looks = looks + 1 if _pending() else 0
        if looks * LOOK >= patience:
            os.write(2, b"zconsole: left: a call to a filesystem does not end\n")
            os._exit(ExitCode.INTERRUPTED)


def _pending() -> bool:
    """Whether one of the signals waits for the main thread."""
    text = Path(f"/proc/self/task/{os.getpid()}/status").read_text()
    masks = (line.split()[1] for line in text.splitlines() if line[:7] in ("SigPnd:", "ShdPnd:"))
    return any(int(mask, 16) & 1 << (number - 1) for mask in masks for number in SIGNALS)
