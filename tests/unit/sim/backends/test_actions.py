"""The lights of a simulated machine, by the real code except for the LEDs; its keeper's thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import wait
from dataclasses import asdict, replace

import pytest

from tests.table import rows
from tests.unit.waiting import soon
from tests.worlds import world_of
from zconsole.actions.locate import MachineLights
from zconsole.actions.plan import LightOrder
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.sim.backends.actions import (
    SimulatedParameters,
    _Snapshots,
    locate_of,
    simulated_backend,
    simulated_facts,
)
from zconsole.sim.backends.swap import SimulatedHands
from zconsole.sim.places import lights as lights_of
from zconsole.sim.places import places
from zconsole.sim.source import SimulatedSource, World, snapshot
from zconsole.sim.state import Incident
from zconsole.system.patient import begun
from zconsole.tunables.guard import GuardOrder


@pytest.fixture
def world() -> World:
    return World("resilver", 1, 0.0)


@pytest.fixture
def lights(world: World) -> MachineLights:
    return simulated_backend(world).lights


def device(world: World) -> Device:
    pool = world.pools[0]
    leaf = next(leaf for leaf in pool.leaves() if leaf.present)
    locate = locate_of(leaf, places(pool).disks)
    return Device(leaf.path, f"/dev/{leaf.disk}", locate=locate, bay="bay01", serial="ZC1A")


def test_a_light_is_on_until_its_time_is_over(world, lights):
    disk = device(world)
    assert lights.switch(LightOrder(True, disk)) == "the light of bay01 (serial ZC1A) is on"
    assert shown(world) == ["Slot 01"]
    world.pools[0].t += LASTING
    assert lights.tidy() == ("the light of bay01 (serial ZC1A) is off",)
    assert shown(world) == []


def test_the_light_of_a_bay_stays_on_when_its_disk_is_pulled(world, lights):
    lights.switch(LightOrder(True, device(world)))
    next(world.pools[0].leaves()).present = False
    assert shown(world) == ["Slot 01"]


def shown(world: World) -> list[str]:
    found = lights_of(world.pools, world.lit)
    return [name for (_, name), each in found.items() if each.locate]


def test_lights_go_off_by_hand_one_or_all_together(world, lights):
    disk = device(world)
    other = replace(disk, locate=disk.locate.replace("01", "02"), serial="")
    for each in (disk, other):
        lights.switch(LightOrder(True, each))
    assert len(shown(world)) == 2
    assert lights.switch(LightOrder(False, disk)) == "the light of bay01 (serial ZC1A) is off"
    assert shown(world) == ["Slot 02"]
    lights.switch(LightOrder(True, disk))
    lights.switch(LightOrder(False))
    assert shown(world) == []


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


@rows("ends", ["with its last duty", "with the demo"])
def test_the_thread_of_the_keeper_ends(ends):
    source, before = SimulatedSource("resilver", 1), threads()
    ask = simulated_backend(source.world).autopilots.ask
    ask(**asdict(GuardOrder("zfs_scan_suspend_progress", 1, 60.0)))
    assert threads() - before
    if ends == "with the demo":
        asyncio.run(source.aclose())
    else:
        ask(order="end", duty="guard")
    assert soon(lambda: not threads() - before)


READERS = {
    "a sample": lambda world: asyncio.run(_Snapshots(world).sample()),
    "a command": lambda world: asyncio.run(simulated_facts(world).guid("tank")),
    "the disks": lambda world: simulated_facts(world)._find(()),
}


@rows("reads", READERS)
def test_no_other_thread_reads_a_world_in_the_middle_of_a_step(reads):
    """It would see a pool of two moments."""
    world, reading = world_of("resilver"), []
    (pool,) = world.pools

    def in_between(_) -> None:
        reading.append(begun(lambda: READERS[reads](world)))
        wait(reading, timeout=0.2)
        assert not reading[0].done()

    pool.incidents = [Incident(pool.t + 5.0, in_between)]
    world.advance(10.0)
    assert reading[0].result(10.0)


class WatchedLock:
    """A lock that keeps what a world was like when it was first taken and last released."""

    def __init__(self, world: World) -> None:
        self._world, self._lock = world, world.lock
        self._depth = 0
        self.moments = [self.moment()]

    def moment(self) -> str:
        pools = self._world.pools
        host = pools[0].host
        return repr((list(map(snapshot, pools)), host.drawer, host.shelf, self._world.skipped))

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self.moments.append(self.moment())

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.moments.append(self.moment())
        self._lock.release()


CHANGES = {
    "a disk is pulled": lambda world: SimulatedHands(world).pull("Slot 07"),
    "a disk is inserted": lambda world: SimulatedHands(world).insert(0, "Slot 11"),
    "time passes": lambda world: SimulatedHands(world).wait(world.pools[0].name),
    "a tunable is set": lambda world: SimulatedParameters(world).write(
        "zfs_resilver_min_time_ms", 5000
    ),
}


@rows("changes", CHANGES)
def test_no_other_thread_reads_a_world_in_the_middle_of_a_change(changes):
    world = world_of("swap")
    SimulatedHands(world)  # fills the drawer
    watched = world.lock = WatchedLock(world)
    CHANGES[changes](world)
    before, taken, *_, released = watched.moments
    assert before == taken
    assert taken != released
    assert released == watched.moment()
