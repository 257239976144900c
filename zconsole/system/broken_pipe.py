"""Standard output whose reader may go away, as that of ``| head`` does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def for_who_reads() -> Iterator[None]:
    """All that is printed is sent by the end; that nobody reads on is no failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        swallow()


def swallow() -> None:
    """Point stdout nowhere, so that the interpreter's own last flush cannot complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
