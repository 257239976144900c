from __future__ import annotations

import pytest

from zconsole.actions.plan import LightOrder
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING
from zconsole.sim.backends.lights import SimulatedLights, locate_of
from zconsole.sim.source import World


@pytest.fixture
def world() -> World:
    return World("resilver", 1, 0.0)


@pytest.fixture
def lights(world: World) -> SimulatedLights:
    return SimulatedLights(world)


def device(world: World) -> Device:
    leaf = next(leaf for leaf in world.pools[0].leaves() if leaf.present)
    return Device(leaf.path, f"/dev/{leaf.device}", locate=locate_of(leaf))


def test_a_light_is_on_until_its_time_is_over(world, lights):
    disk = device(world)
    assert "is on" in lights.switch(LightOrder(True, disk))
    lights.tidy()
    assert list(lights.lit) == [disk.node]
    world.pools[0].t += LASTING
    lights.tidy()
    assert lights.lit == {}


def test_a_disk_blinks_until_it_is_stopped(world, lights):
    disk = device(world)
    assert "blinks" in lights.switch(LightOrder(True, disk, blink=True))
    assert list(lights.blinking) == [disk.node]
    assert "is off" in lights.switch(LightOrder(False, disk, blink=True))
    assert "was off" in lights.switch(LightOrder(False, disk, blink=True))


def test_a_disk_that_is_gone_does_not_blink(world, lights):
    gone = device(world)
    for leaf in world.pools[0].leaves():
        leaf.present = False
    with pytest.raises(ZconsoleError, match="doesn't answer"):
        lights.switch(LightOrder(True, gone, blink=True))


def test_all_go_off_together(world, lights):
    disk = device(world)
    lights.switch(LightOrder(True, disk))
    lights.switch(LightOrder(True, disk, blink=True))
    lights.switch(LightOrder(False))
    assert (lights.lit, lights.blinking) == ({}, {})


def test_disks_of_a_resilver_are_busy(world, lights):
    leaf = next(leaf for leaf in world.pools[0].leaves() if leaf.present)
    leaf.in_flight = 0.5
    assert lights.busy()[leaf.device] == 0.5
