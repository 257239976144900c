"""Waiting for events in another process or thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

PATIENCE = 30.0
"""Seconds after which an event counts as missing, however busy the machine is."""


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Return whether a condition becomes true in time; while it raises, it counts as false."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            if condition():
                return True
        time.sleep(0.02)
    return condition()
