"""Inode flags, projects and extent sizes: kept, or the file is left alone with the reason."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, create, run, tree_of
from zconsole.rebalance.engine import syscalls
from zconsole.rebalance.engine.syscalls import Sys

SETTABLE = {
    "s": 0x1, "u": 0x2, "c": 0x4, "S": 0x8, "d": 0x40, "A": 0x80, "m": 0x400, "j": 0x4000,
    "t": 0x8000, "D": 0x1_0000, "T": 0x2_0000, "e": 0x8_0000, "C": 0x80_0000, "x": 0x200_0000,
    "P": 0x2000_0000,
}  # fmt: skip
"""The letters of chattr(1) and their flags (linux/fs.h), except those that forbid changes."""
FSX = struct.Struct("=5I8x")


class Flags(Sys):
    """A filesystem with every flag and extent size; new files in it start with some of them."""

    def __init__(self, flags: dict[int, int], fsx: dict[int, tuple[int, ...]], born: int = 0):
        self.flags, self.fsx, self.born, self.refuses = flags, fsx, born, 0
        self.dos: dict[int, int] = {}

    def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
        inode = os.fstat(fd).st_ino
        nothing = (0,) * 5
        match request:
            case syscalls.FS_IOC_GETFLAGS:
                return struct.pack("l", self.flags.get(inode, self.born))
            case syscalls.FS_IOC_FSGETXATTR:
                return FSX.pack(*self.fsx.get(inode, nothing))
            case syscalls.FS_IOC_SETFLAGS | syscalls.FS_IOC_FSSETXATTR if self.refuses:
                raise OSError(self.refuses, os.strerror(self.refuses))
            case syscalls.FS_IOC_SETFLAGS:
                self.flags[inode] = struct.unpack("l", data)[0]
            case syscalls.FS_IOC_FSSETXATTR:
                self.fsx[inode] = FSX.unpack(data)
            case syscalls.ZFS_IOC_GETDOSFLAGS:
                return struct.pack("=Q", self.dos.get(inode, 0))
            case _:
                raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        return data


def moved(area: Path, sys: Sys) -> tuple[str, str | None]:
    """Return the outcome and reason of the only file of a tree."""
    create(area / "tree", area / "job.db")
    ((shown,), _) = run(area / "job.db", sys, ALONE)
    return shown["outcome"], shown["reason"]


@pytest.mark.parametrize("letter", SETTABLE)
@pytest.mark.parametrize("born", [0, 0x8_0000], ids=["born plain", "born with e"])
def test_a_flag_that_chattr_sets_is_kept(area: Path, letter: str, born: int) -> None:
    path = tree_of(area, 1, 10) / "file0"
    sys = Flags({path.stat().st_ino: SETTABLE[letter]}, {}, born)
    assert moved(area, sys) == ("moved", None)
    assert sys.flags.get(path.stat().st_ino, born) == SETTABLE[letter]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL])
@pytest.mark.parametrize("letter", ["j", "m"])
def test_a_flag_that_we_may_not_set_keeps_the_file(area: Path, letter: str, code: int) -> None:
    path = tree_of(area, 1, 10) / "file0"
    sys = Flags({path.stat().st_ino: SETTABLE[letter]}, {})
    sys.refuses = code
    assert moved(area, sys) == ("skipped", "flags cannot be kept")
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("flag", "outcome"),
    [
        (0x800, ("skipped", "flags cannot be kept")),
        (0x2000, ("skipped", "flags cannot be kept")),
        (0x4000_0000, ("skipped", "flags cannot be kept")),
        (0x10_0000, ("skipped", "signed by fs-verity")),
        (0x10, ("skipped", "immutable or append-only")),
        (0x20, ("skipped", "immutable or append-only")),
        (0x200, ("moved", None)),
        (0x1000_0000, ("moved", None)),
    ],
)
def test_flags_that_nobody_can_set(area: Path, flag: int, outcome: tuple[str, str | None]) -> None:
    path = tree_of(area, 1, 10) / "file0"
    assert moved(area, Flags({path.stat().st_ino: flag}, {})) == outcome


def test_a_file_is_moved_where_copies_are_encrypted_as_it_is(area: Path) -> None:
    tree_of(area, 1, 10)
    assert moved(area, Flags({}, {}, born=0x800)) == ("moved", None)


@pytest.mark.parametrize(
    "fsx",
    [
        (0x800, 65536, 0, 0, 0),
        (0x1_0000, 0, 0, 0, 131072),
        (0x1_0800, 65536, 0, 42, 131072),
        (0x2000, 0, 0, 0, 0),
        (0x4001, 0, 0, 7, 0),
    ],
)
def test_extent_sizes_are_kept(area: Path, fsx: tuple[int, ...]) -> None:
    path = tree_of(area, 1, 10) / "file0"
    sys = Flags({}, {path.stat().st_ino: fsx})
    assert moved(area, sys) == ("moved", None)
    assert sys.fsx[path.stat().st_ino] == fsx


def test_extent_sizes_that_cannot_be_kept_keep_the_file(area: Path) -> None:
    path = tree_of(area, 1, 10) / "file0"
    sys = Flags({}, {path.stat().st_ino: (0x800, 65536, 0, 0, 0)})
    sys.refuses = errno.EINVAL
    assert moved(area, sys) == ("skipped", "extent size cannot be kept")


def test_a_file_whose_names_zfs_does_not_give_up_is_left_alone(area: Path) -> None:
    path = tree_of(area, 1, 10) / "file0"
    sys = Flags({}, {})
    sys.dos[path.stat().st_ino] = 0x20 << 32
    assert moved(area, sys) == ("skipped", "marked nounlink")


class Locked(Sys):
    """A file encrypted with fscrypt whose key is missing."""

    def open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:  # type: ignore[override]
        if path == b"file0":
            raise OSError(errno.ENOKEY, os.strerror(errno.ENOKEY))
        return os.open(path, flags, *args, **kwargs)


def test_a_file_without_its_key_is_skipped(area: Path) -> None:
    tree_of(area, 1, 10)
    assert moved(area, Locked()) == ("skipped", "encrypted, its key is missing")
