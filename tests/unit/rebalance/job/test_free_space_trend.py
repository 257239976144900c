"""The free space that goes is noticed before it is gone."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from tests.unit.rebalance.job.test_pacer import Clock
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.free_space_trend import LEAST, STEP, Trend
from zconsole.rebalance.job.gates import SpaceGate
from zconsole.rebalance.job.progress import RunProgress

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
    assert followed([1000 - number for number in range(int(LEAST / STEP))]) is None


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
        progress = RunProgress(journal, Clock(), Clock(), 1, notes=["kept"])
        progress.outlook = lambda: "free space falls"
        assert progress.as_json()["notes"] == ["kept", "free space falls"]
        progress.state = "finished"
        assert progress.as_json()["notes"] == ["kept"]
