"""What is told while a job is begun and runs: it goes on when nobody takes it any more."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow

Show = Callable[[Sequence[dict[str, Any]]], None]


def lasting(show: Show) -> Show:
    """The same until nobody takes it any more: the job goes on to its end and has it in status."""

    def told(records: Sequence[dict[str, Any]]) -> None:
        try:
            show(records)
        except OSError as error:
            _forget(sys.stdout)
            with contextlib.suppress(OSError):
                reason = "nobody reads it" if error.errno == errno.EPIPE else error.strerror
                say(f"zconsole: stdout: {reason}; the job goes on")

    return told


def records(
    outcomes: Sequence[FileOutcome], engine: str, path: Callable[[FileRow], str]
) -> list[dict[str, Any]]:
    """What became of files, a JSON object each."""
    return [
        {
            "path": path(done.row),
            "bytes": done.bytes,
            "engine": engine,
            "outcome": done.outcome,
            "reason": done.reason,
        }
        for done in outcomes
    ]


def say(text: str, end: str = "\n") -> bool:
    """Whether anybody could read it; a job goes on for who wants no more than its name."""
    try:
        sys.stderr.write(text + end)
        sys.stderr.flush()
    except BrokenPipeError:
        _forget(sys.stderr)
        return False
    return True


def _forget(stream: TextIO) -> None:
    """Have what is written to a stream from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno())
