"""Journals with values that no version has written are rejected, and no file is touched."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, Killed, create, descriptors_closed, run
from zconsole.errors import ZconsoleError

COLUMNS = {
    "files": (
        "id", "dir", "name", "ino", "size", "nlink", "rank", "state", "reason", "temp", "old",
        "new", "digest", "offset",
    ),
    "dirs": ("id", "parent", "name", "dev", "ino", "mtime", "intent"),
}  # fmt: skip
VALUES = ("text", -1, b"\0", 1e400, None)
KEYS = ("job", "keys", "progress", "format", "changing_until", "walk_skipped")


def died(area: Path) -> tuple[Path, bytes]:
    """Return the journal of a job that died between the names of a file, and its content."""
    root = area / "tree"
    (root / "below").mkdir(parents=True)
    for path in (root / "below" / "one", root / "two"):
        path.write_bytes(path.name.encode() * 100)
    (root / "three").hardlink_to(root / "two")
    journal = area / "job.db"
    create(root, journal)
    sys, exchanges = FaultySys(), itertools.count()
    sys.after = lambda _, name, result: (
        sys.die() if name == "exchange" and next(exchanges) == 1 else None
    )
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, sys, ALONE)
    with closing(sqlite3.connect(journal)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return journal, journal.read_bytes()


def edited(journal: Path, content: bytes, sql: str, *values: Any) -> None:
    """Edit a journal with SQL and run its job."""
    journal.write_bytes(content)
    with closing(sqlite3.connect(journal)) as db, db, suppress(sqlite3.IntegrityError):
        db.execute(sql, values)
    with descriptors_closed(), suppress(ZconsoleError, sqlite3.Error):
        run(journal, None, ALONE)


def whole(root: Path) -> bool:
    """Return whether every name has its original content."""
    two = (root / "two").read_bytes() == (root / "three").read_bytes() == b"two" * 100
    return two and (root / "below" / "one").read_bytes() == b"one" * 100


@pytest.mark.parametrize("table", COLUMNS)
def test_a_value_out_of_range(area: Path, table: str) -> None:
    journal, content = died(area)
    for column, value in itertools.product(COLUMNS[table], VALUES):
        for where in ("1", f"id = (SELECT max(id) FROM {table})"):
            sql = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}"
            edited(journal, content, sql, value)
            assert whole(area / "tree"), (column, value)


def test_a_directory_below_itself(area: Path) -> None:
    journal, content = died(area)
    edited(journal, content, "UPDATE dirs SET parent = id WHERE id = 2")
    assert whole(area / "tree")


@pytest.mark.parametrize("key", KEYS)
def test_a_setting_of_another_kind(area: Path, key: str) -> None:
    journal, content = died(area)
    for value in (-1, "text", [1], {"x": 1}, None):
        edited(
            journal, content, "INSERT OR REPLACE INTO meta VALUES (?, ?)", key, json.dumps(value)
        )
        assert whole(area / "tree"), value


@pytest.mark.parametrize("table", ["files", "dirs", "meta", "days"])
def test_a_table_of_another_form(area: Path, table: str) -> None:
    journal, content = died(area)
    for sql in (f"DROP TABLE {table}", f"DELETE FROM {table}", f"ALTER TABLE {table} ADD COLUMN x"):
        edited(journal, content, sql)
        assert whole(area / "tree"), sql
