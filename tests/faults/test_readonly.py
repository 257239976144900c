"""A filesystem that becomes read-only during a job: the job stops, and continues when resumed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tests.faults.harness import ALL, ALONE, CHANGING, FaultySys, descriptors_closed, run
from tests.faults.test_kill import Stage


def read_only_from(first: int) -> FaultySys:
    """Return system calls that fail from call ``first`` on if they would change something."""

    def fault(count: int, name: str) -> None:
        if count >= first and name in CHANGING - {"syncfs"}:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), 89)

    return FaultySys(fault)


def test_it_stops_and_is_brought_through_when_writable_again(area: Path) -> None:
    stage = Stage(area)
    changing = [number for number, call in enumerate(stage.calls) if call.changes]
    first = stage.first_of_each(lambda call: call.place)
    for number in changing if ALL else {*changing[::8], *first.intersection(changing)}:
        journal = stage.job()
        with descriptors_closed():
            _, summary = run(journal, read_only_from(number), ALONE)
        assert summary["stopped_by"] in ("mounted read-only", "done"), stage.calls[number]
        stage.settled(journal)
