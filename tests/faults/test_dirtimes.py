"""A directory that another process changes keeps the time of that change."""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    ALL,
    ALONE,
    FaultySys,
    Killed,
    create,
    descriptors_closed,
    run,
    tree_of,
)
from tests.faults.test_changes import killed_after
from zconsole.rebalance.engine.directories import OURS
from zconsole.rebalance.engine.recovery import FOREIGN
from zconsole.rebalance.engine.syscalls import IN_Q_OVERFLOW, Sys
from zconsole.rebalance.engine.workplace import JobClocks

TICK = 0.05
"""Seconds: more than a directory's time lags behind the clock (it is that of the last tick)."""

OLD = 10**18
FILES = 4
RUNS = 12 if ALL else 6


def create_file(root: Path) -> None:
    (root / "theirs").write_bytes(b"new")


def remove_file(root: Path) -> None:
    (root / "spare").unlink()


def rename_file(root: Path) -> None:
    (root / "spare").rename(root / "renamed")


def make_directory(root: Path) -> None:
    (root / "directory").mkdir()


CHANGES = [create_file, remove_file, rename_file, make_directory]


class Neighbour:
    """Changes the directory once, at the Nth call of some name."""

    def __init__(self, root: Path, change: Callable[[Path], None], call: str, count: int) -> None:
        self.root, self.change, self.call, self.left = root, change, call, count
        self.at: int | None = None
        """Modification time of the directory after that change, nanoseconds."""

    def called(self, name: str) -> None:
        self.left -= name == self.call
        if self.left < 0 and self.at is None:
            self.change(self.root)
            self.at = self.root.stat().st_mtime_ns


@pytest.fixture
def root(area: Path) -> Path:
    """An old directory of some files, and a link for others to change."""
    root = tree_of(area, FILES, 10)
    (root / "spare").symlink_to("file0")
    os.utime(root, ns=(OLD, OLD))
    create(root, area / "job.db")
    return root


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("call", "count"),
    [("open_new", 0), ("exchange", 0), ("exchange", FILES - 1), ("unlink", 0), ("unlink", 3)],
)
def test_a_change_just_beside_one_of_ours_is_seen(
    root: Path, change: Callable[[Path], None], call: str, count: int, before: bool
) -> None:
    """Both changes are within one tick of the kernel's clock and so have the same time."""
    neighbour = Neighbour(root, change, call, count)
    hooks = {"fault" if before else "after": lambda _, name, *__: neighbour.called(name)}
    _, summary = run(root.parent / "job.db", FaultySys(**hooks), ALONE)
    assert neighbour.at is not None
    assert root.stat().st_mtime_ns >= neighbour.at
    assert (summary["files_moved"], summary["files_failed"]) == (FILES, 0)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_change_while_the_time_is_put_back_is_seen(root: Path, before: bool) -> None:
    neighbour = Neighbour(root, create_file, "set_times", FILES)  # after the calls for the copies
    hooks = {"fault" if before else "after": lambda _, name, *__: neighbour.called(name)}
    run(root.parent / "job.db", FaultySys(**hooks), ALONE)
    assert neighbour.at is not None
    assert root.stat().st_mtime_ns >= neighbour.at > OLD


@pytest.mark.parametrize("number", range(RUNS))
def test_what_others_create_while_names_are_replaced_shows(area: Path, number: int) -> None:
    """Another process creates names at any moment."""
    root, changed = tree_of(area, 60, 10), list[int]()
    os.utime(root, ns=(OLD, OLD))
    create(root, area / "job.db")

    def foreign() -> None:
        time.sleep(0.001 * number)
        create_file(root)
        changed.append(root.stat().st_mtime_ns)

    thread = threading.Thread(target=foreign)

    def called(_: int, name: str) -> None:
        if name == "exchange" and thread.ident is None:
            thread.start()

    run(area / "job.db", FaultySys(called), JobClocks())
    thread.join()
    assert root.stat().st_mtime_ns >= changed[0] > OLD


def between(neighbour: Neighbour) -> JobClocks:
    """Return clocks that let the neighbor act after names are replaced and before any removal."""
    return JobClocks(sleep=lambda seconds: neighbour.called("sleep"))


def test_a_time_that_others_set_stays(root: Path) -> None:
    theirs = OLD + 10**12
    neighbour = Neighbour(root, lambda path: os.utime(path, ns=(theirs, theirs)), "sleep", 0)
    run(root.parent / "job.db", None, between(neighbour))
    assert neighbour.at == theirs
    assert root.stat().st_mtime_ns > theirs


class Unwatched(FaultySys):
    """A kernel that has no watches left."""

    def watcher(self) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Deaf(FaultySys):
    """A queue of change events that cannot be read."""

    def changes(self, queue: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


class DeafLater(FaultySys):
    """A queue of change events that cannot be read once, while names are being replaced."""

    def changes(self, queue: int) -> bytes:
        if self.calls.count("exchange") == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().changes(queue)


@pytest.mark.parametrize("kind", [Unwatched, Deaf, DeafLater])
@pytest.mark.parametrize("call", ["open_new", "exchange", "unlink"])
def test_without_watches_the_new_time_stays(root: Path, call: str, kind: type[FaultySys]) -> None:
    """Without watches, nothing shows a change by others within one of ours."""
    neighbour = Neighbour(root, create_file, call, 0)
    _, summary = run(root.parent / "job.db", kind(lambda _, name: neighbour.called(name)), ALONE)
    assert neighbour.at is not None
    assert root.stat().st_mtime_ns >= neighbour.at
    assert summary["files_moved"] == FILES


def test_a_watch_that_fails_once_is_set_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is set again for the next batch, and the directory gets the time it has then."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    sys = DeafLater()
    times = list[int]()
    sys.after = lambda _, name, __: (
        times.append(root.stat().st_mtime_ns) if name == "handle" else None
    )
    run(root.parent / "job.db", sys, ALONE)
    assert root.stat().st_mtime_ns > OLD
    assert root.stat().st_mtime_ns < times[-1]


@pytest.mark.parametrize("kind", [Unwatched, Deaf])
def test_recovery_without_watches_leaves_the_new_time(root: Path, kind: type[FaultySys]) -> None:
    killed(root, "exchange", 1)
    neighbour = Neighbour(root, create_file, "exchange", 0)
    run(root.parent / "job.db", kind(lambda _, name: neighbour.called(name)), ALONE)
    assert neighbour.at is not None
    assert root.stat().st_mtime_ns >= neighbour.at


def test_the_time_is_put_back_where_nobody_came(root: Path) -> None:
    _, summary = run(root.parent / "job.db", FaultySys(), ALONE)
    assert (summary["files_moved"], root.stat().st_mtime_ns) == (FILES, OLD)


class Overflowing(Sys):
    """A queue of change events that has overflowed."""

    def changes(self, queue: int) -> bytes:
        told = super().changes(queue)
        return told and (-1).to_bytes(4, "little", signed=True) + IN_Q_OVERFLOW.to_bytes(
            4, "little"
        ) + bytes(8)


def test_nothing_is_put_back_where_the_kernel_lost_count(root: Path) -> None:
    run(root.parent / "job.db", Overflowing(), ALONE)
    assert root.stat().st_mtime_ns > OLD


def killed(root: Path, call: str, count: int, change: Callable[[Path], None] | None = None) -> None:
    """Kill the job right after the Nth call of some name; ``change`` comes just before that."""
    system, left = FaultySys(), count

    def after(_: int, name: str, _result: Any) -> None:
        nonlocal left
        left -= name == call
        if left < 0:
            system.die()

    neighbour = Neighbour(root, change or (lambda path: None), call, count - 1)
    system.after = after
    system.fault = lambda _, name: neighbour.called(name)
    with descriptors_closed(), pytest.raises(Killed):
        run(root.parent / "job.db", system, ALONE)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("call", "count"), [("exchange", 1), ("unlink", 2)])
def test_recovery_keeps_the_time_of_a_change_before_the_kill(
    root: Path, change: Callable[[Path], None], call: str, count: int
) -> None:
    killed(root, call, count, change)
    changed = root.stat().st_mtime_ns
    _, summary = run(root.parent / "job.db", None, ALONE)
    assert root.stat().st_mtime_ns >= changed > OLD
    assert summary["files_failed"] == 0


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("call", "count"), [("exchange", 1), ("unlink", 2)])
def test_recovery_keeps_the_time_of_a_change_after_the_kill(
    root: Path, change: Callable[[Path], None], call: str, count: int
) -> None:
    killed(root, call, count)
    time.sleep(OURS + TICK)
    change(root)
    changed = root.stat().st_mtime_ns
    _, summary = run(root.parent / "job.db", None, ALONE)
    assert root.stat().st_mtime_ns >= changed > OLD
    assert summary["files_failed"] == 0


@pytest.mark.parametrize("call", ["exchange", "unlink"])
def test_recovery_puts_the_time_back_where_nobody_came(root: Path, call: str) -> None:
    killed(root, call, 1)
    assert root.stat().st_mtime_ns > OLD
    time.sleep(OURS + TICK)
    run(root.parent / "job.db", None, ALONE)
    assert root.stat().st_mtime_ns == OLD


def test_recovery_puts_the_time_back_after_a_call_held_up_for_long(root: Path) -> None:
    system, removals = FaultySys(), FILES

    def held_up(_: int, name: str) -> None:
        nonlocal removals
        removals -= name == "unlink"
        if removals == 0 and name == "unlink":
            time.sleep(1.2 * OURS)
        if removals == 0 and name == "set_times":
            system.die()

    system.fault = held_up
    with descriptors_closed(), pytest.raises(Killed):
        run(root.parent / "job.db", system, ALONE)
    assert root.stat().st_mtime_ns > OLD
    run(root.parent / "job.db", None, ALONE)
    assert root.stat().st_mtime_ns == OLD


def test_a_change_during_recovery_is_seen(root: Path) -> None:
    killed(root, "exchange", 1)
    neighbour = Neighbour(root, create_file, "exchange", 0)
    run(root.parent / "job.db", FaultySys(lambda _, name: neighbour.called(name)), ALONE)
    assert neighbour.at is not None
    assert root.stat().st_mtime_ns >= neighbour.at


@pytest.mark.parametrize(
    ("after", "restored"), [(FOREIGN / 2, True), (FOREIGN + 1, False)], ids=["within", "beyond"]
)
def test_after_a_power_cut_notes_are_taken_to_be_lost(
    root: Path, after: float, restored: bool
) -> None:
    """The cut lost the journal's last notes; the last change by the job comes after them."""
    killed(root, "exchange", 1)
    noted = time.time()
    os.utime(root, (noted + after, noted + after))
    booted = noted + 10 * FOREIGN
    run(root.parent / "job.db", None, JobClocks(booted=lambda: booted, sleep=lambda seconds: None))
    assert (root.stat().st_mtime_ns == OLD) == restored


def test_a_change_after_the_machine_has_started_is_never_ours(root: Path) -> None:
    killed(root, "exchange", 1)
    booted = time.time() + 1
    os.utime(root, (booted + 1, booted + 1))
    run(root.parent / "job.db", None, JobClocks(booted=lambda: booted, sleep=lambda seconds: None))
    assert root.stat().st_mtime_ns > OLD


class Unreadable(FaultySys):
    """A directory that cannot be opened the first times."""

    def __init__(self, name: str, times: float = math.inf) -> None:
        self.name, self.left = os.fsencode(name), times
        super().__init__()

    def open(  # type: ignore[override]
        self, path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        if path == self.name and self.left > 0:
            self.left -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().open(path, flags, mode, dir_fd=dir_fd)


@pytest.mark.parametrize("theirs", [False, True], ids=["ours", "theirs"])
def test_the_time_of_a_directory_that_is_unreadable_for_a_while_is_put_back_later(
    area: Path, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    """It is unreadable for a whole run, which moves the files of another one."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    root, changed = area / "tree", list[int]()
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_bytes(b"x")
        os.utime(root / name, ns=(OLD, OLD))
    create(root, area / "job.db")

    def _change(_number: int, name: str, _result: Any) -> None:
        if name == "open_new" and theirs:
            (half,) = {path.parent for path in root.glob("*/.zc-*")}
            create_file(half)
            changed.append(half.stat().st_mtime_ns)

    killed_after(area / "job.db", "exchange", FaultySys(after=_change))
    (half,) = {path.parent for path in root.glob("*/.zc-*")}
    assert half.stat().st_mtime_ns > OLD
    _, summary = run(area / "job.db", Unreadable(half.name), ALONE)
    assert (summary["files_moved"], summary["files_failed"]) == (1, 1)
    _, summary = run(area / "job.db", None, ALONE)
    assert (summary["files_moved"], summary["files_failed"]) == (2, 0)
    if theirs:
        assert half.stat().st_mtime_ns >= changed[0]
    else:
        assert half.stat().st_mtime_ns == OLD
