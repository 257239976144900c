"""Trees deeper than any path, names of every kind, and directories that vanish for a while."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.beside import beside, mount
from tests.faults.harness import ALONE, FaultySys, Killed, create, descriptors_closed, run
from tests.faults.holding import moved
from tests.faults.test_meddlers import BASE
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.system.mounts import Spot

DEEP = 40
PART = b"\xff" + b"d" * 200 + b"\n" * 54
NAMES = (b"n" * 255, b"\xff\xfe" + b"z" * 253, b"plain")


@pytest.fixture
def deep(area: Path) -> Iterator[int]:
    """Create a tree deeper than any path; yields a descriptor of its lowest directory."""
    (area / "tree").mkdir()
    fd = os.open(area / "tree", os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir(PART, dir_fd=fd)
        above, fd = fd, os.open(PART, os.O_RDONLY, dir_fd=fd)
        os.close(above)
    for name in NAMES:
        file = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=fd)
        os.write(file, name * 100)
        os.close(file)
    yield fd
    os.close(fd)


def found(directory: int) -> dict[bytes, tuple[int, bytes]]:
    """Return inode and content of every file of an open directory."""
    files = {}
    for name in map(os.fsencode, os.listdir(directory)):
        with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=directory), "rb") as file:
            files[name] = os.fstat(file.fileno()).st_ino, file.read()
    return files


def killed(journal: Path) -> None:
    """Run a job that dies right after its first exchange of names."""
    sys = FaultySys()
    sys.after = lambda _, name, result: sys.die() if name == "exchange" else None
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, sys, ALONE)


def test_files_deeper_than_any_path_are_moved(area: Path, deep: int) -> None:
    before = found(deep)
    create(area / "tree", area / "job.db")
    killed(area / "job.db")
    _, summary = run(area / "job.db")
    after = found(deep)
    assert (summary["files_moved"], summary["files_failed"]) == (len(NAMES), 0)
    assert after.keys() == before.keys()
    for name, (inode, content) in after.items():
        assert content == name * 100
        assert inode != before[name][0]


def test_a_file_held_open_deeper_than_any_path_is_in_use(deep: int) -> None:
    held: list[int] = []

    def hold() -> int:
        held.append(os.open(b"plain", os.O_RDONLY, dir_fd=deep))
        return os.getpid()

    with beside(hold) as other:
        status = os.stat(b"plain", dir_fd=deep)
        used = Users().look().user(status.st_dev, status.st_ino)
        assert used is not None
        assert f"(pid {other.process})" in used


@pytest.mark.usefixtures("deep")
def test_a_file_bind_mounted_deeper_than_any_path_is_in_use(area: Path) -> None:
    (area / "mounted").touch()

    def bind() -> None:
        fd = os.open(area / "tree", os.O_RDONLY)
        for _ in range(DEEP):
            fd = os.open(PART, os.O_RDONLY, dir_fd=fd)
        mount(f"/proc/self/fd/{fd}/plain", area / "mounted")

    with beside(bind, own_mounts=True) as other:
        create(area / "tree", area / "job.db", others=True)
        outcome, reason = moved(area).pop("plain")
    assert (outcome, reason) == ("skipped", f"in use by a mount (pid {other.process})")


def test_a_directory_that_comes_back_is_settled_by_a_later_resume(area: Path) -> None:
    root = area / "tree"
    (root / "below").mkdir(parents=True)
    (root / "below" / "a").write_bytes(BASE)
    create(root, area / "job.db")
    killed(area / "job.db")
    (root / "below").rename(root / "away")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] == 1
    with contextlib.closing(Journal.open(area / "job.db")) as journal:
        (reason,) = journal.reasons(State.FAILED)
    left = next((root / "away").glob(".zc-*"))
    assert reason == f"directory moved; {left.name} may be left; resume the job"
    (root / "away").rename(root / "below")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    assert [path.name for path in (root / "below").iterdir()] == ["a"]


def test_a_copy_begun_in_a_directory_that_comes_back_is_removed(area: Path) -> None:
    root = area / "tree"
    (root / "below").mkdir(parents=True)
    (root / "below" / "a").write_bytes(BASE)
    create(root, area / "job.db")
    sys = FaultySys()
    sys.after = lambda _, name, result: sys.die() if name == "pwrite" else None
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE)
    (root / "below").rename(root / "away")
    run(area / "job.db", clocks=ALONE)
    assert len(list((root / "away").iterdir())) == 2
    (root / "away").rename(root / "below")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    assert [path.name for path in (root / "below").iterdir()] == ["a"]


def test_where_no_path_is_known_any_overlay_of_the_filesystem_counts(deep: int) -> None:
    look = Users().look(lambda: None)
    device, place = look._place(deep)
    assert place is None
    assert replace(look, layers=((Spot(device, b"/else"), "1"),)).inside_overlay(deep)
    assert replace(look, layers=((Spot(b"0:0", b"/"), "1"),)).inside_overlay(deep) is None
