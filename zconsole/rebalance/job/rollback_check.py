"""Files that have come back: a rollback undoes what a job has moved, and its journal knows nothing.

A copy is another inode than its original. Where one of some copies is the original again, all are
looked at. What was rewritten in place cannot be told from what was not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from zconsole.rebalance.engine.descriptors import OPEN_DIRECTORIES
from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.journal import FileRow, Journal, Result, State
from zconsole.rebalance.engine.syscalls import Sys

SAMPLE = 300
"""Files that are looked at when a job goes on."""
PAGE = 4000
"""Files looked at for one commit."""


def requeue(sys: Sys, journal: Journal, directories: Directories) -> int:
    """Put names that are their originals again back into the queue; returns how many."""
    try:
        if not any(_is_back(sys, directories, row) for row in journal.some_copied(SAMPLE)):
            return 0
        return sum(_put_back(journal, rows) for rows in _originals(sys, journal, directories))
    finally:
        directories.close()


def _originals(sys: Sys, journal: Journal, directories: Directories) -> Iterator[list[FileRow]]:
    last = 0
    while rows := journal.copied(last, PAGE):
        last = rows[-1].number
        yield [row for row in rows if _is_back(sys, directories, row)]


def _put_back(journal: Journal, rows: list[FileRow]) -> int:
    pending, linked = State.PENDING, State.LINKED
    journal.record([Result(r.number, pending if journal.is_first(r) else linked) for r in rows])
    return len(rows)


def _is_back(sys: Sys, directories: Directories, row: FileRow) -> bool:
    """Whether a name that got a copy has its original."""
    if len(directories) > OPEN_DIRECTORIES:
        directories.close()
    with contextlib.suppress(MovedError, OSError):
        return sys.lstat(directories.get(row.directory).fd, row.name).st_ino == row.old
    return False
