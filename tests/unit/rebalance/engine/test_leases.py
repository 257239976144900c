"""Leases: the meaning of the kernel's answers, and when files are released."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from zconsole.rebalance.engine.file_locks import Alarm
from zconsole.rebalance.engine.item import Item, SkipError, StopJobError, UnsupportedError
from zconsole.rebalance.engine.leases import NO_LEASES, LeaseService, take_lease
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.swap import Swappers
from zconsole.rebalance.engine.syscalls import SOURCE, Sys
from zconsole.rebalance.engine.withdrawal import Withdrawal

HELD, COPY = 100, 101
"""Descriptors of an original and its copy."""


class Answering(Sys):
    """A kernel that answers a request for a lease with an error."""

    def __init__(self, code: int) -> None:
        self.code = code

    def lease(self, fd: int, kind: int) -> None:
        raise OSError(self.code, os.strerror(self.code))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_CREAT | os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("accept_races", [False, True])
def test_what_is_no_file_any_more_has_changed(tmp_path: Path, accept_races: bool) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(SkipError, match="changed"):
        take_lease(Answering(errno.EINVAL), directory, accept_races)
    os.close(directory)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_filesystem_without_leases_is_refused_unless_races_are_accepted(
    file: int, code: int
) -> None:
    with pytest.raises(UnsupportedError, match="no leases"):
        take_lease(Answering(code), file, False)
    assert not take_lease(Answering(code), file, True)


@pytest.mark.parametrize(
    ("version", "mended"), [((2, 4, 1), "2.4.2"), ((2, 3, 6), "2.3.7"), ((2, 4, 2), ""), ((), "")]
)
def test_a_copy_without_leases_names_the_release_that_grants_them(
    tmp_path: Path, version: tuple[int, ...], mended: str
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    fd = os.open(tmp_path / "a", SOURCE)
    try:
        with pytest.raises(UnsupportedError) as refused:
            take_lease(Answering(errno.EINVAL), fd, False, version)
        assert take_lease(Answering(errno.EINVAL), fd, True, version) is False
    finally:
        os.close(fd)
    said = str(refused.value)
    assert said.startswith(NO_LEASES)
    assert (f"(fixed in {mended})" in said) == bool(mended)
    assert ("OpenZFS" in said) == bool(mended)


@pytest.mark.parametrize("accept_races", [False, True])
def test_a_file_that_somebody_writes_to_is_skipped(file: int, accept_races: bool) -> None:
    with pytest.raises(SkipError, match="open for writing"):
        take_lease(Answering(errno.EAGAIN), file, accept_races)


def test_any_other_error_is_no_lease(file: int) -> None:
    with pytest.raises(OSError, match="Input/output"):
        take_lease(Answering(errno.EIO), file, False)


def test_a_quiet_file_is_leased(file: int) -> None:
    assert take_lease(Sys(), file, False)
    assert Sys().leased(file)


class Broken(Sys):
    """A kernel that has broken the leases on some descriptors."""

    def __init__(self, *broken: int) -> None:
        self.broken = set(broken)
        self.asked: list[int] = []
        self.given_up: list[int] = []

    def leased(self, fd: int) -> bool:
        self.asked.append(fd)
        return fd not in self.broken

    def lease(self, fd: int, kind: int) -> None:
        assert kind == fcntl.F_UNLCK
        self.given_up.append(fd)


class Left(Withdrawal):
    """Records which files are left alone."""

    def __init__(self) -> None:
        self.given_back = []

    def retreat(self, item: Item, reason: str, outcome: str = "skipped") -> None:
        """End the work on an item."""
        item.done, item.reason = True, reason


def nothing(_count: int) -> None:
    """Do nothing: there are no orders."""


def item_of(source: int, copy: int) -> Item:
    meta = Metadata(0o100644, 0, 0, 0, 0, 0)
    return Item([], source, Path("/").stat(), meta, leased=True, copy=copy, copy_leased=True)


def service_of(sys: Sys, item: Item, tick: Callable[[int], None] = nothing) -> LeaseService:
    alarm = Alarm()
    alarm()
    return LeaseService(sys, alarm, Left(), tick, [item])


def test_a_file_is_left_alone_once_somebody_wants_to_write_to_it() -> None:
    item = item_of(HELD, COPY)
    service = service_of(Broken(HELD), item)
    service.service()
    assert (item.done, item.reason) == (True, "open for writing")
    assert not service.alarm.raised
    assert service.live == []


def test_a_copy_is_let_go_of_once_somebody_wants_to_write_to_it() -> None:
    sys, item = Broken(COPY), item_of(HELD, COPY)
    service_of(sys, item).service()
    assert sys.given_up == [COPY]
    assert (item.copy_leased, item.copy_opened, item.done) == (False, True, False)


def test_a_copy_that_waits_for_its_removal_is_let_go_of_too() -> None:
    sys, item = Broken(COPY), item_of(-1, COPY)
    item.leased, item.done = False, True
    service = service_of(sys, item)
    service.withdrawal.given_back.append((item, "skipped"))
    service.service()
    assert sys.given_up == [COPY]


def test_leases_are_asked_about_only_when_the_kernel_has_told_us() -> None:
    sys, item = Broken(), item_of(HELD, COPY)
    service = service_of(sys, item)
    service.service()
    assert sys.asked == [HELD, COPY]
    service.service()
    assert sys.asked == [HELD, COPY]


def test_a_writer_who_comes_while_the_work_waits_ends_it_at_once() -> None:
    sys, item = Broken(), item_of(HELD, COPY)

    def _waits(count: int) -> None:
        assert count == 7
        sys.broken.add(HELD)
        service.alarm()

    service = service_of(sys, item, _waits)
    with pytest.raises(SkipError, match="open for writing"):
        service.work(item, 7)


def test_a_file_that_ended_without_a_reason_has_changed() -> None:
    item = item_of(HELD, COPY)
    service = service_of(Broken(), item)
    service.work(item, 1)
    item.done = True
    with pytest.raises(SkipError, match="changed"):
        service.work(item, 1)


def test_an_order_to_stop_ends_the_work() -> None:
    def _stops(_count: int) -> None:
        raise StopJobError("stop")

    item = item_of(HELD, COPY)
    with pytest.raises(StopJobError):
        service_of(Broken(), item, _stops).work(item, 1)


class Unremovable:
    """A swapper whose copies cannot be removed."""

    def of(self, _item: Item) -> Unremovable:
        return self

    def discard(self, _item: Item) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("seen", [True, False])
def test_a_file_that_is_dropped_keeps_no_descriptor_and_no_lease(
    tmp_path: Path, seen: bool
) -> None:
    """The same for a stopped job: otherwise writers would wait for its lease."""
    held, copy = (os.open(tmp_path / name, os.O_CREAT | os.O_RDONLY) for name in ("file", "copy"))
    item = item_of(held, copy)
    item.seen = seen
    withdrawal = Left()
    withdrawal.sys, withdrawal.swappers = Sys(), cast("Swappers", Unremovable())
    withdrawal.drop(item)
    for fd in (held, copy):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
