"""Versions of a file that a death left: who prevents a lease on them, and who uses them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.rebalance.engine.file_locks import FilesInUse, Users
from zconsole.rebalance.engine.holders import Holders
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.versions import PAUSE, LeasedError, Version, Versions
from zconsole.system.mounts import View


class Refusing(Sys):
    """A kernel that refuses a lease with an error, and opening what others have leased."""

    def __init__(self, code: int = 0, times: int = 0) -> None:
        self.code, self.times = code, times

    def lease(self, fd: int, kind: int) -> None:
        if self.code:
            raise OSError(self.code, os.strerror(self.code))

    def open(self, *words: object, **more: object) -> int:  # type: ignore[override]
        self.times -= 1
        if self.times >= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return Sys.open(*words, **more)  # type: ignore[arg-type]


@pytest.fixture
def area(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an open directory with a file in it."""
    (tmp_path / "file").write_bytes(b"x")
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def nothing(_count: float) -> None:
    """Do nothing: there are no orders to obey and nothing to wait for."""


@rows(
    ("code", "leased"),
    [(0, True), (errno.EAGAIN, False), (errno.EINVAL, True), (errno.ENOLCK, True)],
)
def test_only_a_writer_keeps_a_version_from_being_leased(code: int, leased: bool) -> None:
    """Without leases nobody is seen, and the operator has accepted that."""
    assert Versions(Refusing(code), Users(), nothing, nothing).lease(7) == leased


def test_others_are_given_time_to_let_go_of_their_lease(area: int) -> None:
    waits, ticks = list[float](), list[int]()
    versions = Versions(Refusing(times=3), Users(), ticks.append, waits.append)
    with versions.opened(area, b"file") as fd:
        assert os.fstat(fd).st_size == 1
    assert waits == [PAUSE] * 3
    assert ticks == [0] * 3


def test_a_lease_that_others_keep_is_not_waited_for_for_ever(area: int) -> None:
    waits = list[float]()
    versions = Versions(Refusing(times=10**6), Users(), nothing, waits.append, patience=1.0)
    with pytest.raises(LeasedError), versions.opened(area, b"file"):
        pass
    assert 0.9 < sum(waits) < 1.2


def test_a_stop_ends_the_wait_for_a_lease(area: int) -> None:
    def _stops(_count: int) -> None:
        raise StopJobError("stop")

    versions = Versions(Refusing(times=10**6), Users(), _stops, nothing)
    with pytest.raises(StopJobError), versions.opened(area, b"file"):
        pass


class Seen(FilesInUse):
    """Files in use: one after its mount was reached, or a directory in an overlay."""

    __slots__ = ()

    def add_unreached(self, directory: int) -> None:
        """Find what is mounted where this descriptor leads."""
        self.mounted.update({(0, directory): ""})

    def user(self, device: int, inode: int) -> str | None:
        """Return the use of a file; all uses are found from descriptor 5."""
        return "in use" if (0, 5) in self.mounted else None

    def inside_overlay(self, directory: int) -> str | None:
        """Return the use of a directory; descriptor 6 is in an overlay."""
        return "in use" if directory == 6 else None


class OneLook(Users):
    """Users as seen by a single look."""

    def recent(self) -> FilesInUse:
        """Return the result of that look."""
        return Seen(0.0, View(Path("/proc/self"), {}), (), Holders(), {}, {}, (), 0)


@pytest.mark.parametrize(
    ("fd", "directory", "used"),
    [(5, None, True), (4, None, False), (4, 4, False), (4, 6, True), (6, None, False)],
)
def test_a_version_is_in_use_where_others_have_it_or_see_its_directory(
    area: int, fd: int, directory: int | None, used: bool
) -> None:
    version = Version(area, fd, b"", Metadata(0, 0, 0, 0, 0, 0), leased=True)
    assert Versions(Sys(), OneLook(), nothing, nothing).in_use(version, directory) == used
