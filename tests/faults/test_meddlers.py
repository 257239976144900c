"""Other processes that interfere at the moments when a write could be lost."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FaultySys, Killed, ask, create, descriptors_closed, run
from zconsole.rebalance.engine import syscalls
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks

WRITE = b"written meanwhile\n"
BASE = b"as it was\n"


def tree_of(area: Path, *names: str) -> Path:
    root = area / "tree"
    root.mkdir()
    for name in names:
        (root / name).write_bytes(BASE)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir()}


def save(root: Path, name: str, content: bytes) -> None:
    """Save as an editor does: write a new file and rename it over the name."""
    (root / "new").write_bytes(content)
    (root / "new").rename(root / name)


class Meddler:
    """Acts before or after the Nth call of a name; opens that block run in a thread."""

    def __init__(self) -> None:
        self.writers: list[threading.Thread] = []
        self.files: list[int] = []

    def sys(
        self,
        before: dict[tuple[str, int], Callable[[], Any]] | None = None,
        after: dict[tuple[str, int], Callable[[], Any]] | None = None,
    ) -> FaultySys:
        begun: dict[str, int] = {}
        ended: dict[str, int] = {}

        def told(counts: dict[str, int], wanted: dict[tuple[str, int], Any], name: str) -> None:
            counts[name] = counts.get(name, 0) + 1
            wanted.get((name, counts[name]), lambda: None)()

        return FaultySys(
            lambda _, name: told(begun, before or {}, name),
            lambda _, name, result: told(ended, after or {}, name),
        )

    def open(self, path: Path | str) -> None:
        """Open for appending in a thread, which waits for leases; gives it time to break one."""
        flags = os.O_WRONLY | os.O_APPEND
        writer = threading.Thread(target=lambda: self.files.append(os.open(path, flags)))
        writer.start()
        self.writers.append(writer)
        time.sleep(0.05)

    def write(self) -> None:
        for writer in self.writers:
            writer.join()
        for file in self.files:
            os.write(file, WRITE)
            os.close(file)


def test_a_copy_that_somebody_was_let_in_to_is_not_thrown_away(area: Path) -> None:
    root = tree_of(area, "a", "b")
    originals = {name: (root / name).open("rb") for name in ("a", "b")}
    create(root, area / "job.db")
    meddler, first = Meddler(), list[str]()

    def open_copy() -> None:
        first.extend(n for n, f in originals.items() if not os.path.samestat(
            (root / n).stat(), os.fstat(f.fileno())))  # fmt: skip
        meddler.open(root / first[0])

    after = {
        ("exchange", 1): open_copy,
        ("exchange", 2): lambda: os.fchmod(originals[first[0]].fileno(), 0o644),
    }
    shown, _ = run(area / "job.db", meddler.sys(after=after))
    meddler.write()
    for file in originals.values():
        file.close()
    assert (root / first[0]).read_bytes() == BASE + WRITE
    kept = [line for line in shown if line["outcome"] == "failed"]
    assert [line["path"] for line in kept] == [str(root / first[0])]
    other = kept[0]["reason"].rpartition(" ")[2]
    assert (root / other).read_bytes() == BASE


class Counted(Sys):
    """The kernel counts a writer of the original who has not met the lease yet."""

    def __init__(self, original: int) -> None:
        self.original = original
        self.asked = 0

    def lease(self, fd: int, kind: int) -> None:
        asked = kind == fcntl.F_RDLCK and os.fstat(fd).st_ino == self.original
        self.asked += asked
        if asked and self.asked > 1:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        super().lease(fd, kind)


def test_a_writer_on_its_way_keeps_the_original(area: Path) -> None:
    root = tree_of(area, "a")
    inode = (root / "a").stat().st_ino
    create(root, area / "job.db")
    shown, _ = run(area / "job.db", Counted(inode))
    assert [line["reason"] for line in shown] == ["open for writing"]
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == {"a": inode}


def test_an_original_written_to_is_kept_where_the_copy_was_renamed(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    meddler = Meddler()
    original = (root / "a").open("rb")

    def rename_and_open() -> None:
        (root / "a").rename(root / "c")
        meddler.open(f"/proc/self/fd/{original.fileno()}")

    run(area / "job.db", meddler.sys(after={("exchange", 1): rename_and_open}))
    meddler.write()
    original.close()
    assert BASE + WRITE in contents(root).values()


def test_a_rotation_takes_the_new_file_along(area: Path) -> None:
    """The file is saved by rename, then renamed away, around the moment of the exchange."""
    root = tree_of(area, "log")
    create(root, area / "job.db")
    before = {("exchange", 1): lambda: save(root, "log", WRITE)}
    after = {("exchange", 1): lambda: (root / "log").rename(root / "log.1")}
    run(area / "job.db", Meddler().sys(before, after))
    assert contents(root) == {"log.1": WRITE}


def killed(journal: Path, name: str, before: Callable[[], Any] = lambda: None) -> None:
    """Run a job that dies right after the first call of that name."""
    sys = FaultySys(lambda _, called: before() if called == name else None)
    sys.after = lambda _, called, result: sys.die() if called == name else None
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, sys)


def killed_and_written_to(area: Path) -> Path:
    """Return a tree whose one file had been exchanged when the run died.

    Its original was written to afterwards, by a process that had it open.
    """
    root = tree_of(area, "a")
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed(area / "job.db", "exchange")
        with Path(f"/proc/self/fd/{original.fileno()}").open("ab") as again:
            again.write(WRITE)
    return root


def test_recovery_keeps_what_was_written_to_the_original_of_a_renamed_copy(area: Path) -> None:
    root = killed_and_written_to(area)
    (root / "a").rename(root / "c")
    _, summary = run(area / "job.db")
    assert sorted(contents(root).values()) == [BASE, BASE + WRITE]
    assert summary["files_failed"] == 1


def test_recovery_throws_away_an_original_nobody_touched(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed(area / "job.db", "exchange")
    (root / "a").rename(root / "c")
    run(area / "job.db")
    assert contents(root) == {"c": BASE}


def test_recovery_splits_no_links_one_of_which_was_renamed(area: Path) -> None:
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino
    killed(area / "job.db", "exchange")
    left = next(name for name in ("a", "b") if (root / name).stat().st_ino == original)
    (root / left).rename(root / "c")
    run(area / "job.db")
    assert contents(root) == {"c": BASE, "a" if left == "b" else "b": BASE}
    assert len({path.stat().st_ino for path in root.iterdir()}) == 1


def test_recovery_removes_the_original_of_links_one_of_which_was_removed(area: Path) -> None:
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    calls = iter(range(10))
    sys = FaultySys()
    sys.after = lambda _, name, result: (
        sys.die() if name == "exchange" and next(calls) == 1 else None
    )
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys)
    (root / "b").unlink()
    run(area / "job.db")
    assert contents(root) == {"a": BASE}


def test_recovery_puts_no_original_over_a_file_saved_meanwhile(area: Path) -> None:
    root = killed_and_written_to(area)
    for moment in ("exchange", "rename"):
        if (root / "a").read_bytes() != b"saved\n":
            before = {(moment, 1): lambda: save(root, "a", b"saved\n")}
            run(area / "job.db", Meddler().sys(before=before))
    assert (root / "a").read_bytes() == b"saved\n"
    assert BASE + WRITE in contents(root).values()


def test_recovery_gives_back_a_file_saved_just_before_the_exchange(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed(area / "job.db", "exchange", lambda: save(root, "a", b"saved\n"))
    run(area / "job.db")
    assert contents(root) == {"a": b"saved\n"}


class Refused(Sys):
    """Directories that belong to somebody else: their times cannot be set."""

    def set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
        if Path(f"/proc/self/fd/{fd}").is_dir():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        super().set_times(fd, atime_ns, mtime_ns)


def test_recovery_ends_in_directories_whose_times_cannot_be_set(area: Path) -> None:
    root = tree_of(area, "a", "b")
    create(root, area / "job.db")
    killed(area / "job.db", "exchange")
    _, summary = run(area / "job.db", Refused())
    assert summary["files_moved"] == 2
    assert contents(root) == {"a": BASE, "b": BASE}


class AppendOnly(Sys):
    """A directory that accepts new names but never removes any (``chattr +a``)."""

    def __init__(self, root: Path) -> None:
        self.root = root.stat()

    def _fixed(self, fd: int) -> bool:
        return os.path.samestat(os.fstat(fd), self.root)

    def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
        if request == syscalls.FS_IOC_GETFLAGS and self._fixed(fd):
            return struct.pack("l", 0x20)
        return Sys.ioctl(fd, request, data)

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def unlink(self, directory: int, name: bytes) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_directories_that_only_take_names_are_left_alone(area: Path) -> None:
    root = tree_of(area, "a", "b")
    create(root, area / "job.db")
    _, summary = run(area / "job.db", AppendOnly(root))
    assert summary["skipped"] == {"immutable or append-only": 2}
    assert contents(root) == {"a": BASE, "b": BASE}


def test_a_stop_gives_directories_their_times(area: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job stops in the second batch, after the first one has been reported."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 2)
    root = tree_of(area, *"abcdef")
    os.utime(root, ns=(1, 1))
    create(root, area / "job.db")
    now, written = [0.0], list[str]()

    def called(_number: int, name: str, _result: Any) -> None:
        now[0] += 0.1
        written.extend([name] if name == "pwrite" else [])
        if len(written) == 3:
            ask(area / "job.db", "stop")

    clocks = JobClocks(monotonic=lambda: now[0], sleep=lambda seconds: None)
    _, summary = run(area / "job.db", FaultySys(after=called), clocks)
    assert summary["stopped_by"] == "stop"
    assert root.stat().st_mtime_ns == 1
    assert contents(root) == dict.fromkeys("abcdef", BASE)
