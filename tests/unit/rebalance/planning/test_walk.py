"""Directories that a walk enters, and those it leaves alone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zconsole.rebalance.engine.descriptors import raise_limit
from zconsole.rebalance.engine.directories import Directories, DirectoryRow
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning.walk import Walk, own_files
from zconsole.system.mounts import mounts_below

LINE = b"36 25 8:1 /x %s rw,noatime shared:1 - ext4 /dev/sda1 rw\n"


@pytest.mark.parametrize(
    ("point", "below"),
    [
        (b"/t/a", True),
        (b"/t/a\\040b/c", True),
        (b"/t/line\\012break", True),
        (b"/t/\xff", True),
        (b"/t", False),
        (b"/", False),
        (b"/tree", False),
        (b"/t\\040x/a", False),
    ],
)
def test_mount_points_are_found_below_a_directory(
    tmp_path: Path, point: bytes, below: bool
) -> None:
    (tmp_path / "mountinfo").write_bytes(LINE % b"/" + LINE % point)
    assert bool(mounts_below(b"/t", tmp_path)) is below
    assert bool(mounts_below(b"/t x", tmp_path)) is point.startswith(b"/t\\040x")
    assert bool(mounts_below(b"/", tmp_path)) is (point != b"/")


@pytest.fixture
def bound(tmp_path: Path) -> Iterator[Path]:
    """A tree with a bind mount of a directory outside it, on a name with a blank."""
    inside, outside = tmp_path / "tree/in side/here", tmp_path / "outside/deep"
    for directory in (inside, outside):
        directory.mkdir(parents=True)
        (directory / f"of {directory.name}").touch()
    (tmp_path / "tree/own").touch()
    argv = ["mount", "--bind", outside.parent, inside]
    if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted")
    yield tmp_path / "tree"
    subprocess.run(["umount", inside], check=True)


def test_what_is_bound_into_a_tree_is_not_entered(bound: Path) -> None:
    portions = list(Walk(bytes(bound)))
    assert [name for portion in portions for name, _ in portion.files] == [b"own"]
    skipped = [each for portion in portions for each in portion.skipped]
    assert skipped == [(b"here", "mount point")]


def test_what_is_bound_into_a_tree_during_a_walk_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/other").touch()
    root, here = tmp_path / "tree", tmp_path / "tree/here"
    here.mkdir(parents=True)
    walk = iter(Walk(bytes(root)))
    first = next(walk)
    argv = ["mount", "--bind", tmp_path / "outside", here]
    if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted")
    try:
        later = list(walk)
    finally:
        subprocess.run(["umount", here], check=True)
    assert not first.files
    assert not any(portion.files for portion in later)
    assert [each for portion in later for each in portion.skipped] == [(b"here", "mount point")]


def test_what_is_bound_is_a_tree_of_its_own(bound: Path) -> None:
    portions = list(Walk(bytes(bound / "in side/here")))
    assert [name for portion in portions for name, _ in portion.files] == [b"of deep"]


def test_a_directory_that_cannot_be_read_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole/file").touch()
    scandir, damaged = os.scandir, (tmp_path / "damaged").stat().st_ino

    def failing(fd: int) -> Any:
        if os.fstat(fd).st_ino == damaged:
            raise OSError(errno.EIO, "Input/output error")
        return scandir(fd)

    monkeypatch.setattr(os, "scandir", failing)
    portions = list(Walk(bytes(tmp_path)))
    assert [name for portion in portions for name, _ in portion.files] == [b"file"]
    skipped = [each for portion in portions for each in portion.skipped]
    assert skipped == [(b"damaged", "directory: Input/output error")]
    with pytest.raises(OSError, match="Input/output error") as caught:
        list(Walk(bytes(tmp_path / "damaged")))
    assert caught.value.filename == str(tmp_path / "damaged")


def test_directories_are_opened_however_deep_they_are(tmp_path: Path) -> None:
    status, deepest = tmp_path.stat(), sys.getrecursionlimit()
    root = DirectoryRow(1, None, bytes(tmp_path), status.st_dev, status.st_ino)

    def row_of(number: int) -> DirectoryRow:
        same = replace(root, number=number, parent=number - 1, name=b".")
        return root if number == 1 else same

    raise_limit()
    directories = Directories(Sys(), row_of)
    assert os.fstat(directories.get(deepest).fd).st_ino == status.st_ino
    assert len(directories) == deepest
    directories.close()


def test_a_journal_and_the_state_directory_are_no_files_to_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, state = tmp_path / "tree", tmp_path / "tree/below/state"
    monkeypatch.setenv("ZCONSOLE_STATE", str(state))
    state.mkdir(parents=True)
    for name in ("job.db", "job.db-wal", "job.db-shm", "job.db-notes", "below/state/audit"):
        (tree / name).touch()
    portions = [*Walk(bytes(tree), own=own_files(tree / "job.db"))]
    assert [name for each in portions for name, _ in each.files] == [b"job.db-notes"]
    skipped = sorted(pair for each in portions for pair in each.skipped)
    ours = (b"job.db", b"job.db-shm", b"job.db-wal", b"state")
    assert skipped == [(name, "zconsole's own") for name in ours]


def test_names_that_another_job_made_are_left_to_it(tmp_path: Path) -> None:
    ours = [b".zc-0123456789abcdef-1f", b".zc-0123456789abcdef-1fo"]
    others = [b".zc-notes", b".zc-0123456789abcdef-1f.txt", b"own"]
    for name in (*ours, *others):
        (tmp_path / os.fsdecode(name)).touch()
    (portion,) = Walk(bytes(tmp_path))
    assert sorted(name for name, _ in portion.files) == sorted(others)
    assert sorted(portion.skipped) == [(name, "temporary name of a job") for name in ours]
