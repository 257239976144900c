"""Jobs near their reserve of free space."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.harness import FaultySys, create, run, tree_of
from zconsole.rebalance.engine.workplace import JobClocks


class Disk:
    """Free space of a disk on which open originals still take room; every call takes a while."""

    def __init__(self, files: int) -> None:
        self.now = 0.0
        self.room = files
        self.held = 0
        self.slept = 0

    def called(self, number: int, name: str, result: Any) -> None:
        self.now += 0.05
        if name == "unlink":
            self.held += 1
        elif name == "close":
            self.held = 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        assert self.slept < 1000, "waits for space that the job itself holds"

    def statvfs(self, path: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=0 if self.held >= self.room else 1 << 20, f_frsize=1 << 20)


def test_no_job_waits_for_space_that_its_own_originals_hold(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree_of(area, 8, 10)
    create(area / "tree", area / "job.db")
    disk = Disk(2)
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 2)
    monkeypatch.setattr("zconsole.rebalance.job.job.os.statvfs", disk.statvfs)
    clocks = JobClocks(monotonic=lambda: disk.now, sleep=disk.sleep)
    _, summary = run(area / "job.db", FaultySys(after=disk.called), clocks)
    assert summary["files_moved"] == 8


class Crowd(Disk):
    """A disk where others leave a few bytes, after the first portion, until the job has waited."""

    moved = 0

    def called(self, number: int, name: str, result: Any) -> None:
        super().called(number, name, result)
        self.moved += name == "unlink"

    @property
    def waited(self) -> bool:
        return self.slept > 100

    def statvfs(self, path: object) -> SimpleNamespace:
        full = self.moved >= 2 and not self.waited
        return SimpleNamespace(f_bavail=1 if full else 1 << 30, f_frsize=1 << 12)


def test_a_job_waits_while_others_fill_the_filesystem(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_of(area, 8, 1 << 16)
    create(root, area / "job.db")
    crowd = Crowd(2)
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 2)
    monkeypatch.setattr("zconsole.rebalance.job.job.os.statvfs", crowd.statvfs)
    clocks = JobClocks(monotonic=lambda: crowd.now, sleep=crowd.sleep)
    shown, summary = run(area / "job.db", FaultySys(after=crowd.called), clocks)
    assert crowd.waited
    assert (summary["files_moved"], summary["skipped"]) == (8, {})
    assert {done["outcome"] for done in shown} == {"moved"}


class Outgrown(Disk):
    """A filesystem that now stores data less efficiently: a copy takes all space that is left."""

    taken = 0
    """Bytes that copies take, as stored."""

    def called(self, number: int, name: str, result: Any) -> None:
        self.now += 0.2
        if name == "pwrite":
            self.taken += 20 * result
        elif name == "unlink":
            self.taken = 0

    def sleep(self, seconds: float) -> None:
        super().sleep(10 * seconds)

    def statvfs(self, path: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=max(0, (60 << 20) - self.taken) >> 12, f_frsize=1 << 12)


def test_no_job_waits_for_space_that_only_its_own_copy_could_free(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree_of(area, 4, 1 << 14)
    (root / "large").write_bytes(bytes(range(256)) * (5 << 12))
    create(root, area / "job.db")
    disk = Outgrown(2)
    monkeypatch.setattr("zconsole.rebalance.job.job.os.statvfs", disk.statvfs)
    clocks = JobClocks(monotonic=lambda: disk.now, sleep=disk.sleep)
    _, summary = run(area / "job.db", FaultySys(after=disk.called), clocks)
    assert summary["files_moved"] == 4
    assert summary["skipped"] == {"too large for the free space": 1}
    assert (root / "large").read_bytes() == bytes(range(256)) * (5 << 12)
    assert len(list(root.iterdir())) == 5
