"""A filesystem that reports a hole where data was just written is not believed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.harness import ALONE, Killed, ask, create, descriptors_closed, run
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.content import SMALL, WINDOW
from zconsole.rebalance.engine.syscalls import Sys

SIZES = [1, SMALL + 1, WINDOW + 5, 3 * WINDOW]


class Lying(Sys):
    """A filesystem that reports every file as one hole, whatever it holds."""

    def lseek(self, fd: int, offset: int, whence: int) -> int:  # type: ignore[override]
        if whence == os.SEEK_DATA:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        return offset if whence == os.SEEK_HOLE else os.lseek(fd, offset, whence)


class Spoiling(Lying):
    """A lying filesystem that also writes the last byte wrong."""

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:  # type: ignore[override]
        return os.pwrite(fd, bytes(data[:-1]) + bytes([data[-1] ^ 1]), offset)


class Dying(Lying):
    """A lying filesystem whose process dies after a name has been replaced."""

    dead = False

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        super().exchange(directory, name, other)
        self.dead = True

    def fstat(self, fd: int) -> os.stat_result:  # type: ignore[override]
        if self.dead:
            raise Killed
        return os.fstat(fd)


@pytest.fixture
def root(area: Path) -> Path:
    """A tree of files full of data, and one with a hole at each end."""
    root = area / "tree"
    root.mkdir()
    for size in SIZES:
        (root / f"full{size}").write_bytes(os.urandom(size))
    with (root / "holed").open("wb") as file:
        file.truncate(3 * WINDOW)
        file.seek(WINDOW + 7)
        file.write(os.urandom(70_000))
    return root


@pytest.fixture(params=["cached", "direct"])
def threads(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Executor | None]:
    """A run's executor; with one, copies are read past the cache, as on a pool."""
    if request.param == "cached":
        yield None
        return
    monkeypatch.setattr(Policy, "direct", True)
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_content_said_to_be_a_hole_is_copied(root: Path, threads: Executor | None) -> None:
    before, inodes = trees.manifest(root), trees.inodes(root)
    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", Lying(), ALONE, threads)
    assert trees.manifest(root) == before
    assert summary["files_moved"] == len(inodes)
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())


def test_a_damaged_copy_said_to_be_a_hole_is_found_out(
    root: Path, threads: Executor | None
) -> None:
    before = trees.manifest(root)
    create(root, root.parent / "job.db")
    shown, summary = run(root.parent / "job.db", Spoiling(), ALONE, threads)
    assert trees.manifest(root) == before
    assert summary["files_moved"] == 0
    assert {record["reason"] for record in shown} == {"the copy read back differs"}


@pytest.mark.parametrize("name", ["full3145728", "holed"])
def test_recovery_compares_what_is_said_to_be_a_hole(root: Path, name: str) -> None:
    """A process wrote to the original after it was replaced, and the job died."""
    only = root.parent / "only"
    only.mkdir()
    (root / name).rename(only / name)
    create(only, root.parent / "job.db")
    with descriptors_closed(), pytest.raises(Killed):
        run(root.parent / "job.db", Dying(), ALONE)
    (kept,) = (path for path in only.iterdir() if path.name != name)
    times = (kept.stat().st_atime_ns, kept.stat().st_mtime_ns)
    with kept.open("r+b") as file:
        file.seek(2 * WINDOW + 1)
        file.write(b"late")
    os.utime(kept, ns=times)
    written = kept.read_bytes()
    ask(root.parent / "job.db", "stop")
    run(root.parent / "job.db", Lying(), ALONE)
    assert written in {path.read_bytes() for path in only.iterdir()}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_zeros_are_allocated_where_they_were(area: Path, sparse: bool) -> None:
    root = area / "tree"
    root.mkdir()
    path = root / "zeros"
    path.write_bytes(b"" if sparse else bytes(2 * WINDOW + 5))
    os.truncate(path, 2 * WINDOW + 5)
    before, allocated = trees.manifest(root), path.stat().st_blocks
    create(root, area / "job.db")
    _, summary = run(area / "job.db", None, ALONE)
    assert summary["files_moved"] == 1
    assert trees.manifest(root) == before
    assert path.stat().st_blocks == allocated


def test_small_holes_between_data_stay_holes(area: Path) -> None:
    root = area / "tree"
    root.mkdir()
    with (root / "islands").open("wb") as file:
        for number in range(64):
            file.seek(number << 16)
            file.write(b"island")
    allocated = (root / "islands").stat().st_blocks
    create(root, area / "job.db")
    _, summary = run(area / "job.db", None, ALONE)
    assert summary["files_moved"] == 1
    assert (root / "islands").stat().st_blocks == allocated
