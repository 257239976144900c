from __future__ import annotations

from dataclasses import replace

import pytest

from zconsole.actions.plan import LightOrder
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.sim.backends.actions import SimulatedLights, locate_of
from zconsole.sim.places import lights as lights_of
from zconsole.sim.places import places
from zconsole.sim.source import World


@pytest.fixture
def world() -> World:
    return World("resilver", 1, 0.0)


@pytest.fixture
def lights(world: World) -> SimulatedLights:
    return SimulatedLights(world)


def device(world: World) -> Device:
    pool = world.pools[0]
    leaf = next(leaf for leaf in pool.leaves() if leaf.present)
    return Device(leaf.path, f"/dev/{leaf.disk}", locate=locate_of(leaf, places(pool).disks))


def test_a_light_is_on_until_its_time_is_over(world, lights):
    disk = device(world)
    assert lights.switch(LightOrder(True, disk)) == "the light of Slot 01 is on"
    assert shown(world) == ["Slot 01"]
    world.pools[0].t += LASTING
    assert shown(world) == []


def test_a_light_is_named_by_bay_and_disk(world, lights):
    disk = replace(device(world), bay="bay01", serial="ZC1A")
    assert lights.switch(LightOrder(True, disk)) == "the light of bay01 (serial ZC1A) is on"
    assert lights.switch(LightOrder(False, disk)) == "the light of bay01 (serial ZC1A) is off"
    assert "was off" in lights.switch(LightOrder(False, disk))


def test_the_light_of_a_bay_stays_on_when_its_disk_is_pulled(world, lights):
    lights.switch(LightOrder(True, device(world)))
    next(world.pools[0].leaves()).present = False
    assert shown(world) == ["Slot 01"]


def shown(world: World) -> list[str]:
    found = lights_of(world.pools, world.lit)
    return [name for (_, name), each in found.items() if each.locate]


def test_all_go_off_together(world, lights):
    disk = device(world)
    lights.switch(LightOrder(True, disk))
    lights.switch(LightOrder(False))
    assert world.lit == {}
