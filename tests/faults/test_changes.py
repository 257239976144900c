"""Changes by others besides content, at the critical moments: owner, mode, flags, links."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import trees
from tests.faults.harness import (
    ALL,
    ALONE,
    FaultySys,
    Killed,
    Nobody,
    Place,
    create,
    descriptors_closed,
    first_of_each,
    place,
    run,
)
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, save, tree_of
from zconsole.rebalance.engine.file_locks import FilesInUse

TICK = 0.05
"""Seconds after which a change gets a new ctime, whatever the kernel's clock."""


def mark_nodump(path: Path) -> None:
    """Set the nodump flag, as ``chattr +d`` does."""
    with path.open("rb") as file:
        try:
            flags = trees._flags(file.fileno()) | trees.NODUMP
            fcntl.ioctl(file, trees.FS_IOC_SETFLAGS, struct.pack("l", flags))
        except OSError:
            pytest.skip("no inode flags on this filesystem")


def is_nodump(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(trees._flags(file.fileno()) & trees.NODUMP)


def at(number: int, act: Callable[[], Any]) -> FaultySys:
    """Return system calls with an action of somebody else before call ``number``."""
    return FaultySys(lambda count, name: act() if count == number else None)


@pytest.mark.parametrize("gone", ["a", "b"])
def test_whichever_name_was_renamed_since_the_walk_the_file_counts_as_changed(
    area: Path, gone: str
) -> None:
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    (root / gone).rename(root / "c")
    shown, status = run(area / "job.db", clocks=ALONE)
    assert [(each["outcome"], each["reason"]) for each in shown] == [("skipped", "changed")] * 2
    assert status["files_failed"] == 0


def test_flags_set_before_any_call_are_kept(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    places: list[Place] = []
    undisturbed = FaultySys(lambda *_: places.append(place()))
    run(area / "job.db", undisturbed, ALONE)
    looked = undisturbed.calls.index("ioctl")
    replaced = undisturbed.calls.index("exchange")
    chosen = set(range(replaced + 1)) if ALL else first_of_each(places)
    for number in chosen & {*range(looked, replaced + 1)}:
        (root / "a").unlink()
        (root / "a").write_bytes(BASE)
        journal = area / f"job{number}.db"
        create(root, journal)
        run(journal, at(number, lambda: mark_nodump(root / "a")), ALONE)
        assert is_nodump(root / "a"), (number, undisturbed.calls[number])


class Ticks(FaultySys):
    """A clock so coarse that every change of files happens within one tick."""

    def fstat(self, fd: int) -> os.stat_result:  # type: ignore[override]
        found = os.fstat(fd)
        names = ("st_atime_ns", "st_mtime_ns", "st_ctime_ns", "st_blocks", "st_blksize")
        more = {name: getattr(found, name) for name in names} | {"st_ctime_ns": 10**18}
        return os.stat_result(tuple(found), more)


def test_a_change_within_the_tick_of_the_exchange_is_kept(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    original = os.open(root / "a", os.O_RDONLY)
    exchanged: list[bool] = []

    def called(_number: int, name: str, _result: Any) -> None:
        if name == "exchange":
            exchanged.append(True)
        # The first look at the original after the exchange.
        if name == "leased" and exchanged == [True]:
            exchanged.append(True)
            os.fchmod(original, 0o640)

    run(area / "job.db", Ticks(after=called), ALONE)
    os.close(original)
    assert (root / "a").stat().st_mode & 0o777 == 0o640


class Late(Nobody):
    """Somebody begins to use files between the second and the third look for users."""

    def __init__(self, *paths: Path) -> None:
        super().__init__()
        self.used = {(path.stat().st_dev, path.stat().st_ino): "" for path in paths}
        self.looks = 0

    def recent(self) -> FilesInUse:
        return self.look()

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.looks += 1
        used = self.used if self.looks == 3 else {}
        self.last = replace(super().look(), mounted=used)
        return self.last


CHANGES: dict[str, Callable[[Path], object]] = {
    "mode": lambda path: path.chmod(0o640),
    "attribute": lambda path: os.setxattr(path, "user.k", b"v"),
    "flags": mark_nodump,
    "link": lambda path: (path.parent / "second").hardlink_to(path),
}


@pytest.mark.parametrize("names", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_that_was_changed_is_not_taken_back_unsaid(
    area: Path, change: str, names: int
) -> None:
    """The original turns out to be in use, and the copy has been changed under its name."""
    root = tree_of(area, "a")
    for number in range(1, names):
        (root / f"a{number}").hardlink_to(root / "a")
    create(root, area / "job.db")
    sys = Meddler().sys(after={("exchange", names): lambda: CHANGES[change](root / "a")})
    shown, summary = run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    assert {line["outcome"] for line in shown} == {"failed"}
    assert summary["files_failed"] == names
    for line in shown:
        other = root / line["reason"].rpartition(" ")[2]
        assert other.read_bytes() == BASE
        assert other.stat().st_ino != (root / "a").stat().st_ino
    match change:
        case "mode":
            assert (root / "a").stat().st_mode & 0o777 == 0o640
        case "attribute":
            assert os.getxattr(root / "a", "user.k") == b"v"
        case "flags":
            assert is_nodump(root / "a")
        case "link":
            assert (root / "second").samefile(root / "a")


# After a death.


def killed_after(journal: Path, name: str, sys: FaultySys, users: Nobody | None = None) -> None:
    """Run a job that dies right after the first call of that name."""
    told = sys.after

    def after(number: int, called: str, result: Any) -> None:
        told(number, called, result)
        if called == name:
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(journal, sys, ALONE, users=users)


def killed_and_changed(area: Path) -> Path:
    """Return a tree of one file: its job died after the exchange, then the original was changed."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        time.sleep(TICK)
        os.fchmod(original.fileno(), 0o640)
    return root


def test_recovery_keeps_what_was_changed_just_before_the_exchange(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    before = {("exchange", 1): lambda: (root / "a").chmod(0o640)}
    killed_after(area / "job.db", "exchange", Meddler().sys(before))
    _, summary = run(area / "job.db", clocks=ALONE)
    modes = {path.stat().st_mode & 0o777 for path in root.iterdir()}
    assert 0o640 in modes
    assert summary["files_failed"] == (len(modes) > 1)


def test_recovery_keeps_what_was_written_to_a_copy_before_it_gives_a_file_back(
    area: Path,
) -> None:
    """Another file was saved right before the exchange; the copy now under its name was changed."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    before = {("exchange", 1): lambda: save(root, "a", b"saved\n")}
    killed_after(area / "job.db", "exchange", Meddler().sys(before))
    with (root / "a").open("ab") as file:
        file.write(WRITE)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert sorted(contents(root).values()) == [BASE + WRITE, b"saved\n"]
    assert summary["files_failed"] == 1


@pytest.mark.parametrize("saved", [False, True], ids=["original", "saved"])
def test_recovery_removes_no_copy_that_somebody_opens_as_it_is_taken_back(
    area: Path, saved: bool
) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    original = os.open(root / "a", os.O_RDONLY)
    before = {("exchange", 1): lambda: save(root, "a", b"saved\n")} if saved else {}
    killed_after(area / "job.db", "exchange", Meddler().sys(before))
    if not saved:
        time.sleep(TICK)
        os.fchmod(original, 0o640)
    os.close(original)
    meddler = Meddler()
    run(area / "job.db", meddler.sys({("exchange", 1): lambda: meddler.open(root / "a")}), ALONE)
    meddler.write()
    assert BASE + WRITE in contents(root).values()


@pytest.mark.parametrize("late", [False, True])
def test_recovery_keeps_a_copy_that_was_written_to_and_taken_back(area: Path, late: bool) -> None:
    """A writer had the copy open when the original got its name back; then the job died.

    If ``late``, it writes after recovery has ended.
    """
    root = tree_of(area, "a")
    create(root, area / "job.db")
    meddler = Meddler()
    sys = meddler.sys(before={("exchange", 2): lambda: meddler.open(root / "a")})
    dying = sys.after
    exchanges = iter(range(2))

    def after(number: int, name: str, result: Any) -> None:
        dying(number, name, result)
        if name == "exchange" and next(exchanges) == 1:
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE, users=Late(root / "a"))
    if not late:
        meddler.write()
    _, summary = run(area / "job.db", clocks=ALONE)
    if late:
        meddler.write()
    assert sorted(contents(root).values()) == [BASE, BASE + WRITE]
    assert summary["files_failed"] == 1


def test_recovery_removes_a_copy_that_never_had_the_name(area: Path) -> None:
    """The copy is removed even if the original was changed since."""
    root = tree_of(area, "a", "b")
    create(root, area / "job.db")
    sys = FaultySys()
    sys.fault = lambda _, name: sys.die() if name == "exchange" else None
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE)
    (root / "a").chmod(0o640)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").stat().st_mode & 0o777 == 0o640
    assert summary["files_moved"] == 2


def killed_between_links(area: Path, exchanges: int, names: str = "ab") -> Path:
    """Return a tree of one file with several names, some of which the dead run had replaced."""
    root = tree_of(area, "a")
    for name in names[1:]:
        (root / name).hardlink_to(root / "a")
    create(root, area / "job.db")
    sys, left = FaultySys(), iter(range(exchanges))

    def after(_: int, name: str, __: Any) -> None:
        if name == "exchange" and next(left) == exchanges - 1:
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", sys, ALONE)
    return root


def test_recovery_splits_no_links_of_a_copy_changed_since(area: Path) -> None:
    root = killed_between_links(area, 2)
    time.sleep(TICK)
    (root / "a").chmod(0o640)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (root / "a").samefile(root / "b")
    assert (root / "a").stat().st_mode & 0o777 == 0o640
    assert (len(contents(root)), summary["files_failed"]) == (2, 0)


def test_recovery_keeps_a_copy_that_is_changed_as_it_is_taken_back(area: Path) -> None:
    root = killed_between_links(area, 1)
    links = {path: path.stat().st_nlink for path in (root / "a", root / "b")}
    first = min(links, key=lambda path: links[path])
    run(area / "job.db", Meddler().sys({("exchange", 1): lambda: first.chmod(0o640)}), ALONE)
    assert 0o640 in {path.stat().st_mode & 0o777 for path in root.iterdir()}
