"""The database of a journal: its tables, checks of its content, and JSON values by key."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

from zconsole.errors import NotFoundError, NotUnderstoodError, ZconsoleError
from zconsole.system import state_dir
from zconsole.system.records import parse_json

FORMAT = 1
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, parent INTEGER, name BLOB NOT NULL,
    dev INTEGER NOT NULL, ino INTEGER NOT NULL, mtime INTEGER, intent REAL);
CREATE TABLE files (id INTEGER PRIMARY KEY, dir INTEGER NOT NULL, name BLOB NOT NULL,
    ino INTEGER NOT NULL, size INTEGER NOT NULL, nlink INTEGER NOT NULL, rank INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT, temp BLOB, old INTEGER, new INTEGER, digest BLOB,
    offset INTEGER NOT NULL DEFAULT 0, meta BLOB NOT NULL DEFAULT x'',
    handle BLOB NOT NULL DEFAULT x'');
CREATE INDEX dirs_open ON dirs (id) WHERE intent IS NOT NULL;
CREATE TABLE days (day TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX IF NOT EXISTS files_order ON files (rank, dir, id);
CREATE INDEX IF NOT EXISTS files_links ON files (ino) WHERE nlink > 1;
CREATE INDEX IF NOT EXISTS files_open ON files (state) WHERE state IN (1, 2);
"""
WRONG = {
    "dirs": """
        instr(name, x'00') OR typeof(dev) != 'integer' OR typeof(ino) != 'integer' OR parent >= id
        OR parent NOT IN (SELECT id FROM dirs)
        OR typeof(parent) NOT IN ('integer', 'null') OR typeof(mtime) NOT IN ('integer', 'null')
        OR typeof(intent) NOT IN ('real', 'integer', 'null')
        OR intent IS NOT NULL AND mtime IS NULL""",
    "files": """
        typeof(ino) != 'integer' OR typeof(size) != 'integer' OR size < 0
        OR typeof(nlink) != 'integer' OR typeof(rank) != 'integer' OR typeof(offset) != 'integer'
        OR offset < 0 OR typeof(state) != 'integer' OR state NOT BETWEEN 0 AND 6
        OR instr(name, x'00') OR typeof(temp) NOT IN ('blob', 'null')
        OR typeof(old) NOT IN ('integer', 'null') OR typeof(new) NOT IN ('integer', 'null')
        OR typeof(digest) NOT IN ('blob', 'null') OR typeof(meta) != 'blob'
        OR typeof(handle) != 'blob'
        OR dir NOT IN (SELECT id FROM dirs)""",
}
"""By table, a condition that no row may meet.

A parent with a larger number than its child could close a circle, in which no path ends.
"""


LOG_INDEX = 1 << 16
"""Free bytes below which SQLite may be unable to extend the index of its log (by 32 KiB)."""


class JournalDatabase:
    """An open database of JSON values by key, which other processes may read meanwhile."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self.path = path

    @classmethod
    def create(cls, path: Path, values: Mapping[str, Any] | None = None) -> Self:
        """Create a journal with some values, readable by its owner only.

        It appears complete, never half written. Raises FileExistsError, StateError, OSError.
        """
        state_dir.create_private(path, _in_wal(empty({"format": FORMAT, **(values or {})})))
        return cls(connect(path, "rw"), path)

    @classmethod
    def open(cls, path: Path, write: bool = True) -> Self:
        """Open an existing journal.

        Raises NotFoundError, NotUnderstoodError, ZconsoleError if its disk is full, and StateError
        as ``connect`` does.
        """
        with ExitStack() as refused:
            try:
                with full_disk_named(path):
                    db = refused.enter_context(closing(connect(path, "rw" if write else "ro")))
                    opened = cls(db, path)
                    known = opened.get("format")
            except FileNotFoundError as error:
                raise NotFoundError(f"no journal {path}") from error
            except sqlite3.DatabaseError as error:
                raise NotUnderstoodError(f"{path} is not a rebalance journal: {error}") from error
            if known != FORMAT:
                raise NotUnderstoodError(f"{path} has journal format {known}, not {FORMAT}")
            refused.pop_all()
        return opened

    def close(self) -> None:
        """Close the database; what was committed stays."""
        self._db.close()

    # Settings, progress and status: JSON values by key.

    def get(self, key: str, kind: type = object) -> Any:
        """Return a value, or None if there is none.

        Raises sqlite3.DatabaseError if it is damaged, or not of this ``kind``.
        """
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        try:
            value = None if row is None else parse_json(row[0])
        except (ValueError, TypeError) as error:
            raise sqlite3.DatabaseError(f"the value of {key}: {error}") from error
        if value is not None and not isinstance(value, kind):
            raise sqlite3.DatabaseError(f"the value of {key}: {value!r}")
        return value

    def check(self) -> None:
        """Raise sqlite3.DatabaseError for a row that no version of zconsole can have written."""
        for table, wrong in WRONG.items():
            row = self._db.execute(f"SELECT id FROM {table} WHERE {wrong} LIMIT 1").fetchone()
            if row is not None:
                raise sqlite3.DatabaseError(f"row {row[0]} of {table} is not one of a job's")

    def set(self, key: str, value: Any) -> None:
        """Store a value, durably."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def jot(self, key: str, value: Any) -> None:
        """Store a value that a power cut may undo: the next commit makes it durable."""
        with self.lazily_durable():
            self.set(key, value)

    def begin(self) -> None:
        """Start a transaction."""
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make everything since ``begin`` durable."""
        self._db.execute("COMMIT")

    @contextmanager
    def lazily_durable(self) -> Iterator[None]:
        """Context whose commits don't wait for the disk; the first one after it makes them durable.

        In WAL mode, synchronous=NORMAL may lose commits in a power cut, but damages nothing.
        """
        self._db.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self._db.execute("PRAGMA synchronous = FULL")


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Raise ZconsoleError for an error of a journal at ``path`` that means that its disk is full.

    SQLite calls it an I/O error where it can't extend the index of its log, or meets a quota.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says at which call
        if code == sqlite3.SQLITE_IOERR:
            status = os.statvfs(path.parent)
            full = status.f_bavail * status.f_frsize < LOG_INDEX
        else:
            full = code == sqlite3.SQLITE_FULL
        if full:
            raise ZconsoleError(f"the disk of the journal is full: {path}") from error
        raise


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open the database of a journal, ``ro`` or ``rw``.

    Raises sqlite3.Error, FileNotFoundError, and StateError for one that others could have written.
    """
    state_dir.check_database(path)
    uri = f"file:{_quoted(path)}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
    with ExitStack() as refused:
        refused.enter_context(closing(db))
        if mode == "rw":
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
        refused.pop_all()
    return db


def delete(path: Path) -> None:
    """Remove a journal and SQLite's companion files. Raises StateError, OSError."""
    for suffix in ("", *state_dir.COMPANIONS):
        state_dir.remove(path.with_name(path.name + suffix))


def empty(values: Mapping[str, Any]) -> bytes:
    """Return the bytes of a database that has these values and no files."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        return db.serialize()


def _in_wal(image: bytes) -> bytes:
    """Return the image of a database with its header set to WAL mode.

    Format: sqlite.org/fileformat2.html, 1.3.3. SQLite's own switch keeps a rollback journal beside
    the database for a moment; after a power cut just then, no reader could open it read-only.
    """
    return image[:18] + b"\2\2" + image[20:]


def checked_name(name: Any) -> bytes:
    """Return a name from a journal. Raises sqlite3.DatabaseError if it leads elsewhere."""
    if not isinstance(name, bytes) or b"/" in name or name in (b"", b".", b".."):
        raise sqlite3.DatabaseError(f"{name!r} is not a file name")
    return name


def checked_root(path: Any) -> bytes:
    """Return a root's path from a journal.

    Raises sqlite3.DatabaseError if it is relative or has a ``..``.
    """
    if not isinstance(path, bytes) or not path.startswith(b"/") or b".." in path.split(b"/"):
        raise sqlite3.DatabaseError(f"{path!r} is not the path of a directory")
    return path


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
