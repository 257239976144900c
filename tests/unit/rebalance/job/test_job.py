"""A job from its journal, and its free space: how much may be written, and where."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from tests.table import rows
from tests.unit.rebalance.job.counted import accounts_of, job_of
from tests.unit.rebalance.job.test_holds import Clock
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.job import (
    MOST,
    NO_SPACE,
    NO_WRITING,
    QUOTA,
    SPACE_INTERVAL,
    STEP,
    TREND_SECONDS,
    FreeSpace,
    JobTerms,
    Trend,
)
from zconsole.rebalance.planning.settings import Floor, Limits, Settings


def test_a_floor_is_moved_on_any_filesystem() -> None:
    settings = Settings(("/a", "/b"), limits=Limits(min_free=0.1))
    floors = {"/a": Floor(100, 1000.0), "/b": Floor(30, 300.0)}
    job = JobTerms("j", settings, {}, (), 1.0, floors)
    assert job.reserves_at(0.1) == {"/a": 100, "/b": 30}
    assert job.reserves_at(0.5) == {"/a": 500, "/b": 150}
    assert job.reserves_at(0.0) == {"/a": 0, "/b": 0}


MIB = 1 << 20


@rows(
    ("rooms", "outlook"),
    [
        (
            [(1000 - 15 * number) * MIB for number in range(21)],
            "free space falls by 60M a minute: only what is kept free is left in 14m10s",
        ),
        # Copies in flight are no trend.
        ([(1000 - 400 * (number % 4 == 3)) * MIB for number in range(24)], None),
        # What lasts for days is not spoken of.
        ([(1000 << 20) - number for number in range(20)], None),
        (list(range(20)), None),
        # Two figures tell nothing.
        ([1000, 900], None),
        ([1000 - number for number in range(int(TREND_SECONDS / STEP))], None),
    ],
)
def test_space_that_falls_is_told_with_the_time_it_lasts(
    rooms: list[int], outlook: str | None
) -> None:
    trend = Trend()
    for number, room in enumerate(rooms):
        trend.note(number * STEP, room)
    assert trend.outlook() == outlook


def test_free_space_is_followed_until_the_floor_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = {"free": 0}
    monkeypatch.setattr(os, "statvfs", lambda path: Filesystem(disk["free"], 1, 1))
    space = space_of({str(tmp_path): Floor(0, 1000.0)})
    for number in range(20):
        disk["free"] = (1000 - 40 * number) * MIB
        space.job.clocks.sleep(STEP)
        assert space.why(between=False) is None
    assert (space.trend.outlook() or "").startswith("free space falls by ")
    space.job.limits = Limits(min_free=0.1)
    space.room(fresh=True)
    assert space.trend.outlook() is None


def test_the_disk_is_asked_each_half_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [1000]
    monkeypatch.setattr(os, "statvfs", lambda path: Filesystem(free[0], 1, 1))
    space = space_of({str(tmp_path): Floor(0, 0.0)})
    assert space.room() == 1000
    free[0] = 500
    assert space.room() == 1000
    space.job.clocks.sleep(SPACE_INTERVAL)
    assert space.room() == 500


def test_a_path_that_gives_no_answer_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, left = threading.Event(), {"/live": 1000, "/dead": 2000}
    devices, stat = {"/live": Filesystem(0, 1, 1), "/dead": Filesystem(0, 1, 2)}, Path.stat

    def statvfs(path: str) -> Filesystem:
        if path == "/dead" and left["/live"] < 1000:
            ended.wait(60)
        return Filesystem(left[path], 1, 0)

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(Path, "stat", lambda at, **how: devices.get(str(at)) or stat(at, **how))
    for order in (("/live", "/dead"), ("/dead", "/live")):
        left["/live"] = 1000
        space = space_of(dict.fromkeys(order, Floor(100, 1000.0)))
        assert [space.room(device) for device in (1, 2)] == [900, 1900]
        left["/live"] = 300
        assert space.room(fresh=True) == 200
        space.job.limits = Limits(min_free=0.1)
        assert [space.room(device, fresh=True) for device in (1, 2)] == [100, 1800]
    ended.set()


def test_a_disk_that_spins_up_is_waited_for_until_the_job_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spun, slept = threading.Event(), list[float]()
    monkeypatch.setattr(os, "statvfs", lambda path: spun.wait(60) and Filesystem(1000, 1, 1))

    def waiting(asleep: Callable[[FreeSpace], object]) -> FreeSpace:
        space = space_of({str(tmp_path): Floor(0, 0.0)})

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            asleep(space)

        space.job.clocks = JobClocks(sleep=sleep)
        return space

    with pytest.raises(StopJobError, match="interrupted"):
        waiting(lambda space: setattr(space.job, "stop", "interrupted")).room()
    assert waiting(lambda _: spun.set()).room() == 1000
    assert slept
    assert set(slept) == {SPACE_INTERVAL}


def test_it_is_a_note_of_a_job_at_work(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = accounts_of(journal, Clock())
    monkeypatch.setattr(Trend, "outlook", lambda trend: "free space falls")
    accounts.notes.append("kept")
    assert accounts.status().notes == ("kept", "free space falls")
    accounts.state = "finished"
    assert accounts.status().notes == ("kept",)


def space_of(floors: dict[str, Floor], rooms: dict[str, int] | None = None) -> FreeSpace:
    """Return the space of a job with these floors, and a clock of its own."""
    clock = Clock()
    clocks, journal = JobClocks(clock, clock, sleep=clock.sleep), cast("Journal", Unordered())
    return FreeSpace(job_of(journal, clocks, floors=floors, rooms=rooms or {}))


class Unordered:
    """A journal without orders."""

    path = Path("/nowhere/job.db")

    def get(self, *_: object) -> None:
        """Return None: there is no order."""


class Filesystem(NamedTuple):
    f_bavail: int
    f_frsize: int
    st_dev: int


def test_every_filesystem_has_its_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = Filesystem(1000, 10, 1), Filesystem(50, 10, 2)
    disks = {"/large": large, "/small": small}
    monkeypatch.setattr(os, "statvfs", lambda path: disks[path])
    monkeypatch.setattr(Path, "stat", lambda path, **_: disks[str(path)])
    space = space_of({"/large": Floor(100, 0.0), "/small": Floor(480, 20.0)})
    assert [space.room(device) for device in (1, 2)] == [9900, 20]
    assert space.room() == 20
    space.job.limits = Limits(min_free=1.0)
    assert space.room(fresh=True) == 0
    assert space.why(between=False) == "no free space beyond what is kept free"


def test_no_portion_is_begun_hardly_above_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Filesystem(1 << 10, 1 << 10, 1)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    monkeypatch.setattr(Path, "stat", lambda path, **_: disk)
    for planned, reason in (
        (1 << 40, "no free space beyond what is kept free"),
        (1 << 20, None),
        (0, None),
    ):
        space = space_of({"/a": Floor(1000, float(1 << 20))}, {"/a": planned})
        assert [space.why(between) for between in (False, True)] == [None, reason]
    space.job.limits = Limits(min_free=1.0)
    assert space.room(fresh=True) == 0
    assert (
        space.why(between=False)
        == space.why(between=True)
        == "no free space beyond what is kept free"
    )


ROW = FileRow(1, 1, b"file", 2, 1000, 1)
MOVED = FileOutcome(ROW, "moved", 1000, None)


def failed(reason: str) -> FileOutcome:
    return FileOutcome(ROW, "failed", 0, reason)


@dataclass(slots=True)
class Fixed(FreeSpace):
    """Space with a fixed number of free bytes."""

    free: int = 0

    def room(self, fresh: bool = False, device: int | None = None) -> int:
        """Return the fixed number."""
        return self.free


def free(room: int) -> FreeSpace:
    """Return space with ``room`` free bytes."""
    return Fixed(space_of({}).job, free=room)


FULL, OVER = failed(NO_SPACE), failed(QUOTA)


@rows(
    ("room", "batches", "ends"),
    [
        (5000, [[MOVED, FULL]] * MOST, MOST),
        (999, [[MOVED, OVER]] * MOST, MOST),
        (1000, [[OVER]] * 2 * MOST, None),  # a quota of one owner: others still have space
        # What fits again starts the count anew; a batch without files does not.
        (0, [*[[FULL]] * (MOST - 1), [MOVED], *[[FULL]] * MOST], 2 * MOST),
        (0, [*[[FULL]] * (MOST - 1), [], [FULL]], MOST + 1),
    ],
)
def test_a_full_filesystem_ends_the_job(
    room: int, batches: list[list[FileOutcome]], ends: int | None
) -> None:
    strikes = free(room)
    for number, batch in enumerate(batches, 1):
        with (
            pytest.raises(StopJobError, match="no space left") if number == ends else nullcontext()
        ):
            strikes.judge(batch)


@rows("reason", [NO_WRITING, f"changed; {NO_WRITING}"])
def test_a_filesystem_that_can_only_be_read_ends_the_job_at_once(reason: str) -> None:
    with pytest.raises(StopJobError, match="mounted read-only"):
        free(5000).judge([MOVED, failed(reason)])
