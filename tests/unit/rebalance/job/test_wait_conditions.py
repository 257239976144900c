"""What makes a running job wait: looked at beside the work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job import wait_conditions
from zconsole.rebalance.job.free_space import SpaceGate
from zconsole.rebalance.job.job import Floor, Job, JobClocks
from zconsole.rebalance.job.wait_conditions import (
    LOOK,
    POOL_INTERVAL,
    SNAPSHOT_INTERVAL,
    Backoff,
    DiskWait,
    JobControl,
    Pacer,
    PeriodicCheck,
    SnapshotGate,
    pool_gate,
    window_gate,
)
from zconsole.rebalance.planning.facts import FactsReader, Mount
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.system.process import Completed


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_rate_limit_holds_on_average() -> None:
    clock = Clock()
    pacer = Pacer(clock, clock.sleep, [], lambda why: None, rate=1000.0)
    for _ in range(100):
        pacer.tick(100)
    assert clock.now - 100 == pytest.approx(10, rel=0.1)


def test_a_closed_gate_is_waited_for_and_told() -> None:
    clock, told = Clock(), []
    opens = clock.now + 3
    gate = lambda: None if clock.now >= opens else "paused"  # noqa: E731
    pacer = Pacer(clock, clock.sleep, [gate], told.append)
    pacer.tick(1)
    assert told == ["paused", None]
    assert opens <= clock.now < opens + 1


def test_orders_are_noticed_within_a_second_of_a_slow_limit() -> None:
    clock = Clock()
    stops = clock.now + 2

    def gate() -> str | None:
        if clock.now >= stops:
            raise StopJobError("stop")
        return None

    pacer = Pacer(clock, clock.sleep, [gate], lambda why: None, rate=1.0)
    with pytest.raises(StopJobError):
        pacer.tick(10_000)
    assert clock.now < stops + 1
    assert LOOK < 1


def test_leases_are_served_while_waiting() -> None:
    clock, served = Clock(), []
    pacer = Pacer(clock, clock.sleep, [], lambda why: None, rate=100.0)
    pacer.service = lambda: served.append(clock.now)
    pacer.tick(100)
    gaps = [b - a for a, b in pairwise(served)]
    assert served
    assert max(gaps) < 0.1


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


def settle(check: PeriodicCheck[Any]) -> None:
    while check.is_running:
        threading.Event().wait(0.001)


def test_a_slow_zpool_does_not_hold_up_the_work() -> None:
    clock = Clock()
    run, ready = answering(ONLINE, SCRUB)
    gate = pool_gate(FactsReader(run), "tank", False, clock)
    assert gate() is None
    clock.now += POOL_INTERVAL
    assert gate() is None
    ready.set()
    settle(gate)
    assert gate() == "a scrub is running"


def test_a_scan_that_runs_already_is_seen_before_the_first_file() -> None:
    run, _ = answering(SCRUB)
    assert pool_gate(FactsReader(run), "tank", False, Clock())() == "a scrub is running"


def test_a_new_snapshot_that_would_pin_too_much_closes_the_gate() -> None:
    clock, notes = Clock(), []
    run, ready = answering("50\n", "150\n50\n", "50\n")
    gate = SnapshotGate(FactsReader(run), ["tank/a"], lambda: 10, lambda: 5, clock, notes.append)
    assert gate() is None
    clock.now += SNAPSHOT_INTERVAL
    ready.set()
    gate()
    settle(gate.check)
    assert gate() == "a new snapshot pins old blocks: 10 bytes left to move, 5 free"
    assert len(notes) == 1
    assert "tank/a" in notes[0]
    clock.now += SNAPSHOT_INTERVAL
    gate()
    settle(gate.check)
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
        settle(gate.check)
    assert notes == ["snapshots of tank/a were held: what they keep stays until a release"]


@rows(
    ("now", "reason"),
    [
        (23 * 60, None),
        (3 * 60, None),
        (6 * 60, "outside 22:00-06:00"),
        (12 * 60, "outside 22:00-06:00"),
    ],
)
def test_a_window_over_midnight(now: int, reason: str | None) -> None:
    assert (
        window_gate("22:00-06:00", lambda: datetime(2026, 11, 23, *divmod(now, 60), tzinfo=UTC))()
        == reason
    )


@rows("text", ["", "22:00", "25:00-26:00", "1:99-2:00", "a-b"])
def test_windows_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        window_gate(text, datetime.now)


def test_backing_off_grows_and_ends() -> None:
    clock, waits = Clock(), [0.5, 0.5, None, 0.001]
    backoff = Backoff(0.1, lambda: waits.pop(0), clock)
    assert backoff() == "disk latency is high"
    clock.now += 1
    assert backoff() is not None
    clock.now += 1
    assert backoff() is None


def test_the_wait_of_disks_is_that_of_requests_completed_since() -> None:
    """Of those disks that the job's files are on, and no others."""
    counts = iter([(100, 400), (100, 400), (140, 2400)])

    def rows() -> dict[str, str]:
        done, waited = next(counts)
        other = f"8 16 sdb {9 * done} 0 0 0 0 0 0 0 0 0 0"
        return {"sda": f"8 0 sda {done} 0 0 {waited} 0 0 0 0 0 0 0", "sdb": other}

    def names(path: str, known: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in known if path == f"/dev/{name}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wait_conditions, "diskstats_names", names)
        wait = DiskWait(["/dev/sda"], rows)
        assert [wait(), wait(), wait()] == [None, None, pytest.approx(0.05)]


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
