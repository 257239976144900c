"""The database of a journal: what is refused, what is removed, what others do to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.errors import NotFoundError, NotUnderstoodError, ZconsoleError
from zconsole.rebalance.engine import journal_database
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Journal

FULL = 2
"""The value of ``PRAGMA synchronous`` (sqlite.org/pragma.html)."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a closed journal with one file."""
    path = tmp_path / "job.db"
    with closing(Journal.create(path)) as journal:
        journal.add_directory(DirectoryRow(1, None, b"/tree", 7, 2))
        journal.add_files([(1, b"a", 11, 5, 1, 0)])
    return path


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    """The open journal with one file."""
    with closing(Journal.open(path)) as journal:
        yield journal


def test_a_commit_waits_for_the_disk_however_sqlite_was_built(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def _lazy(*words: Any, **more: Any) -> sqlite3.Connection:
        db = connect(*words, **more)
        db.execute("PRAGMA synchronous = OFF")
        return db

    monkeypatch.setattr(sqlite3, "connect", _lazy)
    with closing(Journal.open(path)) as journal:
        assert journal._db.execute("PRAGMA synchronous").fetchone() == (FULL,)


class Refusing(sqlite3.Connection):
    """A database that cannot be read or written."""

    closed = 0

    def execute(self, *_: Any) -> sqlite3.Cursor:
        """Fail as on a damaged disk."""
        raise sqlite3.OperationalError("disk I/O error")

    def close(self) -> None:
        """Count the call."""
        Refusing.closed += 1
        super().close()


def test_a_database_that_cannot_be_used_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Refusing))
    monkeypatch.setattr(Refusing, "closed", 0)
    with pytest.raises(sqlite3.OperationalError):
        journal_database.connect(path, "rw")
    assert Refusing.closed == 1


def test_a_new_journal_leaves_nothing_to_roll_back_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    connect = journal_database.connect

    def _watched(path: Path, mode: str) -> sqlite3.Connection:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as before:
            found.append(before.execute("PRAGMA journal_mode").fetchone()[0])
        return connect(path, mode)

    monkeypatch.setattr(journal_database, "connect", _watched)
    Journal.create(tmp_path / "new.db").close()
    assert found == ["wal"]


def test_a_missing_journal_and_no_journal_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no journal"):
        Journal.open(tmp_path / "none.db")
    (tmp_path / "text.db").write_bytes(b"text" * 512)
    with pytest.raises(NotUnderstoodError, match="not a rebalance journal"):
        Journal.open(tmp_path / "text.db")


@pytest.mark.parametrize("write", [True, False])
def test_a_journal_of_a_newer_format_is_refused(path: Path, write: bool) -> None:
    with closing(Journal.open(path)) as journal:
        journal.set("format", 99)
    with pytest.raises(NotUnderstoodError, match="format 99"):
        Journal.open(path, write)


def test_a_journal_that_others_can_write_is_refused(path: Path) -> None:
    path.chmod(0o666)
    with pytest.raises(ZconsoleError):
        Journal.open(path)


def test_a_closed_journal_is_closed(path: Path) -> None:
    journal = Journal.open(path)
    journal.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        journal.get("format")


def test_a_value_that_is_damaged_or_of_another_kind_is_refused(journal: Journal) -> None:
    journal.set("text", "5")
    assert (journal.get("text"), journal.get("none", int)) == ("5", None)
    with pytest.raises(sqlite3.DatabaseError, match="the value of text: '5'"):
        journal.get("text", int)
    journal._db.execute("UPDATE meta SET value = '{' WHERE key = 'text'")
    with pytest.raises(sqlite3.DatabaseError, match="the value of text: Expecting"):
        journal.get("text")
    journal._db.execute("UPDATE meta SET value = ? WHERE key = 'text'", ("[" * 100_000,))
    with pytest.raises(sqlite3.DatabaseError, match="the value of text: nested too deep"):
        journal.get("text")


@pytest.mark.parametrize("wrong", ["dirs SET parent = 1", "files SET state = 9"])
def test_a_row_that_is_not_of_a_job_is_refused(journal: Journal, wrong: str) -> None:
    journal.check()
    journal._db.execute(f"UPDATE {wrong}")
    with pytest.raises(sqlite3.DatabaseError, match="not one of a job's"):
        journal.check()


@rows("name", [b"", b".", b"..", b"a/b", "text", None])
def test_a_name_that_leads_elsewhere_is_refused(name: object) -> None:
    assert journal_database.checked_name(b"...") == b"..."
    with pytest.raises(sqlite3.DatabaseError, match="not a file name"):
        journal_database.checked_name(name)


@rows("path", [b"", b"tree", b"/tree/../etc", "text", None])
def test_a_root_that_is_no_real_path_is_refused(path: object) -> None:
    assert journal_database.checked_root(b"/tree/..a") == b"/tree/..a"
    with pytest.raises(sqlite3.DatabaseError, match="not the path of a directory"):
        journal_database.checked_root(path)


def test_a_journal_goes_with_all_beside_it(path: Path, tmp_path: Path) -> None:
    with closing(Journal.open(path)) as journal:
        journal.set("key", 1)
        assert len(list(tmp_path.iterdir())) > 1
        journal_database.delete(path)
    assert list(tmp_path.iterdir()) == []
