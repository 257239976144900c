"""Standard output whose reader may go away, as that of ``| head`` does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def for_who_reads() -> Iterator[None]:
    """All that is printed is sent by the end; that nobody reads on is no failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        swallow()


def swallow(stream: TextIO | None = None) -> None:
    """Point a stream nowhere, else stdout: the interpreter's own last flush cannot complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), (stream or sys.stdout).fileno())
