"""The tables of a journal, and the database they are in."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

FORMAT = 1
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, parent INTEGER, name BLOB NOT NULL,
    dev INTEGER NOT NULL, ino INTEGER NOT NULL, mtime INTEGER, intent REAL);
CREATE TABLE files (id INTEGER PRIMARY KEY, dir INTEGER NOT NULL, name BLOB NOT NULL,
    ino INTEGER NOT NULL, size INTEGER NOT NULL, nlink INTEGER NOT NULL, rank INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT, temp BLOB, old INTEGER, new INTEGER, digest BLOB,
    offset INTEGER NOT NULL DEFAULT 0);
CREATE INDEX dirs_open ON dirs (id) WHERE intent IS NOT NULL;
CREATE TABLE days (day TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX IF NOT EXISTS files_order ON files (rank, dir, id);
CREATE INDEX IF NOT EXISTS files_links ON files (ino) WHERE nlink > 1;
CREATE INDEX IF NOT EXISTS files_open ON files (state) WHERE state IN (1, 2);
"""


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """The database of a journal, ``ro`` or ``rw``. Raises sqlite3.Error."""
    uri = f"file:{_quoted(path)}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
    with ExitStack() as refused:
        refused.enter_context(closing(db))
        if mode == "rw":
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
        refused.pop_all()
    return db


def empty(values: Mapping[str, Any]) -> bytes:
    """The content of a journal that has these values and no files."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        return db.serialize()


def write_new(path: Path, content: bytes) -> None:
    """Create a file for its owner only, whole and durable once it has its name.

    Raises FileExistsError, OSError.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        path.hardlink_to(draft)
    finally:
        draft.unlink()


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
