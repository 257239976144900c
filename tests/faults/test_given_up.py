"""Files that a running job gives up: what it leaves, what it reports, and who gets access when."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, Nobody, create, run
from tests.faults.test_meddlers import BASE, WRITE, Counted, Meddler, contents, tree_of
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.workplace import JobClocks

COPIED, REPLACED, GIVEN_BACK = 2, 3, 4
"""Numbers of looks for users: after files are copied, after names are replaced, after some are
given back."""
SOON = 0.5
"""Seconds within which a process that was let in has opened a file."""


@pytest.fixture
def root(area: Path) -> Path:
    """A tree of one file, and the job for it."""
    root = tree_of(area, "a")
    create(root, area / "job.db")
    return root


class Seen(Nobody):
    """Users that see some files in use; ``used`` gives them by the number of the look."""

    def __init__(self, used: Callable[[int], Iterable[Path]]) -> None:
        super().__init__()
        self.looks, self.used = 0, used

    def recent(self) -> FilesInUse:
        return self.look()

    def look(self, *_: object, **__: object) -> FilesInUse:
        self.looks += 1
        files = (path.stat() for path in self.used(self.looks))
        found = {(status.st_dev, status.st_ino): "" for status in files}
        self.last = replace(super().look(), mounted=found)
        return self.last


class Unreached(FilesInUse):
    """Files in use, with temporary names that are mounted and only reached from their directory."""

    __slots__ = ()

    def add_unreached(self, directory: int) -> None:
        for name in os.listdir(directory):
            if name.startswith(".zc-"):
                status = os.stat(name, dir_fd=directory)
                self.mounted[status.st_dev, status.st_ino] = ""


class Afar(Seen):
    """Users that come once names have been given back, seen only from the files' directories."""

    def look(self, *_: object, **__: object) -> FilesInUse:
        found = super().look()
        if self.looks == GIVEN_BACK:
            words = {each.name: getattr(found, each.name) for each in fields(found)}
            self.last = found = Unreached(**words)
        return found


def moved(
    area: Path, users: Nobody | None = None, sys: FaultySys | Counted | None = None
) -> tuple[str, str]:
    """Return outcome and reason of the file."""
    (line,), _ = run(area / "job.db", sys, ALONE, users=users)
    return line["outcome"], line["reason"] or ""


def test_a_user_of_the_copy_alone_keeps_nothing_back(area: Path, root: Path) -> None:
    users = Seen(lambda look: [root / "a"] if look == REPLACED else [])
    assert moved(area, users) == ("moved", "")
    assert contents(root) == {"a": BASE}


def test_a_copy_that_has_no_name_yet_goes_also_where_somebody_uses_it(
    area: Path, root: Path
) -> None:
    """The user is, for example, a backup that reads everything in the directory."""
    inode = (root / "a").stat().st_ino
    users = Seen(lambda look: root.iterdir() if look == COPIED else [])
    assert moved(area, users) == ("skipped", "in use by a mount")
    assert contents(root) == {"a": BASE}
    assert (root / "a").stat().st_ino == inode


def test_where_both_are_in_use_the_name_stays_with_the_copy(area: Path, root: Path) -> None:
    inode = (root / "a").stat().st_ino
    users = Seen(lambda look: root.iterdir() if look == REPLACED else [])
    outcome, reason = moved(area, users)
    (kept,) = root.glob(".zc-*")
    assert (outcome, reason) == ("failed", f"both in use; the other version is {kept.name}")
    assert kept.stat().st_ino == inode


@pytest.mark.parametrize("users", [Seen, Afar])
def test_a_copy_in_use_once_its_name_was_given_back_is_kept(
    area: Path, root: Path, users: type[Seen]
) -> None:
    inode = (root / "a").stat().st_ino

    def _used(look: int) -> Iterable[Path]:
        hidden = list(root.glob(".zc-*"))
        return hidden if look == REPLACED or (look == GIVEN_BACK and users is Seen) else []

    outcome, reason = moved(area, users(_used))
    (kept,) = root.glob(".zc-*")
    assert (outcome, reason.partition("; ")[2]) == (
        "failed",
        f"the other version is {kept.name}",
    )
    assert (root / "a").stat().st_ino == inode


def test_a_writer_is_let_in_before_users_are_looked_for(area: Path, root: Path) -> None:
    """With many processes, the look for users may take long."""
    meddler, sys, found = Meddler(), FaultySys(), list[bool]()

    def _sleep(_seconds: float) -> None:
        if "exchange" in sys.calls and not meddler.writers:
            meddler.open(root / "a")

    def _used(look: int) -> Iterable[Path]:
        until = time.monotonic() + SOON
        while look == REPLACED and not meddler.files and time.monotonic() < until:
            time.sleep(0.005)
        found.extend([bool(meddler.files)] if look == REPLACED else [])
        return []

    run(area / "job.db", sys, JobClocks(sleep=_sleep), users=Seen(_used))
    meddler.write()
    assert found == [True]
    assert BASE + WRITE in contents(root).values()


class Shorter(FaultySys):
    """A file that ends before its reported length."""

    def pread(self, fd: int, length: int, offset: int) -> bytes:  # type: ignore[override]
        return b""


def test_a_file_that_became_shorter_is_left_alone(area: Path, root: Path) -> None:
    assert moved(area, sys=Shorter()) == ("skipped", "changed")
    assert contents(root) == {"a": BASE}


def test_what_is_no_file_any_more_is_left_alone(area: Path, root: Path) -> None:
    """A free inode number may be reused for a file of any kind."""
    (root / "a").unlink()
    os.mkfifo(root / "a")
    with closing(sqlite3.connect(area / "job.db")) as db, db:
        db.execute("UPDATE files SET ino = ?", [(root / "a").stat().st_ino])
    assert moved(area) == ("skipped", "changed")
    assert (root / "a").is_fifo()


@pytest.mark.parametrize("call", ["open_new", "exchange"])
def test_a_file_that_goes_before_a_call_on_it_is_said_to_have_changed(
    area: Path, root: Path, call: str
) -> None:
    def _gone() -> None:
        (root / "a").unlink()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    assert moved(area, sys=Meddler().sys({(call, 1): _gone})) == ("skipped", "changed")
    assert contents(root) == {}


class Failing(Counted):
    """Asking for a lease of the original a second time fails."""

    def lease(self, fd: int, kind: int) -> None:
        try:
            super().lease(fd, kind)
        except BlockingIOError:
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from None


def test_a_lease_that_fails_is_not_called_a_writer(area: Path, root: Path) -> None:
    inode = (root / "a").stat().st_ino
    assert moved(area, sys=Failing(inode)) == ("failed", "Input/output error")
    assert {path.name: path.stat().st_ino for path in root.iterdir()} == {"a": inode}
