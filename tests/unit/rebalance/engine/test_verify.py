from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event

import pytest

from zconsole.rebalance.engine import content
from zconsole.rebalance.engine import verify as verifying
from zconsole.rebalance.engine.content import SMALL, Buffers
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.verify import READERS, TOGETHER, Verifier


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(READERS) as pool:
        yield pool


def copies(area: Path, contents: Sequence[bytes]) -> list[Item]:
    """Copies of such content, open for reading, as they are when a sync has ended."""
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
    """No order to obey, nobody to serve."""


def verifier(sys: Sys, threads: ThreadPoolExecutor | None) -> Verifier:
    return Verifier(sys, hashlib.sha256, Buffers(), lambda seconds: None, threads)


def verdicts(found: Verifier, items: Sequence[Item]) -> list[str]:
    """What verifying each says, by the name of the error."""
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
    data = [os.urandom(sized) for _ in range(TOGETHER + 3)]
    expected = ["same"] * len(data)
    for pool in (None, threads):
        items = copies(tmp_path, data)
        (tmp_path / "copy2").write_bytes(data[1])
        os.truncate(tmp_path / "copy5", sized - 1)
        os.close(items[TOGETHER].copy)
        expected[2], expected[5], expected[TOGETHER] = "EIO", "changed", "EBADF"
        assert verdicts(verifier(Sys(), pool), items) == expected


class Gathering(Sys):
    """Reads of several copies that wait for one another: alone none of them ends."""

    def __init__(self, parties: int) -> None:
        self._barrier = Barrier(parties, timeout=5)

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


class Held(Sys):
    """Reads that wait for a sign."""

    def __init__(self) -> None:
        self.go = Event()
        self.reads = 0

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        assert self.go.wait(5)
        self.reads += 1
        return super().read_into(fd, buffer, offset)


def test_others_are_served_while_a_read_is_waited_for(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    sys = Held()
    items = copies(tmp_path, [b"x"])
    assert list(verifier(sys, threads).ahead(items, sys.go.set)) == items
    assert items[0].verdict is True
    items[0].close(Sys())


def test_no_read_is_left_behind_when_the_end_is_not_reached(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its descriptor is closed next, and its number another file's."""
    monkeypatch.setattr(verifying, "TOGETHER", 1)
    sys = Held()
    items = copies(tmp_path, [b"x"] * 2 * READERS)
    coming = verifier(sys, threads).ahead(items, sys.go.set)
    next(coming)
    coming.close()
    assert sys.reads == READERS
    assert [item.verdict for item in items] == [True] * READERS + [None] * READERS
    for item in items:
        item.close(Sys())
