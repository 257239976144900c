"""Jobs of the simulated pool keep their own accounts."""

from __future__ import annotations

import pytest

from zconsole.rebalance.planning.settings import Settings
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.sim.source import World

HOUR = 3600.0


@pytest.fixture
def world():
    return World("added-vdev", 1)


async def job(desk, name):
    return next(view for view in await desk.jobs(None) if view.job == name)


async def test_what_another_job_moves_changes_nothing_of_one_that_was_stopped(world):
    desk = SimulatedRebalance(world)
    first = await desk.start(Settings(("/storage",)))
    world.advance(HOUR)
    await desk.order(first, "stop")
    stopped = await job(desk, first)
    assert stopped.days[-1]["files_done"] == stopped.files_done > 0
    await desk.start(Settings(("/storage/backup",)))
    world.advance(20 * HOUR)
    assert await job(desk, first) == stopped


async def test_a_job_that_goes_on_after_another_ends_with_all_of_its_files(world):
    desk = SimulatedRebalance(world)
    first = await desk.start(Settings(("/storage",)))
    world.advance(HOUR)
    await desk.order(first, "stop")
    second = await desk.start(Settings(("/storage/backup",)))
    for hour in range(2, 100):
        world.advance(hour * HOUR)
    assert (await job(desk, second)).state == "finished"
    await desk.resume(first)
    for hour in range(100, 300):
        world.advance(hour * HOUR)
    done = await job(desk, first)
    assert done.state == "finished"
    assert done.files_done == done.files_total


async def test_files_rewritten_in_place_are_not_left_out_for_being_open(world):
    desk = SimulatedRebalance(world)
    name = await desk.start(Settings(("/storage/backup",), engine="rewrite"))
    for hour in range(1, 30):
        world.advance(hour * HOUR)
    assert list((await job(desk, name)).skipped) == ["changed"]
