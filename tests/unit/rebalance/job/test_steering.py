"""What steers a running job: signals, orders and limits from its journal, in that order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rebalance.job.test_wait_conditions import Clock
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.free_space import SpaceGate
from zconsole.rebalance.job.job import Floor, Job, JobClocks
from zconsole.rebalance.job.steering import JobControl
from zconsole.rebalance.job.wait_conditions import Pacer
from zconsole.rebalance.planning.facts import FactsReader, Mount
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Limits, Settings

RATE = 1000.0


@pytest.fixture
def control(tmp_path: Path) -> Iterator[JobControl]:
    """Of a job with a rate limit, off ZFS."""
    clock, root = Clock(), os.fsencode(tmp_path)
    settings = Settings((str(tmp_path),), limits=Limits(rate=RATE))
    job = Job("abc123", settings, {}, (), 1.0, {str(tmp_path): Floor(0, 100.0)}, None)
    places = [JobDirectory(root, Mount("ext4", "/dev/sda1", "/"), None)]
    space = SpaceGate(job.reserves_at(None), clock)
    pacer = Pacer(clock, clock.sleep, [], lambda _: None)
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    clocks = JobClocks(clock, clock, sleep=clock.sleep, local=lambda: noon)
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        yield JobControl(journal, job, FactsReader(), places, space, [space], pacer, clocks)


def order(control: JobControl, order: str, **limits: Any) -> None:
    """As another process gives an order."""
    with closing(Journal.open(control.journal.path)) as journal:
        journal.set("control", {"order": order, "limits": limits})


def test_limits_of_the_settings_count_until_others_are_set(control: JobControl) -> None:
    changed: list[Limits] = []
    control.limits_changed = lambda: changed.append(control.limits)
    control.pacer.tick(0)
    assert (control.pacer.rate, changed) == (RATE, [])
    order(control, "run", rate=5.0, min_free=0.5)
    control.pacer.wait_for(lambda: None)
    assert changed == [Limits(rate=5.0, min_free=0.5)]
    assert control.pacer.rate == 5.0
    assert list(control.space.reserves.values()) == [50]


def test_other_limits_leave_what_waits_for_the_pool_as_it_is(control: JobControl) -> None:
    """It knows which snapshots there were when the job began."""
    order(control, "run", rate=5.0)
    control.pacer.wait_for(lambda: None)
    assert control.pacer.gates[1:] == [control.space]


def test_an_order_that_leaves_limits_as_they_are_changes_none(control: JobControl) -> None:
    changed: list[bool] = []
    control.limits_changed = lambda: changed.append(True)
    order(control, "run")
    control.pacer.wait_for(lambda: None)
    assert changed == []


def test_a_new_window_holds_the_job_back(control: JobControl) -> None:
    order(control, "run", window="22:00-06:00")
    assert control.pacer.gates[0]() is None
    assert control.pacer.gates[1]() == "outside 22:00-06:00"


@pytest.mark.parametrize("word", ["stop", "pause"])
def test_an_order_is_obeyed_before_anything_else(control: JobControl, word: str) -> None:
    order(control, word)
    obey = control.pacer.gates[0]
    if word == "stop":
        with pytest.raises(StopJobError, match="stop"):
            obey()
    else:
        assert obey() == "paused"


def test_a_signal_stops_a_job_that_is_paused(control: JobControl) -> None:
    order(control, "pause")
    control.stop = "terminated"
    with pytest.raises(StopJobError, match="terminated"):
        control.pacer.tick(0)
