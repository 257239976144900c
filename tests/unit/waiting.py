"""Waiting for what happens in another process or thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

PATIENCE = 30.0
"""Seconds after which it does not happen, however busy the machine is."""


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it comes true in time; until then one that raises, as of no file yet, is not true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            if condition():
                return True
        time.sleep(0.02)
    return condition()
