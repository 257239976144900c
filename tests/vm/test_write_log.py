"""Logs of writes: reading them, and the disks that a power cut can leave."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.vm.inside.power import write_log
from tests.vm.inside.power.write_log import DISCARD, FLUSH, FUA, MARK, LogError

SECTOR = 512
Line = tuple[int, int, bytes]
"""Sector, flags and data of a write."""
LINES: tuple[Line, ...] = (
    (0, FLUSH, b""),
    (1, 0, b"a" * SECTOR),
    (0, FLUSH, b""),
    (0, FLUSH, b""),
    (2, FUA, b"b" * 2 * SECTOR),
    (1, DISCARD, b"?" * SECTOR),
    (0, MARK, b"here"),
    (1, 0, b"c" * SECTOR),
)


@pytest.fixture
def log(tmp_path: Path) -> int:
    """A log as the kernel writes it."""
    pieces = [struct.pack("<QQQI", write_log.MAGIC, 1, len(LINES), SECTOR)]
    for place, flags, data in LINES:
        mark, discard = flags == MARK, flags == DISCARD
        sectors = 0 if mark else len(data) // SECTOR
        head = struct.pack("<QQQQ", place, sectors, flags, len(data) if mark else 0)
        pieces.append((head + (data if mark else b"")).ljust(SECTOR, b"\0"))
        pieces.append(b"" if mark or discard else data)
    pieces[0] = pieces[0].ljust(SECTOR, b"\0")
    path = tmp_path / "log"
    path.write_bytes(b"".join(pieces))
    return os.open(path, os.O_RDONLY)


def test_points_are_where_something_new_is_on_the_disk(log: int) -> None:
    # The write before the flush, the FUA write, and the unflushed writes at the end.
    assert write_log.points(write_log.entries(log)) == [3, 5, 8]


def test_a_replay_leaves_what_was_written_last(log: int, tmp_path: Path) -> None:
    device = os.open(tmp_path / "device", os.O_RDWR | os.O_CREAT)
    entries = write_log.entries(log)
    write_log.replay(log, device, entries[:5])
    assert os.pread(device, 9999, 0) == bytes(SECTOR) + b"a" * SECTOR + b"b" * 2 * SECTOR
    write_log.replay(log, device, entries[5:])
    assert os.pread(device, 9999, SECTOR) == b"c" * SECTOR + b"b" * 2 * SECTOR


def test_anything_else_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(SECTOR))
    with pytest.raises(LogError, match="magic 0x0"):
        write_log.entries(os.open(tmp_path / "zeros", os.O_RDONLY))
