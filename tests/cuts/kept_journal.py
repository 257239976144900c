"""The real journal on an in-memory database, of which every commit leaves an image."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.cuts.descriptors import DEVICE
from tests.cuts.disk import ROOT, Disk
from zconsole.rebalance.engine import journal_database
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal

PLACE = Path("/model/job.db")
NAME = "abcdef"
_LAZY = "PRAGMA synchronous = NORMAL"
_EAGER = "PRAGMA synchronous = FULL"
_WRITING = ("BEGIN", "INSERT", "UPDATE", "DELETE")

COLUMNS = ("id", "dir", "name", "state", "reason", "temp", "old", "new", "digest")

Commit = Callable[[bytes, bool], None]
"""Called with the image after a commit, and whether the commit waited for the disk."""


class KeptDatabase(sqlite3.Connection):
    """A connection that reports its commits."""

    durable = True
    committed: Commit | None = None
    begun = 0
    """Number of transactions started."""
    failing: int = 0
    """Number of the transaction whose commit fails."""
    full: bool = False
    """Whether nothing can be written after that, either."""
    _changes = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql in (_LAZY, _EAGER):
            self.durable = sql == _EAGER
        if sql == "COMMIT":
            self.begun += 1
            if self.begun == self.failing:
                super().execute("ROLLBACK")
                raise sqlite3.OperationalError("disk I/O error")
        if self.full and self.begun >= self.failing and sql.startswith(_WRITING):
            raise sqlite3.OperationalError("database or disk is full")
        result = super().execute(sql, parameters)
        if self.committed is not None and not self.in_transaction:
            changes = self.total_changes
            if changes != self._changes:
                self._changes = changes
                self.committed(self.serialize(), self.durable)
        return result


def opened(
    image: bytes, committed: Commit | None = None, failing: int = 0, full: bool = False
) -> Journal:
    """Open the journal of an image; the commit ``failing`` fails, if ``full`` all from it on."""
    db = sqlite3.connect(":memory:", isolation_level=None, factory=KeptDatabase)
    db.deserialize(image)
    db._changes = db.total_changes
    db.committed, db.failing, db.full = committed, failing, full
    return Journal(db, PLACE)


def created(disk: Disk, values: dict[str, Any]) -> bytes:
    """Return the image of a journal that lists all files of a disk, as a walk leaves it."""
    image = journal_database.empty({"format": journal_database.FORMAT, **values})
    with closing(opened(image)) as journal:
        numbers: dict[bytes, int] = {}
        files: list[tuple[int, bytes, int, int, int, int]] = []
        for path, identity in ((b"", ROOT), *disk.walk()):
            inode = disk.inodes[identity]
            above, _, name = path.rpartition(b"/")
            if inode.is_directory:
                parent = numbers[above] if path else None
                numbers[path] = len(numbers) + 1
                row = (numbers[path], parent, name or b"/", DEVICE, inode.number)
                journal.add_directory(DirectoryRow(*row))
            else:
                rank = 63 - inode.size.bit_length()
                about = (inode.number, inode.size, disk.links[identity], rank)
                files.append((numbers[above], name, *about))
        journal.add_files(files)
        journal.finish_walk(split_links=True)
        return _image(journal)


def begun(journal: Journal) -> int:
    """Return the number of transactions started."""
    db = journal._db
    return db.begun if isinstance(db, KeptDatabase) else 0


def _image(journal: Journal) -> bytes:
    return journal._db.serialize()


@lru_cache(maxsize=64)
def rows_of(image: bytes) -> list[dict[str, Any]]:
    """Return the files in an image: every column of each row, and the path."""
    with closing(opened(image)) as journal:
        return rows(journal)


def rows(journal: Journal) -> list[dict[str, Any]]:
    """Return the files in an open journal: every column of each row, and the path."""
    paths: dict[int, bytes] = {}
    for number, parent, name in journal._db.execute("SELECT id, parent, name FROM dirs"):
        paths[number] = b"" if parent is None else paths[parent] + name + b"/"
    found = journal._db.execute(f"SELECT {', '.join(COLUMNS)} FROM files ORDER BY id")
    files = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    return [{**file, "path": paths[file["dir"]] + file["name"]} for file in files]


def directories(journal: Journal) -> list[tuple[Any, ...]]:
    """Return the rows of an open journal about directories."""
    return list(journal._db.execute("SELECT id, mtime, intent FROM dirs"))
