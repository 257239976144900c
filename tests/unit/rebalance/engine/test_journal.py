"""Creation of a journal, and a death during it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.errors import NotUnderstoodError
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.journal import Intent, Journal, Result, State

DYING = """
import os, signal, sys
from pathlib import Path

left = int(sys.argv[2])

def audit(event, words):
    global left
    if event in ("open", "os.link", "os.remove", "sqlite3.connect", "sqlite3.connect/handle"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

from zconsole.rebalance.engine.journal import Journal

sys.addaudithook(audit)
Journal.create(Path(sys.argv[1]), {"walking": "on"}).close()
"""


def died_at(path: Path, step: int) -> bool:
    """Return whether creating a journal was killed at this step: False if it took fewer."""
    argv = [sys.executable, "-c", DYING, path, str(step)]
    return subprocess.run(argv, check=False).returncode != 0


@pytest.mark.slow
def test_a_death_leaves_no_journal_or_a_whole_one(tmp_path: Path) -> None:
    step = 0
    while died_at(path := tmp_path / f"job{step}.db", step):
        if path.exists():
            with closing(Journal.open(path)) as journal:
                assert journal.get("walking") == "on"
        else:
            Journal.create(path).close()
        step += 1
    assert step > 4


@pytest.mark.slow
def test_a_run_with_the_same_journal_begins_the_job_that_died_first(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_bytes(b"x")
    shell, journal = Shell(tmp_path), tmp_path / "job.db"
    words = ("run", tmp_path / "tree", "--allow-non-zfs", "--yes", "--journal", journal)
    first = shell(*words)
    journal.unlink()
    again = shell(*words)
    assert (first.returncode, again.returncode) == (0, 0)
    assert [status["journal"] for status in shell.statuses()] == [str(journal)]


def test_a_journal_is_its_owners_alone_and_never_replaces_another_file(tmp_path: Path) -> None:
    path = tmp_path / "job.db"
    before = os.umask(0)
    try:
        Journal.create(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_bytes()
    with pytest.raises(FileExistsError):
        Journal.create(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def opened() -> list[str]:
    """Return what the descriptors of this process refer to."""
    names = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of this very listing
            names.append(str(path.readlink()))
    return names


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("content", [b"text" * 512, b""], ids=["text", "empty"])
def test_a_journal_that_is_refused_is_closed(tmp_path: Path, content: bytes, write: bool) -> None:
    path = tmp_path / "job.db"
    path.write_bytes(content)
    with pytest.raises(NotUnderstoodError) as caught:
        Journal.open(path, write)
    assert caught.value  # while its frames are alive, nothing in them is collected
    assert [name for name in opened() if name.startswith(str(path))] == []


def test_a_journal_of_another_format_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "job.db"
    with closing(Journal.create(path)) as journal:
        journal.set("format", 99)
    with pytest.raises(NotUnderstoodError, match="format 99") as caught:
        Journal.open(path)
    assert caught.value
    assert [name for name in opened() if name.startswith(str(path))] == []


@pytest.mark.parametrize("split", [True, False])
def test_names_outside_the_walk_stop_a_copy_but_no_rewrite(tmp_path: Path, split: bool) -> None:
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        journal.add_directory(DirectoryRow(1, None, b"/tree", 1, 1))
        files = ((1, b"one", 7, 10, 3, 0), (1, b"two", 7, 10, 3, 0), (1, b"alone", 8, 5, 1, 0))
        journal.add_files(files)  # the third name of inode 7 is elsewhere
        journal.finish_walk(split_links=split)
        todo = [row.name for _, row in journal.todo((0, 0, 0), 10)]
        reasons = journal.reasons(State.SKIPPED)
    assert todo == ([b"alone"] if split else [b"one", b"alone"])
    assert reasons == ({"hard links outside the set": 2} if split else {})


@pytest.mark.parametrize("begun", [0, 2, 3])
def test_another_name_stands_for_a_file_unless_one_of_its_names_is_begun(
    tmp_path: Path, begun: int
) -> None:
    """Its first name has ended, and work on one of the others begins in the same step."""
    intents = [Intent(begun, State.CREATING, b".t", 11, 0, b"")] if begun else []
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        journal.add_directory(DirectoryRow(1, None, b"/tree", 7, 2))
        journal.add_files([(1, name, 11, 5, 3, 0) for name in (b"a", b"b", b"c")])
        journal.finish_walk(split_links=False)
        journal.record([Result(1, State.SKIPPED, "changed")], intents)
        todo = [row.number for _, row in journal.todo((-1, 0, 0), 9)]
        unfinished = [row.number for row in journal.unfinished()]
    assert (todo, unfinished) == (([2], []) if not begun else ([], [begun]))
