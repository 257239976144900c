"""Killed after every system call, failed at every system call: nothing is lost, nothing left."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults import trees
from tests.faults.harness import (
    ALL,
    ALONE,
    FaultySys,
    Killed,
    create,
    descriptors_closed,
    fail_at,
    kill_after,
    run,
)
from zconsole.rebalance.engine.item import temporary
from zconsole.rebalance.engine.journal import Intent, Journal, State


@dataclass
class Stage:
    """One tree that is moved again and again: whole after each job, it serves the next one."""

    area: Path
    before: dict[str, tuple[Any, ...]] = field(init=False)
    calls: list[str] = field(init=False)
    """The system calls of an undisturbed run."""
    jobs: int = 0

    def __post_init__(self) -> None:
        trees.build(self.root)
        self.before = trees.manifest(self.root)
        sys = FaultySys()
        run(self.job(), sys, ALONE)
        self.calls = sys.calls

    @property
    def root(self) -> Path:
        return self.area / "tree"

    def job(self) -> Path:
        """The journal of a new job on the tree, which knows of none before: each would be asked."""
        shutil.rmtree(self.area / "state", ignore_errors=True)
        self.jobs += 1
        journal = self.area / f"job{self.jobs}.db"
        create(self.root, journal, ALONE)
        return journal

    def settled(self, journal: Path) -> dict[str, Any]:
        """The summary of the job resumed, which has brought everything through."""
        _, summary = run(journal, clocks=ALONE)
        assert trees.manifest(self.root) == self.before
        assert summary["files_failed"] == 0, summary
        return summary


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


PARTS = range(4 if ALL else 1)
"""So many tests share the calls among them, for several processors to work at."""


def share(calls: list[str], part: int) -> list[tuple[int, str]]:
    """The calls that a test kills or fails: all, or every eighth and the first of each kind."""
    if ALL:
        return list(enumerate(calls))[part :: len(PARTS)]
    first = {calls.index(call) for call in set(calls)}
    return [(n, call) for n, call in enumerate(calls) if n % 8 == 0 or n in first]


@pytest.mark.parametrize("part", PARTS)
def test_killed_after_every_call(area: Path, part: int) -> None:
    stage = Stage(area)
    for number, call in share(stage.calls, part):
        journal = stage.job()
        with descriptors_closed(), pytest.raises(Killed):
            run(journal, kill_after(number), ALONE)
        summary = stage.settled(journal)
        skipped = summary["skipped"]
        assert summary["files_moved"] == len(trees.inodes(stage.root)), (number, call, skipped)


CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EINTR, errno.EACCES)
SHIFTS = range(len(CODES) if ALL else 1)


def failure(journal: Path, number: int, code: int) -> list[int | None]:
    """Run with one failing call; the error that ended the run, if one did."""
    try:
        run(journal, fail_at(number, code), ALONE)
    except OSError as error:
        return [error.errno]
    return []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_failed_at_every_call(area: Path, shift: int, part: int) -> None:
    """The errors take turns; with ALL, every call gets every error."""
    stage = Stage(area)
    for number, _ in share(stage.calls, part):
        code = CODES[(number + shift) % len(CODES)]
        journal = stage.job()
        with descriptors_closed():
            errors = failure(journal, number, code)
        assert errors in ([], [code])
        stage.settled(journal)


def test_what_a_death_left_in_many_directories_is_settled_under_a_low_limit(area: Path) -> None:
    for number in range(300):
        (area / f"tree/d{number}").mkdir(parents=True)
        (area / f"tree/d{number}/f").write_bytes(b"x")
    create(area / "tree", area / "job.db")
    journal = Journal.open(area / "job.db")
    rows = [row for _, row in journal.todo((-1, -1, -1), 300)]
    intents = [
        Intent(row.number, State.CREATING, temporary("0" * 16, row.number), row.ino, 0, b"")
        for row in rows
    ]
    journal.record((), intents)
    journal.close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        _, summary = run(area / "job.db", clocks=ALONE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (summary["files_moved"], summary["files_failed"]) == (300, 0)


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_recovery_looks_at_the_names_of_one_file_only_while_it_must(
    area: Path, share: float, changed: bool
) -> None:
    """With so many of them replaced, and the copy changed since."""
    names = 60
    root = area / "tree"
    root.mkdir()
    (root / "name0").write_bytes(b"of many names")
    for number in range(1, names):
        os.link(root / "name0", root / f"name{number}")
    journal = area / "job.db"
    create(root, journal)
    original = (root / "name0").stat().st_ino
    dying, replaced = FaultySys(), iter(range(1, names + 1))

    def after(_: int, name: str, __: Any) -> None:
        if name == "exchange" and next(replaced) == names * share:
            dying.die()

    dying.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, dying, ALONE)
    if changed:
        next(p for p in root.glob("name*") if p.stat().st_ino != original).chmod(0o640)
    resumed = FaultySys()
    _, summary = run(journal, resumed, ALONE)
    assert summary["files_moved"] == names
    assert {path.stat().st_nlink for path in root.iterdir()} == {names}
    assert resumed.calls.count("lstat") < 20 * names
