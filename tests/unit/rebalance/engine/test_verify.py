from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from time import sleep

import pytest

from zconsole.rebalance.engine import content
from zconsole.rebalance.engine import verify as verifying
from zconsole.rebalance.engine.content import SMALL, WINDOW, Buffers
from zconsole.rebalance.engine.item import Item, SkipError
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.verify import LEASE_PAUSE, READERS, TOGETHER, Verifier


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(READERS) as pool:
        yield pool


def copies(area: Path, contents: Sequence[bytes]) -> list[Item]:
    """Return copies with these contents, open for reading, as after a sync."""
    items = []
    for number, data in enumerate(contents):
        path = area / f"copy{number}"
        path.write_bytes(data)
        fd = os.open(path, os.O_RDONLY)
        meta = Metadata(0o100644, 0, 0, len(data), 0, 0)
        digest = content.whole(data, hashlib.sha256)
        items.append(Item([], -1, os.fstat(fd), meta, leased=False, copy=fd, digest=digest))
    return items


def nothing(count: int = 0) -> None:
    """Do nothing: there are no orders to obey and no writers to serve."""


def verifier(sys: Sys, threads: ThreadPoolExecutor | None) -> Verifier:
    return Verifier(sys, hashlib.sha256, Buffers(), lambda seconds: None, threads)


def verdicts(found: Verifier, items: Sequence[Item]) -> list[str]:
    """Return the result of verifying each copy, by the name of the error."""
    said = []
    for item in found.ahead(items, nothing):
        try:
            found.verify(item, nothing)
        except (OSError, content.ChangedError) as error:
            said.append(errno.errorcode.get(getattr(error, "errno", 0), "changed"))
        else:
            said.append("same")
        item.close(Sys())
    return said


@pytest.mark.parametrize("sized", [1, 5000, SMALL, SMALL + 1])
def test_threads_come_to_the_same_verdicts(
    tmp_path: Path, threads: ThreadPoolExecutor, sized: int
) -> None:
    data = [bytes([number]) + os.urandom(sized - 1) for number in range(TOGETHER + 3)]
    expected = ["same"] * len(data)
    for pool in (None, threads):
        items = copies(tmp_path, data)
        (tmp_path / "copy2").write_bytes(data[1])
        os.truncate(tmp_path / "copy5", sized - 1)
        os.close(items[TOGETHER].copy)
        expected[2], expected[5], expected[TOGETHER] = "EIO", "changed", "EBADF"
        assert verdicts(verifier(Sys(), pool), items) == expected


class Gathering(Sys):
    """Reads of several copies that wait for one another: a single one never ends."""

    def __init__(self, parties: int) -> None:
        self._barrier = Barrier(parties, timeout=60)

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        try:
            self._barrier.wait()
        except BrokenBarrierError:
            raise OSError(errno.EDEADLK, "alone") from None
        return super().read_into(fd, buffer, offset)


def test_small_copies_are_read_side_by_side(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "TOGETHER", 1)
    items = copies(tmp_path, [b"x" * 100] * READERS)
    assert verdicts(verifier(Gathering(READERS), threads), items) == ["same"] * READERS


class TreeTotals(Sys):
    """Reads that wait for a signal and then ``seconds``, except those of the ``first`` file."""

    def __init__(self, first: int = -1, seconds: float = 0.0) -> None:
        self.go = Event()
        self.reads = 0
        self._first, self._seconds = first, seconds

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        assert self.go.wait(5)
        sleep(0.0 if fd == self._first else self._seconds)
        self.reads += 1
        return super().read_into(fd, buffer, offset)


def test_others_are_served_while_a_read_is_waited_for(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    sys = TreeTotals()
    items = copies(tmp_path, [b"x"])
    assert list(verifier(sys, threads).ahead(items, sys.go.set)) == items
    assert items[0].verdict is True
    items[0].close(Sys())


@pytest.mark.slow
def test_no_read_is_left_behind_when_the_end_is_not_reached(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its descriptor is closed next, and the number may be reused for another file."""
    monkeypatch.setattr(verifying, "TOGETHER", 1)
    items = copies(tmp_path, [b"x"] * 2 * READERS)
    sys = TreeTotals(items[0].copy, 0.2)
    coming = verifier(sys, threads).ahead(items, sys.go.set)
    next(coming)
    coming.close()
    assert sys.reads == READERS
    assert [item.verdict for item in items] == [True] * READERS + [None] * READERS
    for item in items:
        item.close(Sys())


class FailingOnce(Sys):
    """A disk whose first read fails."""

    def __init__(self) -> None:
        self.failed = False

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        if not self.failed:
            self.failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read_into(fd, buffer, offset)


@pytest.mark.parametrize("beside", [False, True])
def test_a_copy_that_could_not_be_read_gets_no_second_chance(
    tmp_path: Path, threads: ThreadPoolExecutor, beside: bool
) -> None:
    found = verifier(FailingOnce(), threads if beside else None)
    assert verdicts(found, copies(tmp_path, [b"x" * 9000])) == ["EIO"]


@pytest.mark.parametrize("beside", [False, True])
def test_every_byte_read_back_is_accounted_for(
    tmp_path: Path, threads: ThreadPoolExecutor, beside: bool
) -> None:
    items, counted = copies(tmp_path, [b"x" * 700, b"y" * 50]), list[int]()
    found = verifier(Sys(), threads if beside else None)
    for item in found.ahead(items, nothing):
        found.verify(item, counted.append)
        item.close(Sys())
    assert sum(counted) == 750


class Advised(Sys):
    """Records the advice given to the kernel."""

    def __init__(self) -> None:
        self.said: list[tuple[int, int, int, int]] = []

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        self.said.append((fd, offset, length, advice))


@pytest.mark.parametrize("direct", [None, Buffers()], ids=["cached", "past the cache"])
def test_a_copy_is_dropped_from_the_cache_before_it_is_asked_for(
    tmp_path: Path, direct: Buffers | None
) -> None:
    """Data must be read back from the disk; the whole file leaves the cache (length 0)."""
    sys, [item] = Advised(), copies(tmp_path, [b"x"])
    Verifier(sys, hashlib.sha256, direct, lambda seconds: None).forget(item)
    dropped = (item.copy, 0, 0, os.POSIX_FADV_DONTNEED)
    wanted = (item.copy, 0, WINDOW, os.POSIX_FADV_WILLNEED)
    assert sys.said == ([dropped, wanted] if direct is None else [])
    item.close(Sys())


class Opening(Sys):
    """Records how files are reopened."""

    def __init__(self) -> None:
        self.flags: list[int] = []

    def reopen(self, fd: int, flags: int) -> int:
        self.flags.append(flags)
        return super().reopen(fd, flags & ~os.O_DIRECT)  # which not every filesystem supports


@pytest.mark.parametrize("direct", [None, Buffers()], ids=["cached", "past the cache"])
def test_a_copy_is_opened_past_the_cache_only_where_it_is_read_so(
    tmp_path: Path, direct: Buffers | None
) -> None:
    sys, [item] = Opening(), copies(tmp_path, [b"x"])
    writable = item.copy
    Verifier(sys, hashlib.sha256, direct, lambda seconds: None).reopen(item)
    assert [bool(flags & os.O_DIRECT) for flags in sys.flags] == [direct is not None]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writable)
    item.close(Sys())


class Cached(Sys):
    """A file that cannot be read past the cache, although it was opened with O_DIRECT."""

    def __init__(self) -> None:
        self.again: list[int] = []

    def reopen(self, fd: int, flags: int) -> int:
        self.again.append(super().reopen(fd, flags))
        return self.again[-1]

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        if fd not in self.again:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return super().read_into(fd, buffer, offset)


@pytest.mark.parametrize(("now", "verdict"), [(b"x", "same"), (b"y", "EIO")])
def test_a_file_that_cannot_be_read_past_the_cache_is_read_through_it(
    tmp_path: Path, now: bytes, verdict: str
) -> None:
    sys, items = Cached(), copies(tmp_path, [b"x" * 100])
    (tmp_path / "copy0").write_bytes(now * 100)
    assert verdicts(verifier(sys, None), items) == [verdict]
    [again] = sys.again
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(again)


def test_what_was_not_opened_past_the_cache_is_not_opened_again(tmp_path: Path) -> None:
    class _Refusing(Cached):
        def pread(self, fd: int, length: int, offset: int) -> bytes:  # type: ignore[override]
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    sys, items = _Refusing(), copies(tmp_path, [b"x" * 100])
    cached = Verifier(sys, hashlib.sha256, None, lambda seconds: None)
    assert verdicts(cached, items) == ["EINVAL"]
    assert sys.again == []


class Leasing(Sys):
    """A kernel that answers the first requests for a lease with an error."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times = code, times

    def lease(self, fd: int, kind: int) -> None:
        assert kind == fcntl.F_RDLCK
        self.times -= 1
        if self.times >= 0:
            raise OSError(self.code, os.strerror(self.code))


def reopened(sys: Sys, area: Path) -> tuple[Item, list[float]]:
    """Reopen the copy of a leased item; returns the item, and the waits."""
    [item], waits = copies(area, [b"x"]), list[float]()
    item.leased = True
    try:
        Verifier(sys, hashlib.sha256, None, waits.append).reopen(item)
    finally:
        item.close(Sys())
    return item, waits


def test_a_child_being_started_is_waited_for(tmp_path: Path) -> None:
    item, waits = reopened(Leasing(errno.EAGAIN, 3), tmp_path)
    assert item.copy_leased
    assert waits == [LEASE_PAUSE] * 3


def test_a_copy_that_stays_open_for_writing_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(SkipError, match="open for writing"):
        reopened(Leasing(errno.EAGAIN, 10**6), tmp_path)


def test_a_lease_refused_for_another_reason_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No locks"):
        reopened(Leasing(errno.ENOLCK, 1), tmp_path)
