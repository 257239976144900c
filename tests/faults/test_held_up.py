"""Calls by path that found the original before the exchange, and finish after it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run
from tests.faults.test_meddlers import BASE, WRITE, Meddler, contents, tree_of
from tests.faults.test_no_exchange import NoExchange
from tests.faults.trees import ROOT

CHANGES: dict[str, Callable[[str], object]] = {
    "mode": lambda path: Path(path).chmod(0o640),
    "times": lambda path: os.utime(path, ns=(5, 5)),
    "attribute": lambda path: os.setxattr(path, "user.k", b"v"),
    "no attribute": lambda path: os.removexattr(path, "user.first"),
    "another value": lambda path: os.setxattr(path, "user.first", b"2"),
}
if ROOT:
    CHANGES["owner"] = lambda path: os.chown(path, 1234, 2345)


def metadata(path: Path) -> tuple[object, ...]:
    status = path.stat()
    xattrs = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, xattrs


def with_attribute(area: Path, names: int = 1) -> Path:
    """A tree of one file with an extended attribute, and the job for it."""
    root = tree_of(area, "a")
    for number in range(1, names):
        (root / f"a{number}").hardlink_to(root / "a")
    os.setxattr(root / "a", "user.first", b"1")
    (root / "a").chmod(0o4755)
    create(root, area / "job.db")
    return root


@pytest.mark.parametrize("names", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_of_an_original_as_it_is_removed_is_kept(
    area: Path, change: str, names: int
) -> None:
    root = with_attribute(area, names)
    inode = (root / "a").stat().st_ino
    original = os.open(root / "a", os.O_RDONLY)
    held, wanted = f"/proc/self/fd/{original}", list[object]()

    def _change() -> None:
        CHANGES[change](held)
        wanted.append(metadata(Path(held)))

    shown, _ = run(area / "job.db", Meddler().sys(before={("unlink", names): _change}), ALONE)
    os.close(original)
    assert {line["outcome"] for line in shown} == {"moved"}
    assert metadata(root / "a") == wanted[0]
    assert (root / "a").stat().st_ino != inode
    assert set(contents(root).values()) == {BASE}


def test_others_are_never_allowed_more_than_before_or_after_such_a_change(area: Path) -> None:
    if not ROOT:
        pytest.skip("not root")
    root = tree_of(area, "a")
    (root / "a").chmod(0o664)
    create(root, area / "job.db")
    original, seen = os.open(root / "a", os.O_RDONLY), list[int]()

    def _change() -> None:
        os.fchown(original, 1234, 2345)
        os.fchmod(original, 0o600)

    def _look() -> None:
        seen.append((root / "a").stat().st_mode & 0o777)

    sys = Meddler().sys(before={("unlink", 1): _change}, after={("fchown", 1): _look})
    run(area / "job.db", sys, ALONE)
    os.close(original)
    assert seen == [0o600]
    assert (root / "a").stat().st_mode & 0o777 == 0o600


def test_a_mode_is_brought_along_though_there_is_no_room_for_attributes(area: Path) -> None:
    root = with_attribute(area)
    original, sys, told = os.open(root / "a", os.O_RDONLY), FaultySys(), list[str]()

    def _fault(_number: int, name: str) -> None:
        if name == "unlink":
            os.fchmod(original, 0o644)
            told.append(name)
        elif name == "setxattr" and told:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.fault = _fault
    run(area / "job.db", sys, ALONE)
    os.close(original)
    assert (root / "a").stat().st_mode & 0o7777 == 0o644
    assert os.getxattr(root / "a", "user.first") == b"1"


def test_one_who_opens_an_original_while_its_names_are_removed_writes_to_all_of_them(
    area: Path,
) -> None:
    root, meddler = with_attribute(area, 2), Meddler()
    inode = (root / "a").stat().st_ino

    def _open() -> None:
        meddler.open(next(path for path in root.glob(".zc-*") if path.stat().st_ino == inode))

    shown, _ = run(area / "job.db", meddler.sys(after={("unlink", 1): _open}), ALONE)
    meddler.write()
    assert {(line["outcome"], line["reason"]) for line in shown} == {
        ("skipped", "open for writing")
    }
    assert contents(root) == dict.fromkeys(("a", "a1"), BASE + WRITE)
    assert (root / "a").samefile(root / "a1")


def test_an_original_opened_as_its_names_are_removed_is_kept_at_all_that_are_told(
    area: Path,
) -> None:
    """The copy was changed, too, so both are kept."""
    root = with_attribute(area, 2)
    original = (root / "a").stat()

    def _open() -> None:
        (root / "a").chmod(0o600)
        aside = next(path for path in root.glob(".zc-*") if os.path.samestat(path.stat(), original))
        with pytest.raises(BlockingIOError):  # it breaks the lease all the same
            os.open(aside, os.O_WRONLY | os.O_NONBLOCK)

    shown, _ = run(area / "job.db", Meddler().sys(after={("unlink", 1): _open}), ALONE)
    assert {line["outcome"] for line in shown} == {"failed"}
    others = {line["reason"].rpartition(" ")[2] for line in shown}
    assert others == {path.name for path in root.glob(".zc-*")}
    assert len(others) == 2
    assert all(os.path.samestat((root / other).stat(), original) for other in others)


def test_changes_of_both_are_kept(area: Path) -> None:
    """Both the copy, which had the name by then, and the original are changed."""
    root = with_attribute(area)
    original = os.open(root / "a", os.O_RDONLY)

    def _change() -> None:
        os.fchmod(original, 0o640)
        os.setxattr(f"/proc/self/fd/{original}", "user.second", b"2")
        os.removexattr(root / "a", "user.first")
        os.setxattr(root / "a", "user.third", b"3")

    run(area / "job.db", Meddler().sys(before={("unlink", 1): _change}), ALONE)
    os.close(original)
    assert (root / "a").stat().st_mode & 0o7777 == 0o640
    assert sorted(os.listxattr(root / "a")) == ["user.second", "user.third"]


@pytest.mark.parametrize("changed", [False, True], ids=["copy as it was", "copy changed"])
@pytest.mark.parametrize("names", [1, 2])
def test_a_link_made_to_an_original_as_it_is_removed_stays_one_file_with_it(
    area: Path, names: int, changed: bool
) -> None:
    root = with_attribute(area, names)
    inode = (root / "a").stat().st_ino

    def _link() -> None:
        aside = next(path for path in root.glob(".zc-*") if path.stat().st_ino == inode)
        (root / "link").hardlink_to(aside)
        (root / "a").chmod(0o600) if changed else None

    shown, _ = run(area / "job.db", Meddler().sys(before={("unlink", 1): _link}), ALONE)
    assert (root / "link").stat().st_ino == inode
    if changed:
        assert {line["outcome"] for line in shown} == {"failed"}
        others = {line["reason"].rpartition(" ")[2] for line in shown}
        assert all((root / other).samefile(root / "link") for other in others)
    else:
        assert {(line["outcome"], line["reason"]) for line in shown} == {("skipped", "changed")}
        assert not list(root.glob(".zc-*"))
        assert all((root / name).samefile(root / "link") for name in ("a", "a1")[:names])


def test_a_link_that_is_gone_again_keeps_nothing(area: Path) -> None:
    root = with_attribute(area)
    inode = (root / "a").stat().st_ino

    def _link() -> None:
        (aside,) = root.glob(".zc-*")
        (root / "link").hardlink_to(aside)

    before = {("unlink", 1): _link, ("link_fd", 1): (root / "link").unlink}
    run(area / "job.db", Meddler().sys(before=before), ALONE)
    assert contents(root) == {"a": BASE}
    assert (root / "a").stat().st_ino != inode


class Hiding(NoExchange):
    """System calls of NFS, which renames open files instead of removing them."""

    def unlink(self, directory: int, name: bytes) -> None:
        os.rename(name, b"../hidden", src_dir_fd=directory, dst_dir_fd=directory)


def test_a_change_is_kept_where_names_cannot_be_exchanged(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db", accept_races=True)
    original = os.open(root / "a", os.O_RDONLY)
    sys = Hiding(lambda _, name: os.fchmod(original, 0o640) if name == "unlink" else None)
    shown, _ = run(area / "job.db", sys, ALONE)
    os.close(original)
    assert [line["outcome"] for line in shown] == ["moved"]
    assert (root / "a").stat().st_mode & 0o777 == 0o640
    assert contents(root) == {"a": BASE}


def test_a_change_that_cannot_be_brought_along_ends_no_job(area: Path) -> None:
    root = with_attribute(area)
    original = os.open(root / "a", os.O_RDONLY)
    sys, told = FaultySys(), list[str]()

    def _fault(_number: int, name: str) -> None:
        if name == "unlink":
            os.fchmod(original, 0o640)
            told.append(name)
        elif name == "fchmod" and told:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    sys.fault = _fault
    shown, _ = run(area / "job.db", sys, ALONE)
    os.close(original)
    assert [line["outcome"] for line in shown] == ["moved"]
    assert contents(root) == {"a": BASE}
