from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from zconsole.rebalance import readahead
from zconsole.rebalance.content import WINDOW
from zconsole.rebalance.item import Item
from zconsole.rebalance.metadata import Metadata
from zconsole.rebalance.readahead import ahead
from zconsole.rebalance.syscalls import Sys


class Asked(Sys):
    """Notes what was asked for; a filesystem that knows no advice."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int, int]] = []

    def fadvise(self, fd: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_WILLNEED
        self.ranges.append((fd, offset, length))
        raise OSError(errno.EINVAL, "no advice here")


def item(area: Path, number: int, size: int) -> Item:
    path = area / "file"
    with path.open("wb") as file:
        file.truncate(size)
    meta = Metadata(0o100644, 0, 0, size, 0, 0)
    return Item([], number, path.stat(), meta, leased=True)


def test_asks_for_what_follows_and_gives_all_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readahead, "AHEAD_FILES", 3)
    sys, items = Asked(), [item(tmp_path, number, 10) for number in range(6)]
    given, asked = [], []
    for each in ahead(sys, items):
        given.append(each.source)
        asked.append(len(sys.ranges))
    assert given == [0, 1, 2, 3, 4, 5]
    assert asked == [3, 4, 5, 6, 6, 6]
    assert sys.ranges == [(number, 0, 10) for number in range(6)]


def test_asks_for_the_first_window_of_large_files_and_for_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readahead, "AHEAD_BYTES", 2 * WINDOW)
    sys, items = Asked(), [item(tmp_path, number, 5 * WINDOW) for number in range(4)]
    coming = ahead(sys, items)
    next(coming)
    assert sys.ranges == [(0, 0, WINDOW), (1, 0, WINDOW)]


def test_asks_for_nothing_of_empty_files_and_of_those_given_up(tmp_path: Path) -> None:
    sys, items = Asked(), [item(tmp_path, 0, 0), item(tmp_path, 1, 10)]
    items[1].done = True
    assert list(ahead(sys, items)) == items
    assert sys.ranges == []
