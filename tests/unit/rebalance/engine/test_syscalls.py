from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from zconsole.rebalance.engine import syscalls
from zconsole.rebalance.engine.syscalls import Sys


class Unprivileged:
    """A C library whose kernel refuses to link descriptors."""

    def linkat(self, *words: object) -> int:
        ctypes.set_errno(errno.ENOENT)
        return -1


class DyingDisk:
    """A C library whose filesystem cannot be synced."""

    def syncfs(self, fd: int) -> int:
        ctypes.set_errno(errno.EIO)
        return -1


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("privileged", [True, False])
def test_an_open_file_gets_a_second_name_that_is_free(
    tmp_path: Path, directory: int, privileged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not privileged:
        monkeypatch.setattr(syscalls, "_libc", Unprivileged())
    fd = Sys().open_new(directory, b"first", 0o600)
    os.write(fd, b"content")
    (tmp_path / "taken").touch()
    with pytest.raises(FileExistsError):
        Sys().link_fd(fd, directory, b"taken")
    Sys().link_fd(fd, directory, b"free")
    os.close(fd)
    assert (tmp_path / "free").read_bytes() == b"content"


def test_a_filesystem_that_cannot_be_synced_is_named(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syscalls, "_libc", DyingDisk())
    with pytest.raises(OSError, match="Input/output error") as raised:
        Sys().syncfs(directory)
    assert raised.value.filename == str(tmp_path)


def test_a_handle_is_of_one_file_under_all_its_names(tmp_path: Path) -> None:
    sys, handles = Sys(), []
    (tmp_path / "a").touch()
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "c").touch()
    for name in "abc":
        with (tmp_path / name).open("rb") as file:
            handles.append(sys.handle(file.fileno()))
    if not handles[0]:
        pytest.skip("no handles on this filesystem")
    assert handles[0] == handles[1] != handles[2]
