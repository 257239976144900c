"""Changes by others to a copy that still has its temporary name: it never gets the file's name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, create, run
from tests.faults.test_changes import CHANGES
from tests.faults.test_given_up import COPIED, Seen
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, tree_of

CHANGES_OF_COPIES: dict[str, Callable[[Path], object]] = {
    **CHANGES,
    "times": lambda path: os.utime(path, ns=(5, 5)),
}


@pytest.mark.parametrize("names", [1, 2])
@pytest.mark.parametrize("change", CHANGES_OF_COPIES)
@pytest.mark.parametrize("moment", ["once it is closed", "once it is read back"])
def test_a_copy_that_somebody_changes_takes_no_name(
    area: Path, moment: str, change: str, names: int
) -> None:
    """Programs that watch a tree act as soon as a file is closed: within a tick of the clock."""
    root = tree_of(area, "a")
    for number in range(1, names):
        (root / f"a{number}").hardlink_to(root / "a")
    before = (root / "a").stat()
    create(root, area / "job.db")

    def _change() -> None:
        (copy,) = root.glob(".zc-*")
        CHANGES_OF_COPIES[change](copy)

    def _looked(look: int) -> list[Path]:
        _change() if look == COPIED and moment == "once it is read back" else None
        return []

    after = {("reopen", 1): _change} if moment == "once it is closed" else {}
    shown, _ = run(area / "job.db", Meddler().sys(after=after), ALONE, users=Seen(_looked))
    assert {(line["outcome"], line["reason"]) for line in shown} == {("skipped", "changed")}
    assert not list(root.glob(".zc-*"))
    now = (root / "a").stat()
    assert (now.st_ino, now.st_mode, now.st_mtime_ns, now.st_nlink) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime_ns,
        names,
    )
    assert not os.listxattr(root / "a")
    assert set(contents(root).values()) == {BASE}


def test_a_copy_that_somebody_was_let_in_to_takes_no_name(area: Path) -> None:
    """A program that appends to every file it meets did so to the original before."""
    root = tree_of(area, "a")
    inode = (root / "a").stat().st_ino
    create(root, area / "job.db")
    meddler = Meddler()

    def _looked(look: int) -> list[Path]:
        if look == COPIED:
            (copy,) = root.glob(".zc-*")
            meddler.open(copy)
        return []

    ((line),), _ = run(area / "job.db", meddler.sys(), ALONE, users=Seen(_looked))
    meddler.write()
    assert (root / "a").read_bytes() == BASE
    assert (root / "a").stat().st_ino == inode
    (kept,) = root.glob(".zc-*")
    assert kept.read_bytes() == BASE + WRITE
    assert line["reason"] == f"written to during the move; the other version is {kept.name}"
