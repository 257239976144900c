"""Resuming a job: it must be the one asked for, on the directories of then.

A rollback undoes what a job has moved, and its journal knows nothing of that. A copy is another
inode than its original: where one of some copies is the original again, all are looked at. What was
rewritten in place cannot be distinguished from what was not.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zconsole.errors import UsageError, ZconsoleError
from zconsole.rebalance.engine.descriptors import OPEN_DIRECTORIES
from zconsole.rebalance.engine.directories import Directories, MovedError, open_path
from zconsole.rebalance.engine.journal import FileRow, Journal, again
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Settings

OPTIONS = ("engine", "aim", "accept_races", "allow_non_zfs", "during_scan", "rewrite_options")
"""What a job keeps for its whole life; its limits may change."""
SAMPLE = 300
"""Files that are looked at when a job goes on."""
PAGE = 4000
"""Files looked at for one commit."""


def refuse_difference(
    journal: Path, job: Settings, dirs: Collection[str], options: Mapping[str, Any]
) -> None:
    """Raise UsageError where other directories or options were given than the job has.

    Without ``dirs``, and with options as they are by default, nothing was given.
    """
    if dirs and set(dirs) != set(job.dirs):
        raise UsageError(
            f"{journal} is the journal of a job on {' '.join(job.dirs)}, not on {' '.join(dirs)}."
            " Leave out the directories to resume it, or name a new journal"
        )
    usual = Settings(dirs=())
    for name in OPTIONS:
        given, own = options[name], getattr(job, name)
        if given not in (own, getattr(usual, name)):
            option = f"--{name.replace('_', '-')}"
            value = "" if given is True else f" {given}"
            raise UsageError(
                f"{journal} is the journal of a job without {option}{value}."
                f" Leave out {option} to resume it, or name a new journal"
            )


def adopt_devices(sys: Sys, journal: Journal, places: Sequence[JobDirectory]) -> None:
    """Find the roots again, by filesystem and inode; device numbers may be new.

    Raises ZconsoleError where one is not what it was, OSError.
    """
    changes = {}
    by_root = {place.root: place for place in places}
    keys = journal.get("keys", dict) or {}
    for row in journal.roots():
        place = by_root.get(row.name)
        fd = open_path(sys, row.name)
        status = sys.fstat(fd)
        sys.close(fd)
        known = keys.get(os.fsdecode(row.name), "")
        now = place.key if place is not None else ""
        if not is_same_filesystem(known, now) or status.st_ino != row.ino:
            raise ZconsoleError(
                f"{os.fsdecode(row.name)} {how_it_differs(known, now)}. To give up what the job"
                f" left, delete {journal.path}; to go on, put back what was there"
            )
        if status.st_dev != row.dev:
            changes[row.dev] = status.st_dev
    if changes:
        journal.change_devices(changes)


def is_same_filesystem(one: str, other: str) -> bool:
    """Whether two keys (``JobDirectory.key``) mean the same filesystem.

    A dataset that was renamed keeps its guid, which others have none of.
    """
    return one == other or one.rpartition(":")[2] == other.rpartition(":")[2] != ""


def how_it_differs(known: str, now: str) -> str:
    """What a directory that is not the one of then is instead, by the keys of then and now."""
    if is_same_filesystem(known, now):
        return "is another directory than the one that was walked"
    then, here = map(_named, (known, now))
    rest = "made anew" if then == here else f"not {then}"
    return f"is on another filesystem now: {here}, {rest}"


def _named(key: str) -> str:
    """``tank/data (zfs)`` of the key of a filesystem."""
    kind, _, rest = key.partition(":")
    return f"{rest.rpartition(':')[0]} ({kind})" if rest else "an unknown one"


def requeue_restored(sys: Sys, journal: Journal, directories: Directories) -> int:
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
    journal.record([again(row) for row in rows])
    return len(rows)


def _is_back(sys: Sys, directories: Directories, row: FileRow) -> bool:
    """Whether a name that got a copy has its original."""
    if len(directories) > OPEN_DIRECTORIES:
        directories.close()
    with contextlib.suppress(MovedError, OSError):
        return sys.lstat(directories.get(row.directory).fd, row.name).st_ino == row.old
    return False
