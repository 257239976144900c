"""The duty that limits a scrub to its window, on a simulated pool."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from zconsole.actions.facts import Refresher
from zconsole.actions.scrub_window import KEEPER, LOOK, MachineWindows
from zconsole.actions.window_keeper import WindowKeeper
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.system.process import Completed
from zconsole.system.state_dir import try_lock
from zconsole.timeline.session import Session

HOUR = 3600.0


class Night:
    """A simulated pool with a clock that the test advances, and its keeper."""

    def __init__(self, state: Path, scenario: str = "healthy") -> None:
        self.world = World(scenario, 1)
        self.pool = self.world.pools[0]
        self.session, self.elapsed = Session(), 0.0
        self.state, self.records = state, MachineWindows(state)
        self.backend = simulated_backend(self.world)

    def keeper(self) -> WindowKeeper:
        """Return a new keeper, as after a crash or a reboot."""
        ask, lock = self.backend.ask, self.state / KEEPER
        executor = self.backend.executor(Refresher(self.fresh, ask))
        return WindowKeeper(self.records, lock, executor, ask, self.frames)

    async def frames(self):
        self.elapsed += 1.0
        self.world.advance(self.elapsed)
        return self.session.advance(self.world.raws())

    async def fresh(self, pool, since):
        return next(f for f in await self.frames() if f.pool == pool)

    def set(self, begins: float, ends: float) -> None:
        """Set a window that begins and ends this many hours from now."""
        words = [
            datetime.fromtimestamp(self.pool.now + hours * HOUR, UTC).astimezone()
            for hours in (begins, ends)
        ]
        hours = "-".join(f"{each:%H:%M}" for each in words)
        with self.records.open() as windows:
            windows[str(self.pool.guid)] = ScrubWindow(self.pool.name, str(self.pool.guid), hours)

    def dropped_meanwhile(self) -> None:
        """Let somebody drop the window during a check, just before the command."""
        fresh = self.fresh

        async def dropped(pool, since):
            with self.records.open() as windows:
                windows.clear()
            return await fresh(pool, since)

        self.fresh = dropped

    @property
    def said(self) -> list[str]:
        """Return the results that the keeper recorded."""
        return [r["result"] for r in self.backend.log.records if r["event"] == "noted"]

    @property
    def commands(self) -> list[list[str]]:
        """Return the commands that were run."""
        return [r["argv"] for r in self.backend.log.records if r["event"] == "ended"]

    async def after(self, hours: float) -> None:
        self.elapsed += hours * HOUR
        await self.keeper().look()

    @property
    def window(self) -> ScrubWindow:
        (window,) = self.records.windows()
        return window


@pytest.fixture
def night(tmp_path: Path) -> Night:
    tmp_path.chmod(0o700)
    return Night(tmp_path)


@pytest.mark.slow
async def test_a_scrub_runs_in_its_hours_and_keeps_its_progress_outside(night):
    night.set(1, 3)
    await night.after(0.0)
    assert not night.pool.scan.active
    await night.after(1.1)
    assert night.pool.scan.running
    await night.after(2.0)
    done = night.pool.scan.issued
    assert night.pool.scan.paused_since
    assert night.window.paused
    await night.after(3.0)
    assert night.pool.scan.issued == done > 0
    await night.after(24.0 - 4.5)
    assert night.pool.scan.running
    assert not night.window.paused
    assert night.pool.scan.issued >= done


async def test_each_command_is_in_the_log(night):
    night.set(0, 2)
    await night.after(0.1)
    argv = [r.get("argv") for r in night.backend.log.records if r["event"] == "begun"]
    assert argv == [["zpool", "scrub", night.pool.name]]


async def test_what_somebody_paused_in_the_hours_stays_paused(night):
    night.set(-1, 5)
    await night.after(0.0)
    await night.after(0.1)
    await night.backend.runner.run(("zpool", "scrub", "-p", night.pool.name), 1.0)
    await night.after(0.5)
    assert night.pool.scan.paused_since
    assert not night.window.paused


async def test_it_is_over_once_the_scrub_was_stopped(night):
    night.set(-1, 5)
    await night.after(0.0)
    await night.after(0.1)
    await night.backend.runner.run(("zpool", "scrub", "-s", night.pool.name), 1.0)
    await night.after(0.1)
    assert night.records.windows() == ()
    assert not night.pool.scan.active
    assert night.said[-1] == f"{night.pool.name}: the scrub has ended"


async def test_it_is_over_with_a_scrub_that_no_look_saw(night):
    night.set(-1, 22)
    await night.after(0.0)
    assert night.window.begun
    await night.after(20.0)
    assert not night.pool.scan.active
    assert night.records.windows() == ()
    await night.after(0.1)
    assert night.commands == [["zpool", "scrub", night.pool.name]]


async def test_a_scrub_that_could_not_start_is_tried_again(night, monkeypatch):
    run, failures = night.backend.runner.run, [1]

    async def fails(argv, deadline):
        if argv[1] == "scrub" and failures:
            return Completed(argv, failures.pop(), "", "no memory")
        return await run(argv, deadline)

    monkeypatch.setattr(night.backend.runner, "run", fails)
    night.set(-1, 5)
    await night.after(0.0)
    assert not night.window.begun
    await night.after(0.1)
    assert night.pool.scan.running
    assert night.window.begun


@pytest.mark.parametrize("state", ["none", "running", "paused"])
async def test_nothing_is_done_for_hours_that_are_dropped_meanwhile(night, state):
    night.set(-1, 5)
    if state != "none":
        await night.after(0.0)
        night.set(-2, -1) if state == "running" else night.set(-1, 5)
        with night.records.open() as windows:
            windows.update({k: replace(w, begun=True, paused=True) for k, w in windows.items()})
    if state == "paused":
        await night.backend.runner.run(("zpool", "scrub", "-p", night.pool.name), 1.0)
    before = night.commands
    night.dropped_meanwhile()
    await night.after(0.0)
    assert night.commands == before
    assert bool(night.pool.scan.paused_since) == (state == "paused")
    assert night.pool.scan.active == (state != "none")
    assert night.records.windows() == ()


async def test_a_pool_that_is_gone_keeps_its_hours(night):
    night.set(-1, 5)
    before = night.window
    night.world.pools = ()
    await night.after(0.0)
    assert night.window == before


async def test_it_is_kept_until_no_hours_are_left(night):
    keeper = night.keeper()
    assert not await keeper.act()
    night.set(-1, 5)
    assert await keeper.act()
    assert await keeper.act()
    assert keeper.due(keeper._clock()) == pytest.approx(LOOK, abs=1.0)
    assert try_lock(night.state / KEEPER) is None
    with night.records.open() as windows:
        windows.clear()
    assert not await keeper.act()
    lock = try_lock(night.state / KEEPER)
    assert lock is not None
    os.close(lock)


async def test_another_version_that_keeps_them_goes_on_as_long_as_it_lives(night):
    night.set(0, 2)
    lock = try_lock(night.state / KEEPER)
    keeper = night.keeper()
    assert await keeper.act()
    assert not night.pool.scan.active
    os.close(lock)
    assert await keeper.act()
    assert await keeper.act()
    assert night.pool.scan.running


async def test_a_resilver_goes_first(tmp_path):
    tmp_path.chmod(0o700)
    night = Night(tmp_path, "failed-disk")
    failed = next(leaf for leaf in night.pool.tops[0].leaves() if not leaf.online)
    new = night.pool.host.shelf[0].path.removesuffix("-part1")
    words = ("zpool", "replace", "tank", str(failed.guid), new)
    await night.backend.runner.run(words, 1.0)
    night.set(-1, 5)
    await night.after(0.0)
    assert night.pool.resilvering
    assert night.said == []
    assert night.window.begun is False
