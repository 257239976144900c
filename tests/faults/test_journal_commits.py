"""Commits of the journal: which wait for the disk, and what is committed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Intent, Journal, Result, State

FULL, NORMAL = 2, 1
"""Values of ``PRAGMA synchronous`` (sqlite.org/pragma.html)."""
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal of three walked files, two of which are one inode."""
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        journal.add_directory(DirectoryRow(1, None, b"/tree", 7, 2))
        journal.add_files([(1, b"a", 11, 5, 2, 0), (1, b"b", 11, 5, 2, 0), (1, b"c", 12, 5, 1, 0)])
        journal.finish_walk(split_links=True)
        yield journal


def _synchronous(journal: Journal) -> int:
    return int(journal._db.execute("PRAGMA synchronous").fetchone()[0])


def _statements(journal: Journal, act: Callable[[], object]) -> list[str]:
    """Return the first words of the SQL statements that an act runs."""
    said: list[str] = []
    journal._db.set_trace_callback(said.append)
    act()
    journal._db.set_trace_callback(None)
    return [" ".join(each.split()) for each in said if not each.startswith("--")]


def test_a_commit_waits_for_the_disk(journal: Journal, tmp_path: Path) -> None:
    with closing(Journal.open(tmp_path / "job.db")) as opened:
        for each in (journal, opened):
            assert _synchronous(each) == FULL
            assert each._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


ACTS: dict[str, Callable[[Journal], object]] = {
    "record": lambda journal: journal.record(
        [Result(3, State.MOVED)], [Intent(1, State.SWAPPING, b".t", 1, 2, b"")], {1: (5, 6.0)}, {}
    ),
    "clear_walk": lambda journal: journal.clear_walk(),
    "finish_walk": lambda journal: journal.finish_walk(split_links=True),
    "change_devices": lambda journal: journal.change_devices({7: 8, 8: 7}),
}


@pytest.mark.parametrize("act", ACTS)
def test_all_of_a_step_is_committed_at_once(journal: Journal, act: str) -> None:
    said = _statements(journal, lambda: ACTS[act](journal))
    begins, ends = said.index("BEGIN IMMEDIATE"), said.index("COMMIT")
    writes = [at for at, each in enumerate(said) if each.startswith(WRITES)]
    assert said.count("COMMIT") == 1
    assert all(begins < at < ends for at in writes)
    assert not journal._db.in_transaction
    assert _synchronous(journal) == FULL


LAZY: dict[str, Callable[[Journal], object]] = {
    "set_offset": lambda journal: journal.set_offset(3, 4096),
    "leave_directory": lambda journal: journal.leave_directory(1),
    "jot": lambda journal: journal.jot("changing_until", 1.5),
}


@pytest.mark.parametrize("act", LAZY)
def test_what_a_power_cut_may_take_back_waits_for_nothing(journal: Journal, act: str) -> None:
    said = _statements(journal, lambda: LAZY[act](journal))
    assert said[0] == "PRAGMA synchronous = NORMAL"
    assert said[-1] == "PRAGMA synchronous = FULL"
    assert any(each.startswith(WRITES) for each in said)
    assert _synchronous(journal) == FULL


def test_an_error_leaves_commits_waiting_for_the_disk(journal: Journal) -> None:
    with suppress(ZeroDivisionError), journal.lazily_durable():
        assert _synchronous(journal) == NORMAL
        raise ZeroDivisionError
    assert _synchronous(journal) == FULL


def test_what_was_walked_is_found_again_and_forgotten(journal: Journal) -> None:
    found = [row for _, row in journal.todo((-1, 0, 0), 9)]
    assert [(row.number, row.name) for row in found] == [(1, b"a"), (3, b"c")]
    assert [row.name for row in journal.names_of(found[0])] == [b"a", b"b"]
    journal.add_day("2026-01-02", {"n": 2})
    journal.add_day("2026-01-01", {"n": 1})
    assert journal.days() == [{"n": 1}, {"n": 2}]
    assert journal.directory(1).dev == 7
    journal.clear_walk()
    journal.add_directory(DirectoryRow(1, None, b"/other", 8, 2))
    assert journal.directory(1).dev == 8
    journal.clear_walk()
    assert (journal.days(), journal.roots(), journal.counts()) == ([], [], {})


def test_devices_change_places(journal: Journal) -> None:
    journal.add_directory(DirectoryRow(2, None, b"/other", 8, 2))
    assert [journal.directory(number).dev for number in (1, 2)] == [7, 8]
    journal.change_devices({7: 8, 8: 7})
    assert [journal.directory(number).dev for number in (1, 2)] == [8, 7]


def test_what_a_step_says_is_known_after_it(journal: Journal) -> None:
    journal.record([], [Intent(3, State.SWAPPING, b".t", 12, 13, b"d")], {1: (5, 6.0)})
    assert journal.is_interrupted()
    assert [(row.number, row.temp, row.new) for row in journal.unfinished()] == [(3, b".t", 13)]
    assert journal.open_directories() == {1: (5, 6.0)}
    journal.record([Result(3, State.MOVED)], directories={})
    assert not journal.is_interrupted()
    assert journal.open_directories() == {}
    assert journal.moved_bytes() == 5


@pytest.mark.parametrize("settled", [True, False])
def test_times_are_forgotten_once_their_files_are_settled(journal: Journal, settled: bool) -> None:
    journal.record([], directories={1: (5, 6.0)})
    journal.record([], directories={}, synced=settled)
    assert journal.open_directories() == ({} if settled else {1: (5, 6.0)})


def test_lazy_notes_are_kept(journal: Journal) -> None:
    journal.record([], directories={1: (5, 6.0)})
    journal.set_offset(3, 4096)
    journal.leave_directory(1)
    journal.jot("changing_until", 1.5)
    (row,) = (row for _, row in journal.todo((-1, 0, 0), 9) if row.number == 3)
    assert row.offset == 4096
    assert journal.open_directories() == {}
    assert journal.get("changing_until", float) == 1.5
