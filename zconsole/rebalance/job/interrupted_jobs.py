"""What a job that died left halfway in a tree: the names there are for that job to settle."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.claims import Claim, claim
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.job.locks import BusyTreeError


def refuse(roots: Sequence[bytes]) -> None:
    """Raise BusyTreeError where another job has unfinished work in, below or above these roots.

    Its temporary names would be walked as files; call it with the trees locked.
    """
    wanted = [claim(Sys(), root) for root in roots]
    for record in job_store.records():
        path = _in_the_way(record, wanted)
        if path is not None:
            raise BusyTreeError(
                f"job {record.job} was interrupted in {path}:"
                f" let it go on first (zconsole rebalance resume {record.job}),"
                f" or give up what it left and delete {record.journal}"
            )


def _in_the_way(record: Record, wanted: Sequence[Claim]) -> str | None:
    # A journal that is gone or damaged can be neither asked nor resumed.
    with (
        contextlib.suppress(ZconsoleError, OSError, sqlite3.Error),
        closing(Journal.open(record.journal, write=False)) as journal,
    ):
        there = [found for row in journal.roots() if (found := _found(row)) is not None]
        common = [one.path for one in there if any(one.overlaps(other) for other in wanted)]
        if common and journal.unfinished():
            return common[0]
    return None


def _found(root: DirectoryRow) -> Claim | None:
    """Where a root is now; None where it is not the directory that was walked."""
    try:
        found = claim(Sys(), root.name)
    except OSError:
        return None
    return found if found.inode == root.ino else None
