"""A sample of files that a walk of any length gives the same chance."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.table import rows
from zconsole.rebalance.planning.survey import Reservoir


def files(begin: int, end: int, size: int = 1) -> list[tuple[bytes, os.stat_result]]:
    return [
        (
            b"f",
            os.stat_result(
                (0o100644, ino, 1, 1, 0, 0, size, 0, 0, 0), {"st_blocks": 8, "st_blksize": 4096}
            ),
        )
        for ino in range(begin, end)
    ]


@rows("count", [0, 1, 5, 10])
def test_a_few_files_are_all_taken(count: int) -> None:
    reservoir = Reservoir(10)
    reservoir.offer(files(0, count))
    assert sorted(reservoir.inodes(1 << 20)) == list(range(count))


@pytest.mark.slow
def test_every_file_has_the_same_chance_wherever_it_is() -> None:
    offered = files(0, 100)
    taken: Counter[int] = Counter()
    for seed in range(2000):
        reservoir = Reservoir(10, Random(seed))
        for begin in range(0, 100, 7):
            reservoir.offer(offered[begin : begin + 7])
        found = reservoir.inodes(1 << 20)
        assert len(set(found)) == 10
        taken.update(found)
    assert min(taken[inode] for inode in range(100)) > 130
    assert max(taken.values()) < 270


def test_no_more_blocks_are_taken_than_wanted() -> None:
    reservoir = Reservoir(10)
    reservoir.offer(files(0, 10, size=100 * 4096))
    assert len(reservoir.inodes(300)) == 3
    assert len(reservoir.inodes(50)) == 1
    assert reservoir.inodes(0) == []


def test_a_file_taken_is_known_by_its_inode(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    reservoir, status = Reservoir(10), (tmp_path / "file").stat()
    reservoir.offer([(b"file", status)])
    assert reservoir.files == [(status.st_ino, 5000, status.st_blksize)]
