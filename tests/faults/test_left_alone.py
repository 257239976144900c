"""Files that a copy cannot replace, or that another process holds, are skipped with a reason."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    ALONE,
    SELF,
    FaultySys,
    Killed,
    Nobody,
    create,
    descriptors_closed,
    run,
    tree_of,
)
from zconsole.rebalance.engine import file_locks
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.engine.syscalls import FS_IOC_FIEMAP, Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import control
from zconsole.system.mounts import View

KEEP_SIZE = 1
HOLDER = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


def reasons(shown: Sequence[dict[str, Any]]) -> dict[str, tuple[str, str | None]]:
    return {Path(each["path"]).name: (each["outcome"], each["reason"]) for each in shown}


@contextmanager
def write_lease(path: Path) -> Iterator[None]:
    """Let another process hold a write lease, as a file server does for a client that caches."""
    argv = [sys.executable, "-c", HOLDER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, text=True, **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield


def test_a_file_leased_by_another_process_is_skipped_until_a_later_run(area: Path) -> None:
    root = tree_of(area, 2, 10)
    create(root, area / "job.db")
    with write_lease(root / "file0"):
        shown, summary = run(area / "job.db", None, ALONE)
    assert reasons(shown)["file0"] == ("skipped", "leased by another process")
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    _, summary = run(area / "job.db", None, ALONE)
    assert summary["files_moved"] == 2


class Signed(Sys):
    """The first file has a signature, which only a kernel with the key can make."""

    def __init__(self, root: Path, name: str) -> None:
        self.signed, self.name = (root / "file0").stat(), name

    def listxattr(self, fd: int) -> list[str]:  # type: ignore[override]
        same = os.path.samestat(os.fstat(fd), self.signed)
        return [*os.listxattr(fd), *([self.name] if same else [])]

    def getxattr(self, fd: int, name: str) -> bytes:
        return b"\x02" + bytes(20) if name == self.name else super().getxattr(fd, name)

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        if name == self.name:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        super().setxattr(fd, name, value)


@pytest.mark.parametrize("name", ["security.evm", "security.ima"])
def test_a_signed_file_is_skipped(area: Path, name: str) -> None:
    root = tree_of(area, 2, 10)
    create(root, area / "job.db")
    shown, summary = run(area / "job.db", Signed(root, name), ALONE)
    assert reasons(shown)["file0"] == ("skipped", "signed by EVM or IMA")
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)


@pytest.fixture
def elsewhere(area: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journal of two files, and a lock on another device with the first one's inode number."""
    root = tree_of(area, 2, 10)
    create(root, area / "job.db")
    status = (root / "file0").stat()
    locked = frozenset({(status.st_dev + 1, status.st_ino)})
    monkeypatch.setattr(file_locks, "locked_inodes", lambda: locked)
    return area / "job.db"


def remount(monkeypatch: pytest.MonkeyPatch, **changes: bytes) -> None:
    """Change fields of every mount in the mount table."""
    table = {number: replace(m, **changes) for number, m in Nobody.own.mounts.items()}
    monkeypatch.setattr(Nobody, "own", View(SELF, table))


def test_a_lock_on_a_file_of_another_filesystem_keeps_none(elsewhere: Path) -> None:
    shown, _ = run(elsewhere, None, ALONE)
    assert reasons(shown) == {"file0": ("moved", None), "file1": ("moved", None)}


def test_a_lock_keeps_a_file_where_stat_tells_another_device_than_its_mount(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On btrfs, for example, stat(2) reports the subvolume's device."""
    remount(monkeypatch, device=b"0:1")
    shown, _ = run(elsewhere, None, ALONE)
    assert reasons(shown) == {"file0": ("skipped", "locked"), "file1": ("moved", None)}


def test_a_lock_keeps_a_file_of_an_overlay_whatever_its_device(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remount(monkeypatch, kind=b"overlay")
    shown, _ = run(elsewhere, None, ALONE)
    assert reasons(shown)["file0"] == ("skipped", "locked")


@pytest.fixture
def mapped(tmp_path: Path) -> Path:
    """A directory on a filesystem that reports extents."""
    path = tmp_path / "probe"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        try:
            fcntl.ioctl(file, FS_IOC_FIEMAP, struct.pack("=QQIIII", 0, 4096, 0, 0, 0, 0))
        except OSError as error:
            pytest.skip(f"no FIEMAP here: {error}")
    path.unlink()
    return tmp_path


def fallocate(path: Path, mode: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    wanted = ctypes.c_int64(offset), ctypes.c_int64(length)
    done = libc.fallocate64(fd, mode, *wanted)
    os.close(fd)
    assert done == 0, os.strerror(ctypes.get_errno())


def test_blocks_behind_the_end_are_not_lost(mapped: Path) -> None:
    root = tree_of(mapped, 2, 5000)
    fallocate(root / "file0", KEEP_SIZE, 0, 1 << 20)
    allocated = (root / "file0").stat().st_blocks
    create(root, mapped / "job.db")
    shown, summary = run(mapped / "job.db", None, ALONE)
    assert reasons(shown)["file0"] == ("skipped", "preallocated blocks")
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    assert (root / "file0").stat().st_blocks == allocated


def test_reserved_blocks_beside_holes_are_not_lost(mapped: Path) -> None:
    root = tree_of(mapped, 1, 5000)
    os.truncate(root / "file0", 4 << 20)
    fallocate(root / "file0", 0, 1 << 20, 1 << 20)
    create(root, mapped / "job.db")
    shown, _ = run(mapped / "job.db", None, ALONE)
    assert reasons(shown) == {"file0": ("skipped", "preallocated blocks")}


def test_a_file_reserved_whole_keeps_its_blocks(mapped: Path) -> None:
    root = tree_of(mapped, 1, 5000)
    fallocate(root / "file0", 0, 0, 1 << 20)
    before, status = (root / "file0").read_bytes(), (root / "file0").stat()
    create(root, mapped / "job.db")
    _, summary = run(mapped / "job.db", None, ALONE)
    assert summary["files_moved"] == 1
    assert (root / "file0").read_bytes() == before
    assert (root / "file0").stat().st_blocks >= status.st_size // 512


def killed_halfway(area: Path) -> Path:
    """Return a tree of one file that the dead run had exchanged."""
    root = tree_of(area, 1, 10)
    create(root, area / "job.db")
    sys = FaultySys()
    sys.after = lambda _, name, result: sys.die() if name == "exchange" else None
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE)
    return root


def test_recovery_waits_for_a_lease_of_another_process(area: Path) -> None:
    root = killed_halfway(area)
    with contextlib.ExitStack() as held:
        held.enter_context(write_lease(root / "file0"))
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 5:
                held.close()

        _, summary = run(area / "job.db", clocks=JobClocks(sleep=sleep), users=Nobody())
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    assert len(list(root.iterdir())) == 1


def test_recovery_leaves_a_file_leased_for_long_to_a_later_resume(area: Path) -> None:
    root = killed_halfway(area)
    with write_lease(root / "file0"):
        _, summary = run(area / "job.db", clocks=ALONE)
        with contextlib.closing(Journal.open(area / "job.db")) as journal:
            failed = journal.reasons(State.FAILED)
    assert failed == {"leased by another process; resume the job": 1}
    assert (summary["files_moved"], summary["files_failed"]) == (0, 1)
    assert len(list(root.iterdir())) == 2
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (summary["files_moved"], summary["files_failed"]) == (1, 0)
    assert len(list(root.iterdir())) == 1


def test_a_file_replaced_since_the_walk_is_handled_with_its_bytes_and_needs_no_move(
    tmp_path: Path,
) -> None:
    root = tree_of(tmp_path, files=3, size=10_000)
    os.mkfifo(root / "pipe")
    create(root, tmp_path / "journal")
    (root / "new").write_bytes(b"of another job")
    (root / "new").replace(root / "file1")
    run(tmp_path / "journal", clocks=ALONE)
    job = control.status(control.adopt(tmp_path / "journal"), control.NAMED)
    assert (job.files_done, job.files_total) == (3, 3)
    assert job.bytes_handled == job.bytes_total == 30_000
    assert (job.files_moved, job.replaced) == (2, 1)
    assert job.files_unmoved == 1  # the pipe, which is not a regular file
    assert job.left_out == ()
    assert job.began is not None
    assert job.ended is not None
    assert job.began <= job.ended
    (day,) = job.days
    assert (day["moved_bytes"], day["files_replaced"]) == (20_000, 1)
