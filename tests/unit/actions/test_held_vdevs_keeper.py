"""The duty that keeps full vdevs from new writes while jobs run, on a simulated pool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from zconsole.actions.facts import MachineFacts, Refresher
from zconsole.actions.held_vdevs_keeper import IDLE_SECONDS, SWITCHED_ON, HeldVdevsKeeper
from zconsole.errors import ZconsoleError
from zconsole.rebalance import held_vdevs
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.held_vdevs import KEEPER, PREPARING, HeldVdev, HeldVdevs, MachineHolds
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.system.audit import MemoryLog
from zconsole.system.process import Completed
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session

JOB = "abc123"


class Machine:
    """A simulated pool with a full and a new mirror, a job that wants the full one, a keeper."""

    def __init__(self, state: Path) -> None:
        self.world = World("new-mirror", 1)
        self.pool = self.world.pools[0]
        self.full, self.new = self.pool.tops
        self.session, self.elapsed = Session(), 0.0
        self.state, self.records = state, MachineHolds(state)
        self.backend = simulated_backend(self.world)
        self.jobs: dict[str, JobView] = {}
        self.job("running")

    def job(self, state: str, why: str | None = None) -> None:
        """Let the job be in this state."""
        self.jobs[JOB] = JobView(
            state=state, why=why, job=JOB, settings=Settings(()), limits=Limits(), engine="copy"
        )

    def want(self, *names: str) -> None:
        self.records.want(JOB, self.pool.name, names or ("mirror-0",))

    async def frames(self) -> Sequence[Frame]:
        self.elapsed += 1.0
        self.world.advance(self.elapsed)
        return self.session.advance(self.world.raws())

    async def fresh(self, pool: str, since: float) -> Frame:
        del since
        return next(frame for frame in await self.frames() if frame.pool == pool)

    async def every_job(self) -> Sequence[JobView]:
        return list(self.jobs.values())

    async def after(self, seconds: float = 10.0) -> None:
        """Let time pass, and a new keeper look, as after a crash or a reboot."""
        self.elapsed += seconds
        self.world.advance(self.elapsed)
        ask, lock = self.backend.ask, self.state / KEEPER
        executor = self.backend.executor(Refresher(self.fresh, ask))
        duty = HeldVdevsKeeper(self.records, lock, executor, ask, self.frames, self.every_job)
        await duty.look()

    async def zpool(self, setting: str) -> None:
        """Let somebody else set a property of the full vdev."""
        argv = ("zpool", "set", setting, self.pool.name, "mirror-0")
        assert (await self.backend.runner.run(argv, 1.0)).returncode == 0

    @property
    def commands(self) -> list[str]:
        """The values that the keeper set, in order."""
        assert isinstance(self.backend.log, MemoryLog)
        return [r["argv"][2] for r in self.backend.log.records if r["event"] == "ended"]

    @property
    def held(self) -> HeldVdevs:
        (held,) = self.records.held()
        return held

    @property
    def vdev(self) -> HeldVdev:
        (vdev,) = self.held.vdevs
        return vdev


OFF, ON = "allocating=off", "allocating=on"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(held_vdevs, "_wake", lambda _: None)
    tmp_path.chmod(0o700)
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("state", "why"),
    [("finished", "target spread reached"), ("stopped", "stop"), ("dead", "resume it")],
)
async def test_a_vdev_takes_no_new_writes_until_the_job_has_ended(
    machine: Machine, state: str, why: str
) -> None:
    machine.want()
    assert not machine.held.is_decided
    await machine.after()
    assert not machine.full.allocating
    assert machine.new.allocating
    assert machine.held.ours == ("mirror-0",)
    assert machine.held.is_decided
    await machine.after()
    machine.job(state, why)
    await machine.after()
    assert machine.full.allocating
    assert machine.records.held() == ()
    assert machine.commands == [OFF, ON]


async def test_a_job_that_nobody_knows_any_more_is_over(machine: Machine) -> None:
    machine.want()
    await machine.after()
    machine.jobs.clear()
    await machine.after()
    assert machine.full.allocating
    assert machine.records.held() == ()


@pytest.mark.parametrize(
    ("state", "why"), [("paused", "paused"), ("waiting", "outside 22:00-06:00")]
)
async def test_a_job_that_has_moved_nothing_for_an_hour_gives_them_back_until_it_goes_on(
    machine: Machine, state: str, why: str
) -> None:
    machine.want()
    await machine.after()
    machine.job(state, why)
    await machine.after()
    await machine.after(IDLE_SECONDS - 60.0)
    assert not machine.full.allocating
    await machine.after(120.0)
    assert machine.full.allocating
    assert not machine.held.is_decided
    await machine.after(IDLE_SECONDS)
    assert machine.commands == [OFF, ON]
    machine.job("waiting", PREPARING)  # it waits for the keeper itself
    await machine.after()
    assert not machine.full.allocating
    assert machine.held.idle_since is None


async def test_short_pauses_do_not_add_up(machine: Machine) -> None:
    machine.want()
    await machine.after()
    for _ in range(3):
        machine.job("paused", "paused")
        await machine.after(IDLE_SECONDS / 2)
        machine.job("running")
        await machine.after()
    assert machine.commands == [OFF]


async def test_what_somebody_else_switched_off_stays_off(machine: Machine) -> None:
    await machine.zpool(OFF)
    machine.want()
    await machine.after()
    assert machine.held.is_decided
    assert machine.vdev.left == "allocating is off already"
    machine.job("finished", "done")
    await machine.after()
    assert not machine.full.allocating
    assert machine.records.held() == ()
    assert machine.commands == []


async def test_what_somebody_else_switched_on_stays_on(machine: Machine) -> None:
    machine.want()
    await machine.after()
    await machine.zpool(ON)
    await machine.after()
    assert machine.vdev.left == SWITCHED_ON
    await machine.zpool(OFF)  # by now theirs
    machine.job("finished", "done")
    await machine.after()
    assert not machine.full.allocating
    assert machine.commands == [OFF]


async def test_a_crash_just_after_the_command_does_not_leave_it_off(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is written before the command, so that whoever comes next knows of it."""
    run = machine.backend.runner.run

    async def killed(argv: Sequence[str], deadline: float) -> Completed:
        if argv[1] == "set":
            await run(argv, deadline)
            raise KeyboardInterrupt
        return await run(argv, deadline)

    machine.want()
    with monkeypatch.context() as patch:
        patch.setattr(machine.backend.runner, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            await machine.after()
    assert not machine.full.allocating
    machine.job("dead")
    await machine.after()
    assert machine.full.allocating
    assert machine.records.held() == ()


async def test_a_refused_command_leaves_the_vdev_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = machine.backend.runner.run

    async def refuses(argv: Sequence[str], deadline: float) -> Completed:
        refused = Completed(tuple(argv), 1, "", "cannot set property")
        return refused if argv[1] == "set" else await run(argv, deadline)

    monkeypatch.setattr(machine.backend.runner, "run", refuses)
    machine.want()
    await machine.after()
    await machine.after()
    assert machine.vdev.left == SWITCHED_ON
    assert machine.commands == [OFF]


async def test_one_that_could_not_be_put_back_is_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, failures = machine.backend.runner.run, [1]

    async def fails(argv: Sequence[str], deadline: float) -> Completed:
        if ON in argv and failures:
            return Completed(tuple(argv), failures.pop(), "", "no memory")
        return await run(argv, deadline)

    monkeypatch.setattr(machine.backend.runner, "run", fails)
    machine.want()
    await machine.after()
    machine.job("finished")
    await machine.after()
    assert machine.held.ours == ("mirror-0",)
    await machine.after()
    assert machine.full.allocating
    assert machine.records.held() == ()


async def test_an_exported_pool_keeps_its_record(machine: Machine) -> None:
    machine.want()
    await machine.after()
    pools, machine.world.pools = machine.world.pools, ()
    machine.job("dead")
    await machine.after()
    assert machine.held.ours == ("mirror-0",)
    machine.world.pools = pools
    await machine.after()
    assert machine.full.allocating
    assert machine.records.held() == ()


async def test_another_pool_of_that_name_is_left_alone(machine: Machine) -> None:
    machine.want()
    await machine.after()
    first, machine.world.pools = machine.world.pools, World("new-mirror", 2).pools
    other = machine.world.pools[0]
    for number, top in enumerate(other.tops):
        top.guid, top.allocating = number + 1, number > 0
    machine.job("dead")
    await machine.after()
    assert not other.tops[0].allocating
    assert machine.held.ours == ("mirror-0",)
    machine.world.pools = first
    await machine.after()
    assert machine.full.allocating


async def test_a_pool_that_fails_does_not_keep_others_from_being_looked_at(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.want()
    machine.records.want("other", "gone", ["mirror-0"])

    async def fails(*_: object) -> None:
        raise ZconsoleError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(MachineFacts, "__call__", fails)
        await machine.after()
    assert machine.full.allocating
    assert not machine.records.held()[0].is_decided
    await machine.after()
    assert not machine.full.allocating


async def test_a_pool_that_others_fill_gets_its_space_back(machine: Machine) -> None:
    machine.want()
    await machine.after()
    machine.new.alloc = 0.4 * machine.new.space  # with what is on the full one, more than it holds
    await machine.after()
    assert machine.full.allocating
    assert "too small for all data" in machine.vdev.left
    assert machine.held.is_decided


async def test_the_last_vdev_always_takes_writes(machine: Machine) -> None:
    machine.want("mirror-0", "mirror-1")
    await machine.after()
    await machine.after()
    assert machine.new.allocating
    first, last = machine.held.vdevs
    assert first.ours
    assert last.left


async def test_a_vdev_that_is_not_in_the_pool_holds_nothing_up(machine: Machine) -> None:
    machine.want("mirror-7")
    await machine.after()
    assert machine.vdev.left == "it is not in the pool"
    assert machine.held.is_decided


async def test_the_duty_lasts_as_long_as_there_are_records(machine: Machine) -> None:
    ask: Any = machine.backend.ask
    executor = machine.backend.executor(Refresher(machine.fresh, ask))
    duty = HeldVdevsKeeper(
        machine.records, machine.state / KEEPER, executor, ask, machine.frames, machine.every_job
    )
    assert not await duty.act()
    machine.want()
    assert await duty.act()
    assert await duty.act()
    assert not machine.full.allocating
    await duty.undo()  # told to end: the record stays for the next keeper
    assert not machine.full.allocating
    machine.job("finished")
    assert await duty.act()
    assert not await duty.act()
    assert machine.full.allocating
