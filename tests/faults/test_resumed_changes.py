"""Files changed around a death: nothing is lost, and each name is counted exactly once."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run
from tests.faults.test_changes import TICK, killed_after, killed_and_changed, killed_between_links
from tests.faults.test_meddlers import BASE, Meddler, contents, save, tree_of
from tests.faults.test_taken_back import reasons
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.journal import State

Summary = dict[str, Any]


def ended(summary: Summary) -> int:
    """Return the number of names with an outcome in the summary."""
    return int(sum(summary[f"files_{what}"] for what in ("moved", "skipped", "failed")))


def copied_and_not(root: Path) -> tuple[Path, Path]:
    """Return the name with the copy, and the one with the original, which is also kept aside."""
    (aside,) = root.glob(".zc-*")
    names = sorted((root / "a", root / "b"), key=aside.samefile)
    return names[0], names[1]


@pytest.mark.parametrize("first", [True, False])
def test_a_name_follows_none_that_has_ended(area: Path, first: bool) -> None:
    """Killed between two names, and a new file saved under one of them."""
    root = killed_between_links(area, 1)
    save(root, copied_and_not(root)[not first].name, b"saved\n")
    run(area / "job.db", clocks=ALONE)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert ended(summary) == 2
    assert sorted((root / name).read_bytes() for name in "ab") == [BASE, b"saved\n"]


def test_a_change_of_an_original_outlives_a_rename_of_its_copy(area: Path) -> None:
    """A rename makes the copy the last one changed, though nothing else in it differs."""
    root = killed_and_changed(area)
    time.sleep(TICK)
    (root / "a").rename(root / "c")
    (root / "c").rename(root / "a")
    run(area / "job.db", clocks=ALONE)
    assert [path.stat().st_mode & 0o777 for path in root.iterdir()] == [0o640]


@pytest.mark.parametrize("write", [True, False])
def test_changes_of_both_versions_are_both_kept(area: Path, write: bool) -> None:
    root = killed_and_changed(area)
    time.sleep(TICK)
    (root / "a").write_bytes(b"newer\n") if write else os.utime(root / "a", ns=(1, 1))
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] == 1
    assert "written to during the move; the other version is" in reasons(area / "job.db")
    other = next(root.glob(".zc-*"))
    assert other.stat().st_mode & 0o777 == 0o640
    assert (root / "a").read_bytes() == b"newer\n" or (root / "a").stat().st_mtime_ns == 1


def test_a_change_of_an_original_outlives_a_move_of_its_copy_elsewhere(area: Path) -> None:
    root = tree_of(area, "a")
    (area / "elsewhere").mkdir()
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        time.sleep(TICK)
        os.fchmod(original.fileno(), 0o640)
    (root / "a").rename(area / "elsewhere" / "a")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] == 1
    assert next(root.iterdir()).stat().st_mode & 0o777 == 0o640


def test_a_link_put_over_the_copy_leaves_nothing_behind(area: Path) -> None:
    """After ``ln -f b a``, both names have the original again, and so has the temporary name."""
    root = killed_between_links(area, 1)
    copied, original = copied_and_not(root)
    (root / "c").hardlink_to(original)
    (root / "c").rename(copied)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b")
    assert summary["files_moved"] == 2


@pytest.mark.parametrize("write", [True, False])
def test_a_change_of_the_copy_reaches_names_not_replaced_yet(area: Path, write: bool) -> None:
    """Killed between two names of a file: whoever changes one means both."""
    root = killed_between_links(area, 1)
    copied, _ = copied_and_not(root)
    time.sleep(TICK)
    copied.write_bytes(b"newer\n") if write else copied.chmod(0o640)
    now = copied.stat()
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == dict.fromkeys("ab", copied.read_bytes())
    assert (root / "a").samefile(root / "b")
    assert (copied.stat().st_mode, copied.stat().st_size) == (now.st_mode, now.st_size)
    assert summary["files_moved"] == 2


class Later(Nobody):
    """Somebody uses a file, and is seen from the second look on."""

    def __init__(self, file: os.stat_result) -> None:
        super().__init__()
        self.file, self.looks = (file.st_dev, file.st_ino), 0

    def recent(self) -> FilesInUse:
        return self.look()

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.looks += 1
        used = {self.file: ""} if self.looks > 1 else {}
        self.last = replace(super().look(), mounted=used)
        return self.last


def test_links_stay_one_file_where_its_use_is_seen_late(area: Path) -> None:
    """One name has the copy for good before somebody is seen to use the original."""
    root = killed_between_links(area, 2)
    original = next(root.glob(".zc-*"))
    users = Later(original.stat())
    _, summary = run(area / "job.db", clocks=ALONE, users=users)
    assert users.looks > 1
    assert (root / "a").samefile(root / "b")
    assert summary["files_failed"] == 1
    assert "used during the move; the other version is" in reasons(area / "job.db")


def test_a_writer_of_the_copy_reaches_names_not_replaced_yet(area: Path) -> None:
    root = killed_between_links(area, 1)
    copied, _ = copied_and_not(root)
    with copied.open("ab") as writer:
        _, summary = run(area / "job.db", clocks=ALONE)
        writer.write(b"newer\n")
    assert contents(root) == dict.fromkeys("ab", BASE + b"newer\n")
    assert (root / "a").samefile(root / "b")
    assert summary["files_moved"] == 2


@pytest.mark.parametrize("change", [True, False])
def test_a_copy_renamed_over_the_next_name_leaves_nothing_behind(area: Path, change: bool) -> None:
    """Killed after the next name's temporary one had been made."""
    root = tree_of(area, "a")
    (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino
    killed_after(area / "job.db", "link_fd", FaultySys())
    copied = next(root / name for name in "ab" if (root / name).stat().st_ino != original)
    other = "b" if copied.name == "a" else "a"
    copied.rename(root / other)
    if change:
        (root / other).chmod(0o640)
    mode = (root / other).stat().st_mode
    run(area / "job.db", clocks=ALONE)
    assert contents(root) == {other: BASE}
    assert (root / other).stat().st_mode == mode


def test_an_attribute_set_while_recovery_compares_is_kept(area: Path) -> None:
    """The process that sets it no longer looks like a user of the original afterwards."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    with (root / "a").open("rb") as original:
        killed_after(area / "job.db", "exchange", FaultySys())
        read = Meddler().sys(
            before={("pread", 2): lambda: os.setxattr(original.fileno(), "user.k", b"v")}
        )
        run(area / "job.db", read, ALONE)
    assert "user.k" in os.listxattr(next(p for p in root.iterdir() if os.listxattr(p)))


def test_a_changed_copy_is_told_of_where_the_original_was_replaced(area: Path) -> None:
    """The copy never had the name."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    sys = FaultySys()
    sys.fault = lambda _, name: sys.die() if name == "exchange" else None
    killed_after(area / "job.db", "exchange", sys)
    copy = next(root.glob(".zc-*"))
    copy.chmod(0o640)
    save(root, "a", b"saved\n")
    run(area / "job.db", clocks=ALONE)
    assert copy.stat().st_mode & 0o777 == 0o640
    assert copy.name in reasons(area / "job.db")


def test_a_file_saved_once_the_original_was_gone_counts_as_changed(area: Path) -> None:
    root = tree_of(area, "a")
    create(root, area / "job.db")
    killed_after(area / "job.db", "unlink", FaultySys())
    save(root, "a", b"saved\n")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert (summary["skipped"], summary["files_moved"]) == ({"changed": 1}, 0)


def test_links_split_by_a_move_of_a_copy_elsewhere_are_told_of(area: Path) -> None:
    root = killed_between_links(area, 1)
    (area / "elsewhere").mkdir()
    copied, _ = copied_and_not(root)
    copied.rename(area / "elsewhere" / "a")
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_failed"] == 1


def test_links_split_by_removing_our_names_are_told_of(area: Path) -> None:
    """Killed between two names; then somebody removes ours: nothing shows they were one file."""
    root = killed_between_links(area, 1)
    for path in root.glob(".zc-*"):
        path.unlink()
    _, summary = run(area / "job.db", clocks=ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b") or summary["files_failed"]


class Reused(FaultySys):
    """A filesystem that gives a new file the inode number of a removed one."""

    def __init__(self, new: int, gone: int) -> None:
        super().__init__()
        self._new, self._gone = new, gone

    def _shown(self, found: os.stat_result) -> os.stat_result:
        if found.st_ino != self._new:
            return found
        names = ("st_atime_ns", "st_mtime_ns", "st_ctime_ns", "st_blocks", "st_blksize")
        more = {name: getattr(found, name) for name in names}
        return os.stat_result((found[0], self._gone, *found[2:]), more)

    def fstat(self, fd: int) -> os.stat_result:  # type: ignore[override]
        return self._shown(os.fstat(fd))

    def lstat(self, directory: int, name: bytes) -> os.stat_result:
        return self._shown(super().lstat(directory, name))

    def name_of(self, directory: int, inode: int, but: Container[bytes] = ()) -> bytes | None:
        return super().name_of(directory, self._new if inode == self._gone else inode, but)


class Nameless(FaultySys):
    """A filesystem without file handles."""

    def handle(self, fd: int) -> bytes:
        return b""


@pytest.mark.parametrize("begun", [FaultySys, Nameless])
@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("again", [True, False], ids=["same name", "other name"])
def test_no_new_file_is_taken_for_the_copy_by_its_number(
    area: Path, links: int, again: bool, begun: type[FaultySys]
) -> None:
    """The copy is removed after the death, and another file has its inode number."""
    root = tree_of(area, "a")
    if links == 2:
        (root / "b").hardlink_to(root / "a")
    create(root, area / "job.db")
    original = (root / "a").stat().st_ino
    killed_after(area / "job.db", "exchange", begun())
    copied = next(path for path in root.glob("[ab]") if path.stat().st_ino != original)
    gone = copied.stat().st_ino
    copied.unlink()
    new = copied if again else root / "z"
    new.write_bytes(b"new\n")
    sys = Reused(new.stat().st_ino, gone)
    run(area / "job.db", sys, ALONE)
    assert new.read_bytes() == b"new\n"
    assert new.stat().st_nlink == 1
    assert [path.read_bytes() for path in root.glob("[ab]") if path != new] == [BASE] * (links - 1)
    if begun is FaultySys:
        assert "renamed" not in reasons(area / "job.db", State.SKIPPED)


def test_no_links_are_called_split_because_looks_failed(area: Path) -> None:
    """The temporary name of the original cannot be opened, and later not looked up either."""
    root = killed_between_links(area, 1)
    aside = os.fsencode(next(root.glob(".zc-*")).name)

    class Failing(FaultySys):
        _failed = False

        def open(self, name: bytes, *words: int, **more: int) -> int:  # type: ignore[override]
            self._failed = self._failed or name == aside
            return os.open(b"" if name == aside else name, *words, **more)

        def lstat(self, directory: int, name: bytes) -> os.stat_result:
            if self._failed and name == aside:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().lstat(directory, name)

    run(area / "job.db", Failing(), ALONE)
    assert "no longer one file" not in reasons(area / "job.db")
    run(area / "job.db", clocks=ALONE)
    assert contents(root) == {"a": BASE, "b": BASE}
    assert (root / "a").samefile(root / "b")
