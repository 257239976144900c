"""Files that a rollback brings back are moved again by the resumed job."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.harness import ALONE, create, run
from zconsole.rebalance.job import creation


def come_back(root: Path, journal: Path, names: set[str]) -> None:
    """Make the journal take the current inodes of these names for those before their move."""
    inodes = trees.inodes(root)
    with closing(sqlite3.connect(journal)) as db, db:
        for name in names:
            sql = "UPDATE files SET ino = ?, old = ? WHERE name = ?"
            inode = inodes[name]
            assert db.execute(sql, (inode, inode, os.fsencode(Path(name).name))).rowcount == 1


@pytest.mark.parametrize(
    "names", [{"large"}, {"linked", "linked-again", "below/linked-too", "line\nbreak"}, set()]
)
def test_files_that_came_back_are_moved_again(
    area: Path, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "PAGE", 3)
    root, journal = area / "tree", area / "job.db"
    trees.build(root)
    before = trees.manifest(root)
    create(root, journal)
    run(journal, clocks=ALONE)
    come_back(root, journal, names)
    there = trees.inodes(root)
    shown, summary = run(journal, clocks=ALONE)
    assert {os.path.relpath(each["path"], root) for each in shown} == names
    assert {name for name, inode in trees.inodes(root).items() if inode != there[name]} == names
    assert summary["files_moved"] == len(there)
    assert trees.manifest(root) == before
