"""Lights of a simulated machine: the real code, except for the LEDs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zconsole.actions.locate import MachineLights
from zconsole.actions.plan import LightOrder
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.sim.backends.actions import locate_of, simulated_backend
from zconsole.sim.places import lights as lights_of
from zconsole.sim.places import places
from zconsole.sim.source import World


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


def test_a_light_goes_off_by_hand(world, lights):
    disk = device(world)
    lights.switch(LightOrder(True, disk))
    assert lights.switch(LightOrder(False, disk)) == "the light of bay01 (serial ZC1A) is off"
    assert shown(world) == []


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
    lights.switch(
        LightOrder(True, replace(disk, locate=disk.locate.replace("01", "02"), serial=""))
    )
    assert len(shown(world)) == 2
    lights.switch(LightOrder(False))
    assert shown(world) == []
