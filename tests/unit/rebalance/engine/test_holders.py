from __future__ import annotations

import os
from pathlib import Path

from zconsole.rebalance.engine.holders import Holders

PATH_MAX = 4096


def test_a_file_whose_path_is_too_long_to_be_told_is_seen(tmp_path: Path) -> None:
    """Otherwise anybody could keep every job on the machine from starting by such a path."""
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(PATH_MAX // 100):
        os.mkdir("d" * 200, dir_fd=directory)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    held = os.open("held", os.O_RDWR | os.O_CREAT, dir_fd=directory)
    try:
        found = Holders.look(frozenset())
        assert os.fstat(held).st_ino in found.by_inode
    finally:
        os.close(held)
        os.close(directory)
