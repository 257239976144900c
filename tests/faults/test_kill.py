"""Killed after every system call, failed at every system call: nothing is lost, nothing left."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.harness import (
    FaultySys,
    Killed,
    create,
    descriptors_closed,
    fail_at,
    kill_after,
    run,
)


def counted(area: Path, named: bool) -> int:
    """How many system calls an undisturbed run makes."""
    root = area / "counted"
    trees.build(root)
    create(root, area / "counted.db")
    sys = FaultySys(named=named)
    run(area / "counted.db", sys)
    shutil.rmtree(root)
    return len(sys.calls)


def test_undisturbed_run_moves_everything_and_changes_nothing(area: Path) -> None:
    root = area / "tree"
    trees.build(root)
    before, inodes = trees.manifest(root), trees.inodes(root)
    create(root, area / "job.db")
    shown, summary = run(area / "job.db")
    assert trees.manifest(root) == before
    assert (summary["files_failed"], summary["files_moved"]) == (0, len(inodes))
    assert {record["outcome"] for record in shown} == {"moved"}
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
def test_killed_after_every_call(area: Path, named: bool) -> None:
    for number in range(counted(area, named)):
        root, journal = area / f"tree{number}", area / f"job{number}.db"
        trees.build(root)
        before = trees.manifest(root)
        create(root, journal)
        with descriptors_closed(), pytest.raises(Killed):
            run(journal, kill_after(number, named))
        _, summary = run(journal)
        assert trees.manifest(root) == before, number
        assert summary["files_failed"] == 0, (number, summary)
        assert summary["files_moved"] == 13, (number, summary)
        shutil.rmtree(root)


CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR, errno.EACCES)
SHIFTS = range(len(CODES)) if os.environ.get("ZCONSOLE_FAULTS") == "all" else range(1)


def failure(journal: Path, number: int, code: int, named: bool) -> list[int | None]:
    """Run with one failing call; the error that ended the run, if one did."""
    try:
        run(journal, fail_at(number, code, named))
    except OSError as error:
        return [error.errno]
    return []


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_failed_at_every_call(area: Path, shift: int, named: bool) -> None:
    """The errors take turns; ZCONSOLE_FAULTS=all gives every error to every call."""
    for number in range(counted(area, named)):
        code = CODES[(number + shift) % len(CODES)]
        root, journal = area / f"tree{number}", area / f"job{number}.db"
        trees.build(root)
        before = trees.manifest(root)
        create(root, journal)
        with descriptors_closed():
            errors = failure(journal, number, code, named)
        assert errors in ([], [code])
        _, summary = run(journal)
        assert trees.manifest(root) == before, (number, code)
        assert summary["files_failed"] == 0, (number, summary)
        shutil.rmtree(root)
