"""Filling copies: initial attributes of a directory's files are read once, and always verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.directories import OpenDirectory
from zconsole.rebalance.engine.file_copy import FileCopier
from zconsole.rebalance.engine.item import FileName, Item
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import Sys


class Counting(Sys):
    """Counts how often attributes are listed, and modes are set."""

    def __init__(self) -> None:
        self.listed = 0
        self.modes = 0

    def listxattr(self, fd: int) -> list[str]:  # type: ignore[override]
        self.listed += 1
        return os.listxattr(fd)

    def fchmod(self, fd: int, mode: int) -> None:  # type: ignore[override]
        self.modes += 1
        os.fchmod(fd, mode)


@pytest.fixture
def place(area: Path) -> Iterator[OpenDirectory]:
    fd = os.open(area, os.O_RDONLY)
    status = os.fstat(fd)
    yield OpenDirectory(1, fd, status.st_dev, 0, 0, fixed=False)
    os.close(fd)


@pytest.fixture
def area(tmp_path: Path) -> Path:
    return tmp_path


def fill(sys: Sys, area: Path, place: OpenDirectory, number: int, mode: int) -> os.stat_result:
    """Fill a copy of a new file; returns the copy's status."""
    path = area / f"file{number}"
    path.write_bytes(b"content")
    path.chmod(mode)
    abilities = Abilities()
    with ExitStack() as closing:
        source = os.open(path, os.O_RDONLY)
        closing.callback(os.close, source)
        meta, status = metadata.read(Sys(), source, abilities)
        row = FileRow(number, 1, os.fsencode(path.name), status.st_ino, status.st_size, 1)
        item = Item([FileName(row, place, b".t")], source, status, meta, leased=False)
        first = metadata.first_mode(meta, place.born)
        item.copy = sys.open_new(place.fd, b".t%d" % number, first)
        closing.callback(os.close, item.copy)
        FileCopier(sys, hashlib.sha256).fill(item, abilities, lambda count: None)
        return os.fstat(item.copy)


def counted(sys: Counting, *words: Any) -> tuple[int, int]:
    """Return how often a new copy had its attributes listed, and its mode set."""
    listed, modes = sys.listed, sys.modes
    assert fill(sys, *words).st_mode & 0o7777 == words[-1]
    return sys.listed - listed, sys.modes - modes


def test_the_second_copy_in_a_directory_is_read_back_once(area: Path, place: OpenDirectory) -> None:
    sys = Counting()
    assert counted(sys, area, place, 1, 0o644)[0] == 2
    assert counted(sys, area, place, 2, 0o644) == (1, 0)


def test_a_copy_of_another_mode_than_the_last_gets_its_own_at_once(
    area: Path, place: OpenDirectory
) -> None:
    """The remembered mode is that of the last copy."""
    sys = Counting()
    counted(sys, area, place, 1, 0o644)
    assert counted(sys, area, place, 2, 0o666) == (1, 1)
    assert counted(sys, area, place, 3, 0o600) == (1, 0)
    assert counted(sys, area, place, 4, 0o4755) == (1, 1)
    counted(sys, area, place, 5, 0o666)
    assert counted(sys, area, place, 6, 0o644) == (1, 0)


def test_where_copies_are_born_with_attributes_each_is_looked_at(
    area: Path, place: OpenDirectory
) -> None:
    """They may differ from file to file, like default ACLs that somebody changes."""
    sys = Counting()
    fill(sys, area, place, 1, 0o644)
    assert place.born is not None
    place.born = place.born._replace(xattrs={"user.inherited": b"x"})
    assert counted(sys, area, place, 2, 0o644)[0] == 2
    assert place.born.xattrs == {}
