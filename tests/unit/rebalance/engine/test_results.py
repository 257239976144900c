"""Results that the journal is told, and when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import FileRow, Intent, Journal, State
from zconsole.rebalance.engine.results import Results


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal of two files, and of one on another device."""
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        journal.add_directory(DirectoryRow(1, None, b"/tree", 7, 2))
        journal.add_directory(DirectoryRow(2, None, b"/other", 8, 2))
        journal.add_files([(1, b"a", 11, 5, 1, 0), (1, b"b", 12, 5, 1, 0), (2, b"c", 13, 5, 1, 0)])
        journal.finish_walk(split_links=False)
        yield journal


@pytest.fixture
def rows(journal: Journal) -> list[FileRow]:
    return [row for _, row in journal.todo((-1, 0, 0), 2)]


def test_a_result_is_committed_once_a_sync_began_after_it(
    journal: Journal, rows: list[FileRow]
) -> None:
    results = Results(journal)
    results.add(rows[:1], "moved", None)
    results.commit([], {})
    assert State.MOVED not in journal.counts()
    results.syncing({7})
    results.add(rows[1:], "moved", None)
    results.commit([], {})
    assert journal.counts()[State.MOVED][0] == 1
    results.flush()
    assert journal.counts()[State.MOVED][0] == 2


def test_a_result_waits_for_a_sync_of_its_device(journal: Journal) -> None:
    results = Results(journal)
    results.unsynced = {7, 8}
    for _, row in journal.todo((-1, 0, 0), 9):
        results.add([row], "moved", None)
    results.syncing({8})
    results.commit([], {})
    assert journal.counts()[State.MOVED][0] == 1
    assert results.unsynced == {7}
    results.syncing({7, 8})
    results.commit([], {})
    assert journal.counts()[State.MOVED][0] == 3
    assert not results.unsynced


def test_all_is_synced_once_it_is_told(journal: Journal) -> None:
    results = Results(journal)
    results.unsynced = {7}
    results.flush()
    assert not results.unsynced


def test_what_was_told_is_not_told_again(journal: Journal, rows: list[FileRow]) -> None:
    """Meanwhile the file may have been put back into the queue."""
    results = Results(journal)
    results.add(rows, "moved", None)
    results.flush()
    journal.record([], [Intent(rows[0].number, State.CREATING, b".t", 11, 0, b"")], {})
    results.flush()
    results.add(rows[1:], "failed", "I/O error")
    results.flush()
    assert [row.number for row in journal.unfinished()] == [rows[0].number]


def test_names_that_one_file_had_count_its_bytes_once(
    journal: Journal, rows: list[FileRow]
) -> None:
    results = Results(journal)
    results.add(rows, "moved", None, 5)
    assert [done.bytes for done in results.outcomes] == [5, 0]


def test_a_file_left_to_recovery_is_reported_and_not_told(
    journal: Journal, rows: list[FileRow]
) -> None:
    results = Results(journal)
    results.leave(rows, "moved", None)
    assert [done.outcome for done in results.outcomes] == ["moved", "moved"]
    assert not results.waiting
