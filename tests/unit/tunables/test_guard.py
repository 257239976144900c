"""Tunables that the keeper restores: no process but a console, with a clock set by the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from tests.unit.tunables.conftest import Kernel
from zconsole.errors import UsageError, ZconsoleError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system.host import process_mark
from zconsole.system.state_dir import StateError, try_lock
from zconsole.tunables import guard
from zconsole.tunables.guard import Guard, GuardOrder, TunableDuty
from zconsole.tunables.parameters import Parameters

NAME = "zfs_scan_suspend_progress"
DEAD = "999999999:1"
"""The process mark of no process."""


async def freeze(kernel, seconds=30.0, watch=None, owner=None) -> Guard:
    wanted = GuardOrder(NAME, 1, seconds, watch)
    control = kernel.console(owner or process_mark(os.getpid()))
    return await guard.begin(control, kernel.parameters, asdict(wanted))


async def test_the_value_is_held_until_its_time_is_over_then_put_back(kernel):
    held = await freeze(kernel, 30.0)
    now = held._end - 30.0
    assert kernel.read(NAME) == 1
    assert held.due(now) == guard.CHECK_SECONDS
    assert held.due(now + 29.9) == pytest.approx(0.1)
    assert held.due(now + 30.0) <= 0.0
    assert not await held.act()
    assert kernel.read(NAME) == 0
    assert kernel.console().past().holds == {}
    told = [(line["event"], line["action"]) for line in kernel.log.records]
    assert told == [(event, act) for act in ("set", "restore") for event in ("begun", "ended")]


@pytest.fixture
def console() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


async def test_it_is_put_back_when_the_console_it_watches_is_gone(kernel, console):
    held = await freeze(kernel, watch=process_mark(console.pid))
    assert held.due(0.0) > 0.0
    console.kill()
    console.wait()
    assert held.due(0.0) == 0.0
    await held.act()
    assert kernel.read(NAME) == 0


@pytest.mark.parametrize("way", ["act", "undo"])
async def test_it_is_put_back_without_the_file_of_originals(kernel, way):
    held = await freeze(kernel)
    for file in kernel.state.iterdir():
        file.unlink()
    await getattr(held, way)()
    assert kernel.read(NAME) == 0


async def test_what_somebody_else_set_stays(kernel):
    held = await freeze(kernel)
    kernel.write(NAME, 0)
    assert held.due(0.0) == 0.0
    kernel.write(NAME, 7)
    await held.act()
    assert kernel.read(NAME) == 7


async def test_of_two_the_first_that_is_over_puts_it_back(kernel):
    first, second = await freeze(kernel, 5.0), await freeze(kernel, 60.0)
    await first.act()
    assert kernel.read(NAME) == 0
    assert second.due(0.0) == 0.0


@pytest.mark.parametrize("way", ["act", "undo"])
async def test_what_the_kernel_does_not_take_back_is_tried_again(kernel, way, monkeypatch):
    held = await freeze(kernel)

    def refused(*_: object) -> None:
        raise ZconsoleError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(Parameters, "write", refused)
        for _ in range(2):
            with pytest.raises(ZconsoleError, match="refused"):
                await getattr(held, way)()
    await getattr(held, way)()
    assert kernel.read(NAME) == 0


async def test_it_says_when_it_cannot_write(kernel):
    (kernel.module / "parameters" / NAME).unlink()
    with pytest.raises(ZconsoleError, match="does not exist"):
        await freeze(kernel)


async def test_it_refuses_what_no_guard_may_set(kernel):
    order = asdict(GuardOrder("zfs_no_scrub_io", 1, 1.0))
    with pytest.raises(UsageError, match="not written"):
        await guard.begin(kernel.console("1:1"), kernel.parameters, order)


class Watch:
    """The duty for tunables that consoles set, and the pools that it sees."""

    def __init__(self, kernel: Kernel) -> None:
        self.pools: tuple[Pool, ...] = ()
        self.whole = True
        """Whether each pool answered."""
        self.asked = 0
        self.lock = kernel.state / guard.KEPT
        kernel.state.chmod(0o700)
        self.duty = TunableDuty(kernel.console("1:1"), self.every_pool, self.lock, lambda: 0.0)

    async def every_pool(self) -> tuple[tuple[Pool, ...], bool]:
        self.asked += 1
        return self.pools, self.whole

    async def look(self) -> float | None:
        """Run one check; returns the seconds until the next one, None if the duty is over."""
        for _ in range(2):  # the first one takes the lock
            if not await self.duty.act():
                assert try_lock(self.lock) is not None
                return None
        return self.duty.due(0.0)


def scan(state: str) -> tuple[Pool, ...]:
    scans = (Scan("resilver", state),)
    return (Pool("tank", "ONLINE", Vdev("tank", "root"), scans=scans, guid="77"),)


TIME = "zfs_resilver_min_time_ms"


def leave(kernel: Kernel, owner: str | None, until: str | None = None) -> None:
    control = kernel.console(owner)
    control.set({TIME: 5000}, 1.0)
    if until is not None:
        control.until(until)


@pytest.mark.parametrize("sets", [False, True])
async def test_where_no_console_is_to_restore_anything_nobody_watches(kernel, sets):
    if sets:
        leave(kernel, None)
    assert await Watch(kernel).look() is None


async def test_a_console_that_runs_keeps_what_it_set_until_it_is_gone(kernel, console):
    leave(kernel, process_mark(console.pid))
    watch = Watch(kernel)
    assert await watch.look() == guard.CONSOLES
    assert (watch.asked, kernel.read(TIME)) == (0, 5000)
    console.kill()
    console.wait()
    assert await watch.look() is None
    assert kernel.read(TIME) == 3000


@pytest.mark.parametrize("until", [None, "77"])
@pytest.mark.parametrize("pools", [scan("running"), scan("paused"), ()])
async def test_what_is_left_stays_while_a_scan_may_run_and_goes_back_when_it_ends(
    kernel, until, pools
):
    leave(kernel, DEAD, until)
    watch = Watch(kernel)
    watch.pools, watch.whole = pools, bool(pools)
    assert await watch.look() == guard.SCANS
    assert kernel.read(TIME) == 5000
    watch.pools, watch.whole = scan("finished"), True
    assert await watch.look() is None
    assert kernel.read(TIME) == 3000


@pytest.mark.parametrize(("until", "value"), [("77", 3000), ("88", 5000), (None, 5000)])
async def test_what_is_due_for_a_pool_waits_for_no_other_one_that_does_not_answer(
    kernel, until, value
):
    leave(kernel, DEAD, until)
    watch = Watch(kernel)
    watch.pools, watch.whole = scan("finished"), False
    assert await watch.look() == (None if value == 3000 else guard.SCANS)
    assert kernel.read(TIME) == value


async def test_what_cannot_be_read_for_a_while_is_not_taken_for_nothing(kernel):
    leave(kernel, DEAD, "77")
    watch = Watch(kernel)
    watch.pools = scan("running")
    assert await watch.look() == guard.SCANS
    file = kernel.state / "tunables.json"
    file.chmod(0o666)
    assert await watch.look() == guard.SCANS, "it knows what it has read"
    with pytest.raises(StateError, match=r"tunables\.json"):
        Watch(kernel).duty.is_empty()
    file.chmod(0o600)
    assert await watch.look() == guard.SCANS
    watch.pools = scan("finished")
    assert await watch.look() is None
    assert kernel.read(TIME) == 3000


async def test_what_a_killed_guard_of_another_version_left_waits_for_no_pool(kernel):
    await freeze(kernel, owner=DEAD)
    watch = Watch(kernel)
    watch.whole = False
    assert await watch.look() is None
    assert kernel.read(NAME) == 0
