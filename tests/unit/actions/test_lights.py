from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.hardware.lit_chassis import Chassis
from zconsole.actions.locate import MachineLights
from zconsole.actions.plan import LightOrder
from zconsole.errors import UsageError
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING


@pytest.fixture
def chassis(tmp_path: Path, monkeypatch) -> Chassis:
    monkeypatch.setattr("zconsole.system.keeper.ask", lambda *_, **order: 1)
    made = Chassis(tmp_path)
    made.enclosure()
    return made


@pytest.fixture
def lights(chassis: Chassis) -> MachineLights:
    return MachineLights(chassis.lights)


def device(chassis: Chassis, number: int = 1) -> Device:
    led = str(chassis.led(number=number))
    return Device("/dev/disk/by-id/d0", "/dev/sda", serial="S1", locate=led, bay=f"bay {number}")


def values(chassis: Chassis) -> list[str]:
    return [chassis.led(number=number).read_text() for number in (1, 2)]


def test_a_light_is_on_for_four_hours(chassis, lights):
    said = lights.switch(LightOrder(True, device(chassis)))
    assert said == "the light of bay 1 (serial S1) is on"
    (lit,) = chassis.lights().lit()
    assert lit.until == chassis.now + LASTING == chassis.now + 4 * 3600
    chassis.now += LASTING
    assert lights.tidy() == ("the light of bay 1 (serial S1) is off",)
    assert values(chassis) == ["0", "0"]


@pytest.mark.parametrize(("on", "left"), [(False, ["0", "0"]), (True, ["0", "1"])])
def test_the_light_of_the_bay_that_a_disk_was_in_goes_off(chassis, lights, on, left):
    lights.switch(LightOrder(True, device(chassis)))
    lights.switch(LightOrder(on, device(chassis, 2)))
    assert values(chassis) == left


def test_a_light_of_others_goes_off_when_asked_for(chassis, lights):
    chassis.led().write_text("1")
    lights.switch(LightOrder(False, device(chassis)))
    assert values(chassis) == ["0", "0"]


def test_a_disk_without_a_light_is_refused(lights):
    for on in (True, False):
        with pytest.raises(UsageError, match="no bay with a light"):
            lights.switch(LightOrder(on, Device("/dev/sda", "/dev/sda")))


def test_all_go_off_together(chassis, lights):
    assert lights.switch(LightOrder(False)) == "no light was on"
    lights.switch(LightOrder(True, device(chassis)))
    said = lights.switch(LightOrder(False))
    assert said == "the light of bay 1 (serial S1) is off"
    assert values(chassis) == ["0", "0"]
