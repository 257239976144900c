"""Waiting for what happens in another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 30.0
"""Seconds after which it does not happen, however busy the machine is."""


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()
