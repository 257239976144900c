"""The free space of a job: what it may write, where that is going, and files that found none."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.table import rows
from tests.unit.rebalance.job.counted import accounts_of
from tests.unit.rebalance.job.test_wait_conditions import Clock
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.job.free_space import (
    MOST,
    NO_SPACE,
    NO_WRITING,
    QUOTA,
    STEP,
    TREND_SECONDS,
    SpaceErrors,
    SpaceGate,
    Trend,
)

MIB = 1 << 20


def followed(rooms: list[int]) -> str | None:
    trend = Trend()
    for number, room in enumerate(rooms):
        trend.note(number * STEP, room)
    return trend.outlook()


def test_space_that_falls_is_told_with_the_time_it_lasts() -> None:
    rooms = [(1000 - 15 * number) * MIB for number in range(21)]
    assert followed(rooms) == "free space falls by 60M a minute: at the floor in 14m10s"


def test_copies_in_flight_are_no_trend() -> None:
    rooms = [(1000 - 400 * (number % 4 == 3)) * MIB for number in range(24)]
    assert followed(rooms) is None


def test_what_lasts_for_days_is_not_spoken_of() -> None:
    assert followed([(1000 << 20) - number for number in range(20)]) is None
    assert followed(list(range(20))) is None


def test_two_figures_tell_nothing() -> None:
    assert followed([1000, 900]) is None
    assert followed([1000 - number for number in range(int(TREND_SECONDS / STEP))]) is None


def test_the_gate_follows_it(tmp_path: Path) -> None:
    clock, status = Clock(), os.statvfs(tmp_path)
    free = status.f_bavail * status.f_frsize
    gate = SpaceGate({}, clock)
    for number in range(20):
        gate.reserves = {bytes(tmp_path): free - (1000 - 40 * number) * MIB}
        clock.now += STEP
        assert gate() is None
    assert (gate.trend.outlook() or "").startswith("free space falls by ")
    gate.trend.forget()
    assert gate.trend.outlook() is None


def test_it_is_a_note_of_a_job_at_work(tmp_path: Path) -> None:
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        accounts = accounts_of(journal, Clock(), lambda: "free space falls")
        accounts.notes.append("kept")
        assert accounts.as_json()["notes"] == ["kept", "free space falls"]
        accounts.state = "finished"
        assert accounts.as_json()["notes"] == ["kept"]


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


ROW = FileRow(1, 1, b"file", 2, 1000, 1)
MOVED = FileOutcome(ROW, "moved", 1000, None)


def failed(reason: str) -> FileOutcome:
    return FileOutcome(ROW, "failed", 0, reason)


@rows(("reason", "room"), [(NO_SPACE, 5000), (QUOTA, 999)])
def test_a_full_filesystem_ends_the_job(reason: str, room: int) -> None:
    strikes = SpaceErrors(lambda: room)
    for _ in range(MOST - 1):
        strikes.judge([MOVED, failed(reason)])
    with pytest.raises(StopJobError, match="no space left"):
        strikes.judge([failed(reason)])


def ends_after(strikes: SpaceErrors, most: int = 2 * MOST) -> int:
    """How many batches without space it takes from now on to end the job; ``most`` if more."""
    for number in range(1, most):
        try:
            strikes.judge([failed(NO_SPACE)])
        except StopJobError:
            return number
    return most


def test_a_quota_of_one_owner_does_not() -> None:
    strikes = SpaceErrors(lambda: 1000)
    for _ in range(2 * MOST):
        strikes.judge([failed(QUOTA)])
    assert ends_after(strikes) == MOST


@rows(("between", "left"), [([MOVED], MOST), ([], 1)])
def test_what_fits_again_starts_the_count_anew(between: list[FileOutcome], left: int) -> None:
    strikes = SpaceErrors(lambda: 0)
    for _ in range(MOST - 1):
        strikes.judge([failed(NO_SPACE)])
    strikes.judge(between)
    assert ends_after(strikes) == left


@rows("reason", [NO_WRITING, f"changed; {NO_WRITING}"])
def test_a_filesystem_that_can_only_be_read_ends_the_job_at_once(reason: str) -> None:
    with pytest.raises(StopJobError, match="mounted read-only"):
        SpaceErrors(lambda: 5000).judge([MOVED, failed(reason)])
