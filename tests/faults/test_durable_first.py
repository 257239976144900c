"""Originals are replaced only after their copies are on disk, read back, and recorded."""

from __future__ import annotations

import errno
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run, tree_of
from tests.faults.test_changes import killed_after
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.engine.syscalls import Sys

FILES = 3
SOON = 10.0
"""Seconds in which copies are reopened, even on a busy machine."""


def inodes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in root.rglob("*")}


def failing(call: str, last: int = 1) -> FaultySys:
    """Return system calls of which the first ones of a name fail."""
    sys = FaultySys()

    def _fault(_number: int, name: str) -> None:
        if name == call and sys.calls.count(call) <= last:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    sys.fault = _fault
    return sys


@pytest.mark.parametrize("last", [1, 10**6], ids=["once", "always"])
def test_a_sync_that_fails_leaves_every_original(area: Path, last: int) -> None:
    """The kernel reports a write error only once: a later sync that succeeds proves nothing."""
    root = tree_of(area, FILES, 9000)
    before = inodes(root)
    create(root, area / "job.db")
    with pytest.raises(OSError, match="Input/output"):
        run(area / "job.db", failing("syncfs", last=last), ALONE)
    assert inodes(root) == before
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_moved"] == FILES
    assert before.keys() == inodes(root).keys()


def test_a_sync_that_fails_ends_a_recovery_without_results(area: Path) -> None:
    """Its next sync may succeed, and prove nothing."""
    root = tree_of(area, FILES, 9000)
    before = inodes(root)
    create(root, area / "job.db")
    killed_after(area / "job.db", "exchange", FaultySys())
    with pytest.raises(OSError, match="Input/output"):
        run(area / "job.db", failing("syncfs"), ALONE)
    with closing(Journal.open(area / "job.db")) as journal:
        assert State.MOVED not in journal.counts()
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_moved"] == FILES
    assert before.keys() == inodes(root).keys()


class Recording(Sys):
    """Records what happens to each copy, by the descriptor it was reopened with."""

    def __init__(self) -> None:
        self.copies: dict[int, list[str]] = {}
        self.replaced: list[dict[int, list[str]]] = []

    def reopen(self, fd: int, flags: int) -> int:
        copy = super().reopen(fd, flags)
        self.copies[copy] = []
        return copy

    def _note(self, fd: int, what: str) -> None:
        if fd in self.copies:
            self.copies[fd].append(what)

    def syncfs(self, fd: int) -> None:
        until = time.monotonic() + SOON
        while len(self.copies) < FILES and time.monotonic() < until:
            time.sleep(0.01)  # copies are reopened during the sync
        super().syncfs(fd)
        for copy in self.copies:
            self._note(copy, "synced")

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        Sys.fadvise(fd, offset, length, advice)
        if advice == os.POSIX_FADV_DONTNEED:
            self._note(fd, "dropped")

    def pread(self, fd: int, length: int, offset: int) -> bytes:  # type: ignore[override]
        self._note(fd, "read")
        return Sys.pread(fd, length, offset)

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        self.replaced.append({copy: list(steps) for copy, steps in self.copies.items()})
        super().exchange(directory, name, other)


def test_all_copies_are_read_from_the_disks_before_any_name_is_replaced(area: Path) -> None:
    root, sys = tree_of(area, FILES, 9000), Recording()
    create(root, area / "job.db")
    run(area / "job.db", sys, ALONE)
    assert len(sys.replaced) == FILES
    assert len(sys.replaced[0]) == FILES
    for steps in sys.replaced[0].values():
        assert steps[:3] == ["synced", "dropped", "read"]


def test_what_moved_is_known_when_the_next_batch_is_replaced(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    create(tree_of(area, FILES, 10), area / "job.db")
    known = list[int]()

    def _fault(_number: int, name: str) -> None:
        if name == "exchange":
            with closing(Journal.open(area / "job.db", write=False)) as journal:
                known.append(journal.counts().get(State.MOVED, (0, 0))[0])

    run(area / "job.db", FaultySys(_fault), ALONE)
    assert known == list(range(FILES))


def test_a_batch_needs_no_directory_of_the_one_before(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories are closed between batches, and their descriptors reused."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    root = area / "tree"
    for number in range(FILES):
        (root / f"in{number}").mkdir(parents=True)
        (root / f"in{number}" / "file").write_bytes(b"x")
    create(root, area / "job.db")
    begun = list[int]()

    def _fault(_number: int, name: str) -> None:
        if name == "exchange":
            with closing(Journal.open(area / "job.db", write=False)) as journal:
                begun.append(len(journal.open_directories()))

    _, summary = run(area / "job.db", FaultySys(_fault), ALONE)
    assert summary["files_moved"] == FILES
    assert begun == [1] * FILES


def test_the_time_a_directory_gets_back_is_that_of_the_last_change_by_others(area: Path) -> None:
    """The last change comes after the directory was opened, before anything is created in it."""
    root, told = tree_of(area, 1, 10), list[Any]()
    create(root, area / "job.db")

    def _fault(_number: int, name: str) -> None:
        if name == "lease" and not told:
            (root / "theirs").touch()
            told.append(root.stat().st_mtime_ns)
        if name == "open_new":
            with closing(Journal.open(area / "job.db", write=False)) as journal:
                told.extend(mtime for mtime, _ in journal.open_directories().values())

    run(area / "job.db", FaultySys(_fault), ALONE)
    assert told == [told[0]] * 2
    assert root.stat().st_mtime_ns == told[0]


def test_a_file_whose_original_could_not_be_removed_yet_is_reported_as_moved(area: Path) -> None:
    root = tree_of(area, 1, 10)
    before = inodes(root)
    create(root, area / "job.db")
    shown, _ = run(area / "job.db", failing("unlink"), ALONE)
    assert [(line["outcome"], line["path"]) for line in shown] == [("moved", str(root / "file0"))]
    assert inodes(root).keys() == before.keys()
    assert inodes(root) != before
