"""Rules for every duty that is kept in a file: tunables, lights, scrub windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.actions.test_window_keeper import Night
from tests.unit.hardware.lit_chassis import Chassis
from tests.unit.system.test_no_threads import refuse_threads
from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.test_guard import DEAD
from zconsole.hardware.light import HOLDER, LightDuty
from zconsole.system.keeper import LOCK_RETRY_SECONDS, LONGEST_WAIT, StandingDuty
from zconsole.system.patient import NoAnswerError, NotAskedError
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import StateError
from zconsole.tunables.guard import KEPT, TunableDuty


def tunables(place: Path) -> StandingDuty:
    kernel = Kernel(place)
    kernel.state.chmod(0o700)
    kernel.console(DEAD).set({"zfs_resilver_min_time_ms": 5000}, 1.0)

    async def no_pools() -> None:
        return None

    return TunableDuty(kernel.console("1:1"), no_pools, kernel.state / KEPT, lambda: 0.0)


def lights(place: Path) -> StandingDuty:
    chassis = Chassis(place)
    chassis.enclosure()
    chassis.lights().light(chassis.slot(), "S1", chassis.now + 75.0)
    return LightDuty(chassis.lights(), chassis.state / HOLDER, lambda: 0.0)


def hours(place: Path) -> StandingDuty:
    night = Night(place)
    night.set(-1, 5)
    duty = night.keeper()
    duty._clock = lambda: 0.0
    return duty


@pytest.fixture(params=[tunables, lights, hours])
def duty(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> StandingDuty:
    monkeypatch.setattr("zconsole.system.keeper.ask", lambda *_, **order: 1)
    tmp_path.chmod(0o700)
    return request.param(tmp_path)


async def test_it_goes_on_though_the_disk_answers_late(duty, monkeypatch):
    read = LockedRecord.read
    errors: list[StateError] = [NotAskedError("still hangs"), NoAnswerError("no answer")]

    def late(record, *empty):
        if errors:
            raise errors.pop()
        return read(record, *empty)

    monkeypatch.setattr(LockedRecord, "read", late)
    for _ in range(2):
        assert await duty.act()
        assert duty.due(0.0) == LONGEST_WAIT
    assert await duty.act()
    assert duty.due(0.0) <= 0.0  # it has the lock now


async def test_it_goes_on_though_no_thread_could_be_started(duty, monkeypatch):
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        assert await duty.act()
        assert duty.due(0.0) == LONGEST_WAIT
    assert await duty.act()
    assert duty.due(0.0) <= 0.0


async def test_a_lock_that_another_process_holds_for_long_is_not_asked_for_all_the_time(duty):
    """Whoever wakes the keeper holds it for a moment, a process of another version for hours."""
    take = duty._take
    for _ in range(2):
        duty._take = lambda: None
        waits = []
        for _ in range(3):
            assert await duty.act()
            waits.append(duty.due(0.0))
        assert waits == [LOCK_RETRY_SECONDS, LONGEST_WAIT, LONGEST_WAIT]
        duty._take = take
        assert await duty.act()
        assert duty.due(0.0) <= 0.0
        await duty.undo()


async def test_it_is_over_where_its_file_is_damaged(duty, monkeypatch):
    def damaged(*_):
        raise StateError("is damaged")

    monkeypatch.setattr(LockedRecord, "read", damaged)
    assert not await duty.act()
