"""Standard output whose reader may go away, like ``| head``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def for_who_reads() -> Iterator[None]:
    """Flush all output at the end; a closed pipe is not a failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        swallow()


def swallow(stream: TextIO | None = None) -> None:
    """Redirect a stream (default: stdout) to nowhere, so that the last flush at exit can't fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), (stream or sys.stdout).fileno())
