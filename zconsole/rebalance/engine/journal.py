"""The journal of a job: files to move, intents under way, and the result of every file.

It is one SQLite file, in WAL mode with synchronous=FULL: a commit is on the disk before the call
returns, at one fsync each; with a few commits per batch that costs nothing next to the data. Notes
that a power cut may undo are not waited for. A file's temporary name is committed before the copy
is created, and its intent (old and new inode, digests of content and metadata) before its own name
is touched, so after any crash the journal alone tells which files are ours. Only the process that
works on the job writes to it; others send it requests through a file beside it
(``job.request_file``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.rebalance.backend import REPLACED
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal_database import (
    INDEXES,
    JournalDatabase,
    checked_name,
    checked_root,
)
from zconsole.system.records import parse_json


class State(IntEnum):
    """The state of a file. CREATING and SWAPPING need recovery after a crash."""

    PENDING = 0
    CREATING = 1
    SWAPPING = 2
    MOVED = 3
    SKIPPED = 4
    FAILED = 5
    LINKED = 6
    """Another name of an inode, for all of whose names the one with the smallest number stands."""


class FileRow(NamedTuple):
    """One walked name, with its state; ``old`` and ``new`` are inodes of original and copy."""

    number: int
    directory: int
    name: bytes
    ino: int
    size: int
    nlink: int
    state: State = State.PENDING
    temp: bytes | None = None
    old: int | None = None
    new: int | None = None
    digest: bytes | None = None
    offset: int = 0
    meta: bytes = b""
    """Digest of the original's metadata."""
    handle: bytes = b""
    """File handle of the copy, if it has one: another file may get its inode number later."""


class Intent(NamedTuple):
    """A planned change of one name, committed to the journal before it is made."""

    number: int
    state: State
    temp: bytes
    old: int
    new: int
    digest: bytes
    meta: bytes = b""
    handle: bytes = b""


class Result(NamedTuple):
    """The result of one name; ``temp`` is the name at which another version had to be kept."""

    number: int
    state: State
    reason: str | None = None
    temp: bytes | None = None


def again(row: FileRow) -> Result:
    """Return the result that queues a file again; of several names, ``record`` picks the first."""
    return Result(row.number, State.PENDING if row.nlink == 1 else State.LINKED)


DIRECTORIES = 10_000
"""Directories kept in memory: each file asks for its own, and for all above it."""
UNSETTLED = "; resume the job"
"""End of the reason for a file that a crash left halfway and recovery could not settle."""
_UNSETTLED_FILES = f"state = 5 AND temp IS NOT NULL AND reason LIKE '%{UNSETTLED}'"
_STATES = {int(state): state for state in State}
_COLUMNS = "id, dir, name, ino, size, nlink, state, temp, old, new, digest, offset, meta, handle"
_LEAD = """
UPDATE files SET state = 0 WHERE id IN (
    SELECT min(CASE other.state WHEN 6 THEN other.id END)
    FROM (SELECT DISTINCT files.ino, dev FROM json_each(?)
        JOIN files ON files.id = value JOIN dirs ON dirs.id = dir WHERE nlink > 1) AS ended
    JOIN files other ON other.ino = ended.ino AND other.nlink > 1
    JOIN dirs here ON here.id = other.dir AND here.dev = ended.dev
    GROUP BY ended.ino, ended.dev HAVING sum(other.state IN (0, 1, 2)) = 0)
"""
"""Queues the first LINKED name of each given file's inode, if none of its names is still to do.

States are numbers of ``State``: 6 is LINKED; 0, 1 and 2 are still to do.
"""


class Journal(JournalDatabase):
    """An open journal. All methods raise sqlite3.Error if its disk fails."""

    _noted: Collection[int] = ()
    """Directories (numbers) whose noted times are kept until they can be reached again."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self.directory = lru_cache(DIRECTORIES)(self._read_directory)

    # Daily statistics.

    def add_day(self, day: str, line: Mapping[str, Any]) -> None:
        """Store the figures of one day, replacing earlier ones of the same day."""
        self._db.execute("INSERT OR REPLACE INTO days VALUES (?, ?)", (day, json.dumps(line)))

    def days(self) -> list[dict[str, Any]]:
        """Return the figures of all days, oldest first."""
        return [parse_json(r[0]) for r in self._db.execute("SELECT line FROM days ORDER BY day")]

    # The walk.

    def add_directory(self, row: DirectoryRow) -> None:
        """Store one walked directory."""
        values = (row.number, row.parent, row.name, row.dev, row.ino)
        sql = "INSERT INTO dirs (id, parent, name, dev, ino) VALUES (?, ?, ?, ?, ?)"
        self._db.execute(sql, values)

    def add_files(self, rows: Iterable[tuple[int, bytes, int, int, int, int]]) -> None:
        """Store walked files as PENDING; a row is dir, name, ino, size, nlink, rank."""
        sql = (
            "INSERT INTO files (dir, name, ino, size, nlink, rank, state)"
            " VALUES (?, ?, ?, ?, ?, ?, 0)"
        )
        self._db.executemany(sql, rows)

    def clear_walk(self) -> None:
        """Delete every file and directory, and their results."""
        self.begin()
        for table in ("files", "dirs", "days"):
            self._db.execute(f"DELETE FROM {table}")
        self.commit()
        self.directory.cache_clear()

    def finish_walk(self, split_links: bool) -> None:
        """Index the walked files and group hard links.

        The first name of an inode stands for all. With ``split_links`` (the copy engine) an inode
        that has names outside the set is skipped: a copy would split it into two files.
        """
        self._db.executescript(INDEXES)
        groups = (
            "SELECT d.dev AS dev, f.ino AS ino, min(f.id) AS first, count(*) AS seen,"
            " max(f.nlink) AS nlink FROM files f JOIN dirs d ON d.id = f.dir"
            " WHERE f.nlink > 1 AND f.state = 0 GROUP BY 1, 2"
        )
        rows = self._db.execute(groups).fetchall()
        self.begin()
        for dev, ino, first, seen, nlink in rows:
            where = (
                " WHERE ino = ? AND nlink > 1 AND state = 0"
                " AND dir IN (SELECT id FROM dirs WHERE dev = ?)"
            )
            if split_links and seen != nlink:
                sql = "UPDATE files SET state = 4, reason = 'hard links outside the set'" + where
                self._db.execute(sql, (ino, dev))
            else:
                sql = "UPDATE files SET state = 6, size = 0" + where + " AND id != ?"
                self._db.execute(sql, (ino, dev, first))
        self.commit()

    # The work.

    def _read_directory(self, number: int) -> DirectoryRow:
        """Return the walked directory with this number."""
        sql = "SELECT id, parent, name, dev, ino FROM dirs WHERE id = ?"
        return _directory(self._db.execute(sql, (number,)).fetchone())

    def roots(self) -> list[DirectoryRow]:
        """Return the directories that the job was given."""
        sql = "SELECT id, parent, name, dev, ino FROM dirs WHERE parent IS NULL ORDER BY id"
        return [_directory(row) for row in self._db.execute(sql)]

    def change_devices(self, changes: Mapping[int, int]) -> None:
        """Replace device numbers, old to new: those of datasets differ from boot to boot."""
        self.begin()
        # By way of negative numbers: a new number may be the old one of another dataset.
        for old, new in changes.items():
            self._db.execute("UPDATE dirs SET dev = ? WHERE dev = ?", (-new, old))
        self._db.execute("UPDATE dirs SET dev = -dev WHERE dev < 0")
        self.commit()
        self.directory.cache_clear()

    def moved_bytes(self) -> int:
        """Return the bytes of the moved files, counting an inode with several names once."""
        single = "SELECT coalesce(sum(size), 0) FROM files WHERE state = 3 AND nlink = 1"
        several = (
            "SELECT coalesce(sum(size), 0) FROM (SELECT max(f.size) AS size FROM files f"
            " JOIN dirs d ON d.id = f.dir WHERE f.state = 3 AND f.nlink > 1 GROUP BY d.dev, f.ino)"
        )
        return sum(int(self._db.execute(sql).fetchone()[0]) for sql in (single, several))

    def todo(self, after: tuple[int, int, int], count: int) -> list[tuple[int, FileRow]]:
        """Return the next files to move after (rank, dir, id), in that order, with their ranks."""
        sql = (
            f"SELECT rank, {_COLUMNS} FROM files WHERE (rank, dir, id) > (?, ?, ?)"
            " AND state = 0 ORDER BY rank, dir, id LIMIT ?"
        )
        rows = self._db.execute(sql, (*after, count))
        return [(row[0], _file(row[1:])) for row in rows]

    def names_of(self, row: FileRow) -> list[FileRow]:
        """Return every walked name of a file's inode, the given one first."""
        if row.nlink == 1:
            return [row]
        sql = (
            f"SELECT {_COLUMNS} FROM files WHERE ino = ? AND nlink > 1 AND state = 6"
            " AND dir IN (SELECT id FROM dirs WHERE dev = (SELECT dev FROM dirs WHERE id = ?))"
        )
        return [row, *map(_file, self._db.execute(sql, (row.ino, row.directory)))]

    def unfinished(self) -> list[FileRow]:
        """Return the files that a crash may have left half replaced."""
        sql = f"SELECT {_COLUMNS} FROM files WHERE state IN (1, 2) ORDER BY id"
        return [_file(row) for row in self._db.execute(sql)]

    def is_interrupted(self) -> bool:
        """Whether any file may be half replaced: unfinished, or not settled by recovery."""
        sql = f"SELECT EXISTS (SELECT 1 FROM files WHERE state IN (1, 2) OR {_UNSETTLED_FILES})"
        return bool(self._db.execute(sql).fetchone()[0])

    def record(
        self,
        results: Sequence[Result],
        intents: Sequence[Intent] = (),
        directories: Mapping[int, tuple[int, float]] | None = None,
        synced: bool = True,
    ) -> None:
        """Commit results and the next intents together, in one durable step.

        ``directories`` has, by number, the modification time (ns) to restore and when it was noted
        (epoch seconds). All other directories count as restored, if everything done to them is
        ``synced`` to the disks. With None the list of directories stays as it is.
        """
        self.begin()
        self._db.executemany(
            "UPDATE files SET state = ?, reason = ?, temp = ? WHERE id = ?",
            [(int(r.state), r.reason, r.temp, r.number) for r in results],
        )
        self._db.executemany(
            "UPDATE files SET state = ?, temp = ?, old = ?, new = ?, digest = ?, meta = ?,"
            " handle = ? WHERE id = ?",
            [(int(i.state), *i[2:], i.number) for i in intents],
        )
        # After the results: a name that ended may have stood for others that are LINKED.
        self._db.execute(_LEAD, (json.dumps([r.number for r in results]),))
        if directories is not None and synced:
            self.close_directories()
        self._db.executemany(
            "UPDATE dirs SET mtime = ?, intent = ? WHERE id = ?",
            [(mtime, t, number) for number, (mtime, t) in (directories or {}).items()],
        )
        self.commit()

    def set_offset(self, number: int, offset: int) -> None:
        """Store how far the rewrite engine is inside a file (bytes); a power cut may undo this."""
        with self.lazily_durable():
            self._db.execute("UPDATE files SET offset = ? WHERE id = ?", (offset, number))

    def open_directories(self) -> dict[int, tuple[int, float]]:
        """Return the directories whose modification time a crash may have left wrong.

        By number: the time to restore (ns), and when it was noted (epoch seconds).
        """
        sql = "SELECT id, mtime, intent FROM dirs WHERE intent IS NOT NULL"
        return {number: (mtime, t) for number, mtime, t in self._db.execute(sql)}

    def leave_directory(self, number: int) -> None:
        """Note that a directory keeps the time that it has; a power cut may undo this."""
        with self.lazily_durable():
            self._db.execute("UPDATE dirs SET intent = NULL WHERE id = ?", (number,))

    def keep_noted(self, numbers: Collection[int]) -> None:
        """Keep what is noted of directories that can't be reached, for a later recovery."""
        self._noted = frozenset(numbers)

    def close_directories(self) -> None:
        """Note that every directory has its time again, except those with unfinished files.

        Recovery will change the directory of such a file once more.
        """
        unfinished = "SELECT dir FROM files WHERE state IN (1, 2)"
        self._db.execute(
            f"UPDATE dirs SET intent = NULL WHERE intent IS NOT NULL AND id NOT IN ({unfinished})"
            " AND id NOT IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(self._noted)),),
        )

    def retry(self) -> None:
        """Queue failed files again, and those skipped as in use, changed or too large.

        Files that could not be settled are left to recovery again.
        """
        # CREATING if the copy had no inode in the journal yet, otherwise SWAPPING.
        self._db.execute(
            f"UPDATE files SET state = CASE new WHEN 0 THEN 1 ELSE 2 END WHERE {_UNSETTLED_FILES}"
        )
        sql = (
            f"SELECT {_COLUMNS} FROM files WHERE state = 5 AND temp IS NULL"
            " OR state = 4 AND reason IN"
            " ('open for writing', 'changed', 'locked', 'leased by another process',"
            " 'directory moved', 'too large for the free space',"
            " 'its names are in more directories than can be open')"
        )
        self.record([again(_file(row)) for row in self._db.execute(sql).fetchall()])

    def some_copied(self, count: int) -> list[FileRow]:
        """Return a random sample of the names that got copies."""
        some = "SELECT id FROM files WHERE state = 3 AND new > 0 ORDER BY random() LIMIT ?"
        sql = f"SELECT {_COLUMNS} FROM files WHERE id IN ({some}) ORDER BY dir"
        return [_file(row) for row in self._db.execute(sql, (count,))]

    def copied(self, after: int, count: int) -> list[FileRow]:
        """Return the next names that got copies, in the order of their numbers."""
        moved = "state = 3 AND new > 0 AND id > ? ORDER BY id LIMIT ?"
        sql = f"SELECT {_COLUMNS} FROM files WHERE {moved}"
        return [_file(row) for row in self._db.execute(sql, (after, count))]

    def counts(self) -> dict[State, tuple[int, int]]:
        """Return the number and bytes of files by state."""
        sql = (
            "SELECT state, count(*), sum(size) FROM files WHERE state IN (0, 1, 2, 3, 4, 5, 6)"
            " GROUP BY state"
        )
        return {State(s): (n, size) for s, n, size in self._db.execute(sql)}

    def reasons(self, state: State) -> dict[str, int]:
        """Return the number of files in a state by reason."""
        sql = "SELECT reason, count(*) FROM files WHERE state = ? GROUP BY reason"
        return {reason or "": n for reason, n in self._db.execute(sql, (int(state),))}

    def left_out(self, most: int) -> list[tuple[int, bytes, State, str | None]]:
        """Return directory, name, state and reason of failed files, then of skipped ones.

        Files that others have replaced need no move any more and are left out.
        """
        sql = (
            "SELECT dir, name, state, reason FROM files WHERE state = ? AND reason IS NOT ?"
            " ORDER BY id LIMIT ?"
        )
        rows: list[tuple[int, bytes, State, str | None]] = []
        for state in (State.FAILED, State.SKIPPED):
            found = self._db.execute(sql, (int(state), REPLACED, most - len(rows)))
            rows += [(number, name, state, reason) for number, name, _, reason in found]
        return rows


def _file(row: Sequence[Any]) -> FileRow:
    return FileRow._make((*row[:2], checked_name(row[2]), *row[3:6], _STATES[row[6]], *row[7:]))


def _directory(row: Sequence[Any]) -> DirectoryRow:
    number, parent, name, *rest = row
    check = checked_root if parent is None else checked_name
    return DirectoryRow(number, parent, check(name), *rest)
