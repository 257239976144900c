"""Giving one file the name of another, as recovery does."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from zconsole.rebalance.engine.swap import put
from zconsole.rebalance.engine.syscalls import Sys


class NoExchange(Sys):
    """System calls of a filesystem whose exchange fails."""

    def __init__(self, code: int = errno.EINVAL) -> None:
        self.code = code

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        raise OSError(self.code, os.strerror(self.code))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """An open directory with two files."""
    (tmp_path / "name").write_text("old")
    (tmp_path / "temp").write_text("new")
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def _texts(path: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in path.iterdir()}


@pytest.mark.parametrize(
    ("sys", "keep", "found"),
    [
        (Sys(), b"", {"name": "new", "temp": "old"}),
        (NoExchange(), b"", {"name": "new"}),
        (NoExchange(), b"keep", {"name": "new", "keep": "old"}),
    ],
)
def test_a_file_gets_the_name(
    tmp_path: Path, folder: int, sys: Sys, keep: bytes, found: dict[str, str]
) -> None:
    inode = (tmp_path / "name").stat().st_ino
    assert put(sys, folder, b"temp", b"name", inode, keep)
    assert _texts(tmp_path) == found


@pytest.mark.parametrize("sys", [Sys(), NoExchange()])
@pytest.mark.parametrize("keep", [b"", b"keep"])
def test_all_names_stay_where_something_else_has_it(
    tmp_path: Path, folder: int, sys: Sys, keep: bytes
) -> None:
    assert not put(sys, folder, b"temp", b"name", 1, keep)
    assert _texts(tmp_path) == {"name": "old", "temp": "new"}


class Saving(Sys):
    """System calls beside an editor, which saves its file by a rename before some exchanges."""

    def __init__(self, path: Path, saves: int) -> None:
        self.path, self.saves, self.saved = path, saves, 0

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        if self.saved < self.saves:
            self.saved += 1
            (self.path / "draft").write_text(f"saved {self.saved}")
            (self.path / "draft").rename(self.path / "name")
        super().exchange(directory, name, other)


@pytest.mark.parametrize("saves", [1, 2, 3, 4])
def test_the_newest_file_keeps_the_name_however_often_it_is_saved(
    tmp_path: Path, folder: int, saves: int
) -> None:
    inode = (tmp_path / "name").stat().st_ino
    assert not put(Saving(tmp_path, saves), folder, b"temp", b"name", inode)
    assert _texts(tmp_path)["name"] == f"saved {saves}"


def test_a_name_that_is_saved_without_end_is_not_called_given_back(
    tmp_path: Path, folder: int
) -> None:
    """A saved file may be at the temporary name then, which is left to the next recovery."""
    inode = (tmp_path / "name").stat().st_ino
    with pytest.raises(OSError, match="the name keeps being replaced"):
        put(Saving(tmp_path, 10**6), folder, b"temp", b"name", inode)


def test_an_exchange_that_fails_is_no_sign_that_names_cannot_be_exchanged(
    tmp_path: Path, folder: int
) -> None:
    inode = (tmp_path / "name").stat().st_ino
    with pytest.raises(OSError, match="Input/output error"):
        put(NoExchange(errno.EIO), folder, b"temp", b"name", inode)
    assert _texts(tmp_path) == {"name": "old", "temp": "new"}
