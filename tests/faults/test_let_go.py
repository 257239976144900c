"""A process that wants to write to one file of a batch does not wait for the others."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run, tree_of
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys

FILES = 4


def let_in(path: Path) -> bool:
    """Return whether a writer gets a file at once; if not, the kernel notifies its lessee."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return False
    return True


def in_order(root: Path, journal: Path) -> list[Path]:
    """Return the files in the order in which the job takes them."""
    with closing(Journal.open(journal)) as opened:
        return [root / os.fsdecode(row.name) for _, row in opened.todo((-1, 0, 0), FILES)]


@pytest.fixture
def files(area: Path) -> list[Path]:
    """The files of a created job, in its order."""
    root = tree_of(area, FILES, 10)
    create(root, area / "job.db")
    return in_order(root, area / "job.db")


@pytest.mark.parametrize(
    ("call", "comes", "which"),
    [("lease", 2, 0), ("reopen", 1, -1), ("exchange", 1, -1), ("unlink", 1, -1)],
    ids=["opened", "opened again", "replaced", "removed"],
)
def test_a_writer_gets_in_before_the_next_file_but_one_is(
    area: Path, files: list[Path], call: str, comes: int, which: int
) -> None:
    sys, answers = FaultySys(), list[bool]()

    def _fault(_number: int, name: str) -> None:
        if name == call and sys.calls.count(call) in (comes, comes + 1):
            answers.append(let_in(files[which]))

    before = {path: path.read_bytes() for path in files}
    sys.fault = _fault
    run(area / "job.db", sys, ALONE)
    assert answers == [False, True]
    assert {path: path.read_bytes() for path in files} == before


def test_a_file_that_is_done_is_leased_no_longer(area: Path, files: list[Path]) -> None:
    sys, answers = FaultySys(), list[bool]()

    def _fault(_number: int, name: str) -> None:
        if name == "unlink" and sys.calls.count(name) == 2:
            answers.append(let_in(files[0]))

    sys.fault = _fault
    run(area / "job.db", sys, ALONE)
    assert answers == [True]


class Slow(Sys):
    """A sync that ends only after a writer who comes meanwhile was let in, or waited for long."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        self.answers: list[bool] = []

    def reopen(self, fd: int, flags: int) -> int:
        self.opened += 1
        return super().reopen(fd, flags)

    def syncfs(self, fd: int) -> None:
        while self.opened < FILES:  # during the sync
            time.sleep(0.01)
        until = time.monotonic() + 3  # before the kernel breaks the lease
        first = not self.answers
        while first and True not in self.answers and time.monotonic() < until:
            self.answers.append(let_in(self.path))
            time.sleep(0.01)
        super().syncfs(fd)


def test_a_writer_gets_in_during_a_sync(area: Path, files: list[Path]) -> None:
    sys = Slow(files[1])
    _, summary = run(area / "job.db", sys, ALONE)
    assert (sys.answers[0], sys.answers[-1]) == (False, True)
    assert summary["skipped"] == {"open for writing": 1}
