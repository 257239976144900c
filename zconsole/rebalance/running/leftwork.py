"""What a job that died left halfway in a tree: the names there are for that job to settle."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.running import store
from zconsole.rebalance.running.locks import BusyTreeError
from zconsole.rebalance.running.store import Record


def refuse(roots: Sequence[bytes]) -> None:
    """Raise BusyTreeError where another job has unfinished work in, below or above these roots.

    Its temporary names would be walked as files; call it with the trees locked.
    """
    for record in store.records():
        root = _in_the_way(record, roots)
        if root is not None:
            raise BusyTreeError(
                f"job {record.job} was interrupted in {os.fsdecode(root)}:"
                f" let it go on first (zconsole rebalance resume {record.job}),"
                f" or give up what it left and delete {record.journal}"
            )


def _in_the_way(record: Record, roots: Sequence[bytes]) -> bytes | None:
    # A journal that is gone or damaged can be neither asked nor resumed.
    with (
        contextlib.suppress(ZconsoleError, OSError, sqlite3.Error),
        closing(Journal.open(record.journal, write=False)) as journal,
    ):
        common = [row for row in journal.roots() if any(_overlap(row.name, r) for r in roots)]
        if common and journal.unfinished():
            return next((row.name for row in common if _is_there(row)), None)
    return None


def _overlap(one: bytes, other: bytes) -> bool:
    first, second = (path.rstrip(b"/") + b"/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)


def _is_there(root: DirectoryRow) -> bool:
    """Whether a root is still the directory that was walked."""
    try:
        return Path(os.fsdecode(root.name)).stat().st_ino == root.ino
    except OSError:
        return False
