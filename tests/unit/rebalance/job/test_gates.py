"""What makes a running job wait: looked at beside the work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.rebalance.job.test_pacer import Clock
from zconsole.rebalance.job.gates import (
    POOL_INTERVAL,
    SNAPSHOT_INTERVAL,
    PeriodicCheck,
    PoolGate,
    SnapshotGate,
    SpaceGate,
)
from zconsole.rebalance.job.job import Floor, Job
from zconsole.rebalance.job.job import floors as read_floors
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.system.process import Completed

ONLINE = "  pool: tank\n state: ONLINE\n  scan: none requested\n"
SCRUB = "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Sat Nov 21 10:00:00 2026\n"


def answering(*texts: str) -> tuple[Callable[[Sequence[str], float], Completed], threading.Event]:
    """What stands for zfs and zpool: these outputs, all but the first once the event is set."""
    left, ready = list(texts), threading.Event()

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        if len(left) < len(texts):
            assert ready.wait(5)
        return Completed(tuple(argv), 0, left.pop(0), "")

    return run, ready


def settle(looks: PeriodicCheck) -> None:
    while looks.at_it:
        threading.Event().wait(0.001)


def test_a_slow_zpool_does_not_hold_up_the_work() -> None:
    clock = Clock()
    run, ready = answering(ONLINE, SCRUB)
    gate = PoolGate(FactsReader(run), "tank", False, clock)
    assert gate() is None
    clock.now += POOL_INTERVAL
    assert gate() is None
    ready.set()
    settle(gate.looks)
    assert gate() == "a scrub is running"


def test_a_scan_that_runs_already_is_seen_before_the_first_file() -> None:
    run, _ = answering(SCRUB)
    assert PoolGate(FactsReader(run), "tank", False, Clock())() == "a scrub is running"


def test_a_new_snapshot_that_would_pin_too_much_closes_the_gate() -> None:
    clock, notes = Clock(), []
    run, ready = answering("50\n", "150\n50\n", "50\n")
    gate = SnapshotGate(FactsReader(run), ["tank/a"], lambda: 10, lambda: 5, clock, notes.append)
    assert gate() is None
    clock.now += SNAPSHOT_INTERVAL
    ready.set()
    gate()
    settle(gate.looks)
    assert gate() == "a new snapshot pins old blocks: 10 bytes left to move, 5 free"
    assert len(notes) == 1
    assert "tank/a" in notes[0]
    clock.now += SNAPSHOT_INTERVAL
    gate()
    settle(gate.looks)
    assert gate() is None


def test_snapshots_that_are_held_meanwhile_are_noticed() -> None:
    clock, notes = Clock(), []
    run, ready = answering("50\t1\n40\t0\n", "50\t1\n40\t2\n", "50\t0\n40\t2\n")
    gate = SnapshotGate(FactsReader(run), ["tank/a"], lambda: 10, lambda: 50, clock, notes.append)
    gate()
    ready.set()
    for _ in range(2):
        clock.now += SNAPSHOT_INTERVAL
        gate()
        settle(gate.looks)
    assert notes == ["snapshots of tank/a were held: what they keep stays until a release"]


class Filesystem(NamedTuple):
    f_bavail: int
    f_frsize: int
    st_dev: int


def test_every_filesystem_has_its_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = Filesystem(1000, 10, 1), Filesystem(50, 10, 2)
    disks = {b"/large": large, "/large": large, b"/small": small, "/small": small}
    monkeypatch.setattr(os, "statvfs", lambda path: disks[path])
    monkeypatch.setattr(Path, "stat", lambda path, **_: disks[str(path)])
    gate = SpaceGate({b"/large": 100, b"/small": 480}, Clock())
    assert [gate.room(device=device) for device in (1, 2)] == [9900, 20]
    assert gate.room() == 20
    gate.reserves = {b"/large": 100, b"/small": 500}
    assert gate.room(fresh=True) == 0
    assert gate() == "free space is at the floor"


def test_no_portion_is_begun_hardly_above_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Filesystem(1 << 10, 1 << 10, 1)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    monkeypatch.setattr(Path, "stat", lambda path, **_: disk)
    for planned, reason in ((1 << 40, "free space is at the floor"), (1 << 20, None), (0, None)):
        gate = SpaceGate({b"/a": 1000}, Clock(), {b"/a": planned})
        assert (gate(), gate.before_batch()) == (None, reason)
    gate.reserves = {b"/a": 1 << 20}
    assert gate.room(fresh=True) == 0
    assert gate.before_batch() == gate() == "free space is at the floor"


def test_a_floor_is_moved_on_any_filesystem() -> None:
    settings = Settings(("/a", "/b"), limits=Limits(min_free=0.1))
    floors = {"/a": Floor(100, 1000.0), "/b": Floor(30, 300.0)}
    job = Job("j", settings, {}, (), 1.0, floors, None)
    assert job.reserves_at(0.1) == {b"/a": 100, b"/b": 30}
    assert job.reserves_at(0.5) == {b"/a": 500, b"/b": 150}
    assert job.reserves_at(0.0) == {b"/a": 0, b"/b": 0}


def test_a_journal_of_before_has_the_floor_of_its_first_directory() -> None:
    data = {"settings": {"dirs": ["/a", "/b"]}, "reserve": 7, "raw_factor": 2.0,
            "spaces": [["v", 100, 5, 1]]}  # fmt: skip
    assert read_floors(data) == {"/a": Floor(7, 50.0)}
