"""A new job on a tree in which one that died has files halfway."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from zconsole.rebalance.engine.journal import Intent, Journal, State
from zconsole.rebalance.job import control
from zconsole.rebalance.job.locks import BusyTreeError
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings

TEMP = b".zc-0123456789abcdef-1"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    for name in ("tree/below", "tree-beside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x")
    return tmp_path / "tree"


def create(root: Path) -> control.Created:
    return control.create(Settings((str(root),), allow_non_zfs=True), FactsReader())


def died(root: Path, state: State) -> control.Created:
    """A job that a death took in the middle of its first file."""
    created = create(root)
    journal = Journal.open(created.record.journal)
    ((_, row),) = journal.todo((-1, -1, -1), 1)
    journal.record((), [Intent(row.number, state, TEMP, row.ino, row.ino + 1, b"digest")])
    journal.set("status", {"state": "running"})
    journal.close()
    return created


@pytest.mark.parametrize("state", [State.CREATING, State.SWAPPING])
def test_it_is_refused_in_below_and_above(tree: Path, state: State) -> None:
    dead = died(tree, state).record
    for root in (tree, tree / "below", tree.parent):
        with pytest.raises(BusyTreeError, match=f"resume {dead.job}"):
            create(root)
    assert [found.record for found in control.listed()] == [dead]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs mounts")
def test_it_is_refused_through_a_bind_mount(tree: Path) -> None:
    dead = died(tree, State.SWAPPING).record
    seen = tree.with_name("seen")
    seen.mkdir()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    run = [sys.executable, "-m", "zconsole", "rebalance", "run", "--yes", "--allow-non-zfs"]
    argv = ["unshare", "-m", "sh", "-c", script, "sh", str(tree / "below"), str(seen)]
    done = subprocess.run([*argv, *run, str(seen)], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert f"job {dead.job} was interrupted in {tree}: let it go on first" in done.stderr


def test_one_beside_it_begins(tree: Path) -> None:
    died(tree, State.SWAPPING)
    assert create(tree.with_name("tree-beside")).plan.directories[0].files == 1


def test_a_job_that_died_between_two_files_is_not_in_the_way(tree: Path) -> None:
    died(tree, State.PENDING)
    assert create(tree).plan.directories[0].files == 1


def test_nor_is_one_whose_tree_has_been_replaced(tree: Path) -> None:
    died(tree, State.SWAPPING)
    tree.rename(tree.with_name("elsewhere"))
    shutil.copytree(tree.with_name("elsewhere"), tree)
    assert create(tree).plan.directories[0].files == 1


def test_nor_one_whose_journal_is_damaged(tree: Path) -> None:
    died(tree, State.SWAPPING).record.journal.write_bytes(b"damaged" * 1000)
    assert create(tree).plan.directories[0].files == 1
