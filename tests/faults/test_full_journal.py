"""A journal whose disk is full: copies are removed all the same, and the message says why."""

from __future__ import annotations

import itertools
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run, tree_of
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine import journal_database
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.job_store import by_journal
from zconsole.rebalance.job.runner import execute


def test_copies_are_removed_though_the_journal_cannot_be_written(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, opened = tree_of(area, 3, 1000), list[Journal]()
    create(root, area / "job.db")
    # Every change is announced to the journal: the one before is long ago.
    slow = replace(ALONE, epoch=itertools.count(time.time()).__next__)
    before = {path.name: path.read_bytes() for path in root.iterdir()}

    def _open(path: Path) -> Journal:
        opened.append(Journal(journal_database.connect(path, "rw"), path))
        return opened[0]

    def _after(_number: int, name: str, _result: Any) -> None:
        if name == "syncfs":
            opened[0]._db.execute("PRAGMA query_only = 1")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "open", _open)
        with pytest.raises(sqlite3.OperationalError):
            run(area / "job.db", FaultySys(after=_after), slow, users=Nobody())
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (summary["stopped_by"], summary["files_moved"]) == ("done", 3)


FULL = "the disk of the journal is full"


def _failing(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "free", "full"),
    [
        (sqlite3.SQLITE_FULL, 1 << 30, True),
        (sqlite3.SQLITE_IOERR_WRITE, 4096, True),
        (sqlite3.SQLITE_IOERR_WRITE, 1 << 30, False),
        (sqlite3.SQLITE_BUSY, 4096, False),
    ],
)
@pytest.mark.parametrize("where", ["connect", "retry"])
def test_a_full_disk_of_the_journal_is_named(
    area: Path, monkeypatch: pytest.MonkeyPatch, code: int, free: int, full: bool, where: str
) -> None:
    create(tree_of(area, 1, 1000), area / "job.db")
    record = by_journal(area / "job.db")
    assert record is not None

    def _fail(*_: object) -> None:
        raise _failing(code)

    owner = journal_database if where == "connect" else Journal
    monkeypatch.setattr(owner, where, _fail)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))
    with pytest.raises((ZconsoleError, sqlite3.OperationalError)) as raised:
        execute(record, lambda _: None)
    assert (str(raised.value) == f"{FULL}: {record.journal}") == full
