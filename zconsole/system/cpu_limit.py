"""A limit on the CPU time of one computation, for what works on text from another machine."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class CpuLimitError(Exception):
    """A computation took more CPU time than it may."""


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise CpuLimitError in what runs within, once that has taken so much CPU time.

    A thread could not be left behind instead: a pattern at work does not let go of the
    interpreter, but it does let signal handlers run. Those run in the main thread only; elsewhere
    nothing is limited.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise CpuLimitError(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
