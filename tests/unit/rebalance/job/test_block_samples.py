"""Whether moving moves anything, judged by what zdb says of a few files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.rebalance.job.test_pacer import Clock
from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.job.block_samples import AGAIN, FILES, SMALLEST, Samples
from zconsole.rebalance.planning.facts import Dataset, FactsReader, Mount
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.system.process import Completed

OBJECT = """\
    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type
{inode:10}    2   128K   128K   256K     512   256K  100.00  ZFS plain file
Indirect blocks:
               0  L0 {vdev}:{inode:x}000:20000 20000L/20000P F=1 B=23/23 cksum=1
"""


class Guest:
    """Files of one directory and a zdb that knows on which vdev each lies."""

    def __init__(self, area: Path, files: int) -> None:
        self.area = area
        self.calls: list[Sequence[str]] = []
        self.rows = []
        for number in range(files):
            (area / f"f{number}").touch()
            ino = (area / f"f{number}").stat().st_ino
            self.rows.append(FileRow(number, 1, b"f%d" % number, ino, SMALLEST, 1))
        self.vdev = {row.ino: 0 for row in self.rows}
        place = JobDirectory(os.fsencode(area), Mount("zfs", "tank/a", "/a"), Dataset("tank/a", {}))
        self.clock = Clock()
        self.samples = Samples(FactsReader(self.run), place, self.path, self.clock)

    def path(self, row: FileRow) -> str:
        return f"{self.area}/{os.fsdecode(row.name)}"

    def run(self, argv: Sequence[str], deadline: float) -> Completed:
        self.calls.append(argv)
        inodes = map(int, argv[3:]) if argv[0] == "zdb" else ()
        said = [OBJECT.format(inode=i, vdev=self.vdev[i]) for i in inodes if i in self.vdev]
        return Completed(tuple(argv), 0, "\n".join(said), "")

    def batch(self, *outcomes: str) -> bool:
        self.samples.note(self.rows)
        pairs = zip(self.rows, outcomes, strict=True)
        self.samples.finished([FileOutcome(row, outcome) for row, outcome in pairs])
        return self.samples.stayed()


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Guest(tmp_path, 3)


def test_blocks_that_stay_are_seen(guest: Guest) -> None:
    assert guest.batch("moved", "moved", "moved")


def test_one_block_that_moved_is_enough(guest: Guest) -> None:
    guest.samples.note(guest.rows)
    guest.vdev[guest.rows[1].ino] = 1
    guest.samples.finished([FileOutcome(row, "moved") for row in guest.rows])
    assert not guest.samples.stayed()


def test_files_that_were_skipped_say_nothing(guest: Guest) -> None:
    """Three large files in use must not end a job that moves all the others."""
    assert not guest.batch("skipped", "skipped", "failed")
    assert guest.batch("skipped", "moved", "failed")


def test_zdb_is_asked_once_before_and_once_after(guest: Guest) -> None:
    guest.batch("moved", "moved", "moved")
    assert [argv[0] for argv in guest.calls] == ["zdb", "zpool", "zdb"]
    assert len(guest.calls[0]) == 3 + FILES
    guest.batch("moved", "moved", "moved")
    assert len(guest.calls) == 3


def test_blocks_that_stay_later_on_are_seen(guest: Guest) -> None:
    """A checksum set to sha256 in the middle of a job keeps blocks where they are from then on."""
    guest.samples.note(guest.rows)
    guest.vdev = dict.fromkeys(guest.vdev, 1)
    guest.samples.finished([FileOutcome(row, "moved") for row in guest.rows])
    assert not guest.samples.stayed()
    assert not guest.batch("moved", "moved", "moved")
    guest.clock.now += AGAIN
    assert guest.batch("moved", "moved", "moved")


def test_a_silent_zdb_is_not_asked_for_ever(guest: Guest) -> None:
    guest.vdev.clear()
    for _ in range(10):
        assert not guest.batch("moved", "moved", "moved")
    assert len(guest.calls) == 3


def test_others_than_root_ask_nothing(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not guest.batch("moved", "moved", "moved")
    assert guest.calls == []
