"""Filesystems that cannot exchange two names: the original is kept under a second link."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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
from tests.faults.test_meddlers import BASE, contents
from tests.faults.test_taken_back import reasons
from zconsole.rebalance.engine.file_locks import FilesInUse


class NoExchange(FaultySys):
    """System calls of a filesystem that cannot exchange names."""

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def linked(area: Path, job: int = 0) -> Path:
    """Return the journal of a job that moves a file of two names."""
    root = area / f"tree{job}"
    root.mkdir()
    (root / "a").write_bytes(BASE)
    (root / "b").hardlink_to(root / "a")
    create(root, area / f"job{job}.db", accept_races=True)
    return root


@pytest.mark.parametrize("times", [1, 2])
def test_no_second_link_is_left_by_calls_that_fail(area: Path, times: int) -> None:
    linked(area)
    places: list[Place] = []
    undisturbed = NoExchange(after=lambda *_: places.append(place()))
    run(area / "job0.db", undisturbed, ALONE)
    calls = undisturbed.calls
    chosen = set(range(len(calls)) if ALL else first_of_each(zip(calls, places, strict=True)))
    for number in chosen & {*range(calls.index("link"), calls.index("unlink"))}:
        root = linked(area, number)
        failed = range(number, number + times)

        def fault(count: int, _: str, failed: range = failed) -> None:
            if count in failed:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with descriptors_closed(), contextlib.suppress(OSError):
            run(area / f"job{number}.db", NoExchange(fault), ALONE)
        _, summary = run(area / f"job{number}.db", NoExchange(), ALONE)
        assert contents(root) == {"a": BASE, "b": BASE}, (number, calls[number])
        assert (root / "a").samefile(root / "b")
        assert summary["files_moved"] == 2


def killed(area: Path, call: str, times: int) -> tuple[Path, Path]:
    """Return a name with the copy and one with the original, after a run that died."""
    root = linked(area)
    before = (root / "a").stat().st_ino
    sys, left = NoExchange(), iter(range(times))

    def after(_: int, name: str, __: Any) -> None:
        if name == call and next(left) == times - 1:
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job0.db", sys, ALONE)
    copied, original = sorted(
        (root / "a", root / "b"), key=lambda path: path.stat().st_ino == before
    )
    return copied, original


@pytest.mark.parametrize(("call", "times"), [("rename", 1), ("link", 2)])
def test_a_change_of_the_copy_reaches_names_not_replaced_yet(
    area: Path, call: str, times: int
) -> None:
    copied, original = killed(area, call, times)
    copied.chmod(0o640)
    _, summary = run(area / "job0.db", NoExchange(), ALONE)
    assert contents(copied.parent) == {"a": BASE, "b": BASE}
    assert copied.samefile(original)
    assert copied.stat().st_mode & 0o777 == 0o640
    assert summary["files_moved"] == 2


def test_every_name_left_is_told_where_both_versions_were_changed(area: Path) -> None:
    """Killed after the second link of the second name, before any rename."""
    copied, original = killed(area, "link", 2)
    copied.chmod(0o640)
    original.chmod(0o604)
    run(area / "job0.db", NoExchange(), ALONE)
    left = [path.name for path in copied.parent.glob(".zc-*")]
    assert left
    assert all(f"the other version is {name}" in reasons(area / "job0.db") for name in left)


class Used(Nobody):
    """Somebody uses one file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        status = path.stat()
        self.used = {(status.st_dev, status.st_ino): ""}

    def recent(self) -> FilesInUse:
        self.last = replace(super().look(), mounted=self.used)
        return self.last

    def look(self, *_: object, **__: object) -> FilesInUse:
        return self.recent()


def test_a_name_given_back_before_a_death_follows_a_changed_copy(area: Path) -> None:
    """Both names had the copy, and recovery died after giving back the first of them."""
    first, other = killed(area, "rename", 2)
    root = first.parent
    sys = NoExchange()

    def after(_: int, name: str, __: Any) -> None:
        if name == "rename" and not first.samefile(other):
            sys.die()

    sys.after = after
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job0.db", sys, ALONE, users=Used(next(root.glob(".zc-*"))))
    copied = max(first, other, key=lambda path: not path.samefile(next(root.glob(".zc-*"))))
    copied.chmod(0o640)
    run(area / "job0.db", NoExchange(), ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert first.samefile(other)
    assert first.stat().st_mode & 0o777 == 0o640


def test_a_link_made_to_a_copy_as_it_is_taken_back_is_told_of(area: Path) -> None:
    """One of its two names has its original back by then."""
    first, other = killed(area, "rename", 2)
    root = first.parent
    original = next(root.glob(".zc-*"))
    sys = NoExchange()

    def after(_: int, name: str, __: Any) -> None:
        if name == "rename" and not first.samefile(other) and not (root / "c").exists():
            copied = max(first, other, key=lambda path: path.stat().st_ino != inode)
            (root / "c").hardlink_to(copied)

    inode, sys.after = original.stat().st_ino, after
    run(area / "job0.db", sys, ALONE, users=Used(original))
    assert contents(root).keys() >= {"a", "b", "c"}
    assert "linked during the move; the other version is" in reasons(area / "job0.db")


@pytest.mark.parametrize(
    ("call", "times"),
    [("open_new", 1), ("link", 1), ("rename", 1), ("link_fd", 1), ("link", 2), ("rename", 2)],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_every_name_left_is_told_where_another_job_came_in_between(
    area: Path, monkeypatch: pytest.MonkeyPatch, call: str, times: int, renamed: bool
) -> None:
    """Another job, which cannot see the first, has moved its leftovers as files of the tree."""
    copied, original = killed(area, call, times)
    monkeypatch.setenv("ZCONSOLE_STATE", str(area / "other"))
    create(copied.parent, area / "other.db", accept_races=True)
    run(area / "other.db", NoExchange(), ALONE)
    if renamed:
        copied, original = copied.rename(f"{copied}2"), original.rename(f"{original}2")
    run(area / "job0.db", NoExchange(), ALONE)
    left = [path.name for path in copied.parent.glob(".zc-*")]
    told = reasons(area / "job0.db")
    assert not [name for name in left if not re.search(rf"the other version is.* {name}\b", told)]
    assert copied.read_bytes() == original.read_bytes() == BASE
    assert copied.samefile(original) or left


def test_no_copy_is_left_where_names_can_be_exchanged_since(area: Path) -> None:
    """After the death, the filesystem's module is newer; the original was changed."""
    copied, original = killed(area, "rename", 1)
    original.chmod(0o640)
    _, summary = run(area / "job0.db", FaultySys(), ALONE)
    assert contents(copied.parent) == {"a": BASE, "b": BASE}
    assert copied.samefile(original)
    assert copied.stat().st_mode & 0o777 == 0o640
    assert summary["files_moved"] == 2
