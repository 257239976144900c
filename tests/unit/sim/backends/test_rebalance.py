"""Jobs of the simulated pool have separate accounts."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

import pytest

from tests.worlds import world_of
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.system.day_hours import local_time

pytestmark = pytest.mark.slow

HOUR = 3600.0


@pytest.fixture
def world():
    return world_of("added-vdev")


async def job(desk, name):
    return next(view for view in await desk.jobs(None) if view.job == name)


async def finished(desk, world, name, hour):
    """Return the finished job, at the latest after 300 hours, and the hour."""
    while (view := await job(desk, name)).state != "finished" and hour < 300:
        hour += 6
        world.advance(hour * HOUR)
    assert view.state == "finished"
    return view, hour


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


async def test_a_job_keeps_to_its_hours_and_its_end_counts_them(world):
    desk = SimulatedRebalance(world)
    now = local_time(world.pools[0].now)
    first, last = (now + timedelta(hours=hours) for hours in (2, 4))
    window = f"{first:%H:%M}-{last:%H:%M}"
    name = await desk.start(Settings(("/storage",), limits=Limits(window=window)))
    world.advance(HOUR)
    waiting = await job(desk, name)
    assert (waiting.state, waiting.why) == ("waiting", f"outside {window}")
    assert waiting.bytes_handled == 0
    world.advance(3 * HOUR)
    running = await job(desk, name)
    assert running.state == "running"
    left = (running.bytes_goal - running.bytes_handled) / running.rate
    assert running.eta_seconds == pytest.approx(
        left + 22 * HOUR * ceil((left - HOUR) / (2 * HOUR)), rel=0.1
    )
    world.advance(5 * HOUR)
    assert (await job(desk, name)).eta_seconds is not None


async def test_a_job_that_goes_on_after_another_ends_with_all_of_its_files(world):
    desk = SimulatedRebalance(world)
    first = await desk.start(Settings(("/storage",)))
    world.advance(HOUR)
    await desk.order(first, "stop")
    second = await desk.start(Settings(("/storage/backup",)))
    _, hour = await finished(desk, world, second, 1)
    await desk.resume(first)
    done, _ = await finished(desk, world, first, hour)
    assert done.files_done == done.files_total


async def interrupted_by_another(desk, world, engine):
    """Return a job stopped early, and resumed after another job moved its last directory."""
    first = await desk.start(Settings(("/storage/films", "/storage/backup"), engine=engine))
    world.advance(600.0)
    await desk.order(first, "stop")
    stopped = await job(desk, first)
    second = await desk.start(Settings(("/storage/backup",), engine=engine))
    _, hour = await finished(desk, world, second, 0)
    await desk.resume(first)
    return stopped, await job(desk, first), hour


@pytest.mark.parametrize("engine", ["copy", "rewrite"])
async def test_what_another_job_moved_is_moved_again(world, engine):
    desk = SimulatedRebalance(world)
    stopped, resumed, hour = await interrupted_by_another(desk, world, engine)
    assert resumed.replaced == 0
    assert resumed.files_done == stopped.files_done
    assert stopped.ended - stopped.began == pytest.approx(600.0, abs=1.0)
    assert resumed.ended is None
    assert resumed.bytes_handled == pytest.approx(stopped.bytes_handled)
    assert resumed.bytes_total == pytest.approx(stopped.bytes_total)
    done, _ = await finished(desk, world, resumed.job, hour)
    assert done.files_done == done.files_total


async def test_files_rewritten_in_place_are_not_left_out_for_being_open(world):
    desk = SimulatedRebalance(world)
    name = await desk.start(Settings(("/storage/backup",), engine="rewrite"))
    done, _ = await finished(desk, world, name, 0)
    assert list(done.skipped) == ["changed"]
