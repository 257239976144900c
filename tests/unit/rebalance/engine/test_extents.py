from __future__ import annotations

import errno
import os
import struct

import pytest

from tests.table import rows
from zconsole.rebalance.engine.extents import preallocated
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import Sys

KB = 1024
INLINE, UNWRITTEN = 0x200, 0x800
Run = tuple[int, int, int]
"""Offset, length and flags of an extent."""


class Mapped(Sys):
    """A file with these extents, reported as by the kernel; ``synced`` after it was written."""

    def __init__(self, runs: list[Run], synced: list[Run] | None = None) -> None:
        self.runs, self.synced = runs, runs if synced is None else synced
        self.asked = 0

    def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
        self.asked += 1
        start, length, flags, _, most, _ = struct.unpack_from("=QQIIII", data)
        runs = self.synced if flags & 1 else self.runs
        found = [r for r in runs if r[0] + r[1] > start and r[0] < start + length][:most]
        told = b"".join(
            struct.pack("=QQQ16xI12x", at, 0, size, marks | (run_is_last(runs, at)))
            for at, size, marks in found
        )
        return struct.pack("=QQIIII", start, length, flags, len(found), most, 0) + told


def run_is_last(runs: list[Run], at: int) -> int:
    return int(runs[-1][0] == at)


def status(size: int, allocated: int) -> os.stat_result:
    values = (0o100644, 7, 1, 1, 0, 0, size, 0, 0, 0)
    return os.stat_result(values, {"st_blocks": allocated // 512, "st_blksize": 4096})


@rows(
    ("size", "allocated", "runs", "expected"),
    [
        (100 * KB, 100 * KB, [(0, 100 * KB, 0)], False),
        (99 * KB, 100 * KB, [(0, 100 * KB, 0)], False),
        (100 * KB, 200 * KB, [(0, 200 * KB, 0)], True),
        (100 * KB, 200 * KB, [(0, 100 * KB, 0), (100 * KB, 100 * KB, UNWRITTEN)], True),
        (100 * KB, 100 * KB, [(0, 50 * KB, 0), (50 * KB, 50 * KB, UNWRITTEN)], False),
        (100 * KB, 80 * KB, [(0, 40 * KB, 0), (60 * KB, 40 * KB, UNWRITTEN)], True),
        (100 * KB, 80 * KB, [(0, 40 * KB, 0), (60 * KB, 40 * KB, 0)], False),
        (0, 4 * KB, [(0, 4 * KB, UNWRITTEN)], True),
        (0, 0, [], False),
        (100, 0, [(0, 4 * KB, INLINE)], False),
        (100, 0, [(0, 8 * KB, INLINE)], False),
        (1000 * KB, 500 * KB, [(8 * KB * n, 4 * KB, 0) for n in range(125)], False),
        (
            1000 * KB,
            500 * KB,
            [*((8 * KB * n, 4 * KB, 0) for n in range(124)), (992 * KB, 4 * KB, UNWRITTEN)],
            True,
        ),
    ],
)
def test_what_a_copy_would_lack_is_seen(
    size: int, allocated: int, runs: list[Run], expected: bool
) -> None:
    assert preallocated(Mapped(runs), -1, status(size, allocated), Abilities()) is expected


def test_blocks_that_are_only_being_written_are_no_reserve() -> None:
    sparse = status(100 * KB, 80 * KB)
    system = Mapped([(0, 80 * KB, UNWRITTEN)], synced=[(0, 80 * KB, 0)])
    assert preallocated(system, -1, sparse, Abilities()) is False
    assert system.asked == 2


def test_a_filesystem_that_does_not_tell_is_asked_once() -> None:
    class Silent(Sys):
        asked = 0

        def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
            self.asked += 1
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    system, abilities = Silent(), Abilities()
    for _ in range(3):
        assert preallocated(system, -1, status(KB, 8 * KB), abilities) is False
    assert system.asked == 1


def test_another_error_is_one_of_the_file() -> None:
    class Broken(Sys):
        def ioctl(self, fd: int, request: int, data: bytes) -> bytes:  # type: ignore[override]
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OSError, match="Input/output"):
        preallocated(Broken(), -1, status(KB, KB), Abilities())
