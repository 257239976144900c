"""Temperatures from the kernel's hardware monitors."""

from __future__ import annotations

import pytest

from tests.unit.hardware.chassis import Machine
from zconsole.hardware.located_source import Thermometer, temperature


def monitored(root, rotational: int, **files) -> Machine:
    machine = Machine(root)
    device = machine.sas("sda", 0, 0, "5000")
    machine.write(machine.block("sda"), stat="1 0 8")
    machine.write(machine.block("sda") / "queue", rotational=rotational)
    machine.write(device / "hwmon/hwmon0", **files)
    return machine


def test_a_rotating_disk_is_asked_only_after_it_did_something(tmp_path):
    machine = monitored(tmp_path, 1, name="drivetemp", temp1_input=35000)
    thermometer = Thermometer(tmp_path)
    assert thermometer.read(["sda"]) == {}
    assert thermometer.read(["sda"]) == {}
    machine.write(machine.block("sda"), stat="2 0 16")
    assert thermometer.read(["sda"]) == {"sda": 35.0}
    machine.write(machine.block("sda").parents[1] / "hwmon/hwmon0", temp1_input=36000)
    assert thermometer.read(["sda"]) == {"sda": 35.0}


@pytest.mark.parametrize(("passed", "degrees"), [(180.0, 35.0), (181.0, None)])
def test_a_disk_that_did_something_long_ago_may_sleep(tmp_path, passed, degrees):
    machine = monitored(tmp_path, 1, name="drivetemp", temp1_input=35000)
    now = [0.0]
    thermometer = Thermometer(tmp_path, lambda: now[0])
    thermometer.read(["sda"])
    machine.write(machine.block("sda"), stat="2 0 16")
    now[0] += passed
    assert thermometer.read(["sda"]).get("sda") == degrees


def test_a_disk_that_is_gone_leaves_no_temperature_to_another_of_its_name(tmp_path):
    machine = monitored(tmp_path, 1, name="drivetemp", temp1_input=35000)
    thermometer = Thermometer(tmp_path)
    thermometer.read(["sda"])
    machine.write(machine.block("sda"), stat="2 0 16")
    assert thermometer.read(["sda"]) == {"sda": 35.0}
    assert thermometer.read([]) == {}
    assert thermometer.read(["sda"]) == {}


def test_flash_is_asked_at_once(tmp_path):
    monitored(tmp_path, 0, name="drivetemp", temp1_input=35000)
    assert Thermometer(tmp_path).read(["sda"]) == {"sda": 35.0}


def test_an_nvme_disk_has_its_monitor_at_the_controller(tmp_path):
    machine = Machine(tmp_path)
    machine.nvme(0, "0000:04:00.0")
    machine.write(machine.block("nvme0n1").parent / "hwmon1", name="nvme", temp1_input=52850)
    assert temperature(tmp_path / "sys/class/block/nvme0n1") == 52.85


@pytest.mark.parametrize(
    "files",
    [
        {"name": "coretemp", "temp1_input": 35000},
        {"name": "drivetemp"},
        {"name": "drivetemp", "temp1_input": "hot"},
        {"name": "drivetemp", "temp1_input": 255000},
        {"name": "drivetemp", "temp1_input": "9" * 5000},
    ],
)
def test_what_is_no_temperature_of_the_disk_is_none(tmp_path, files):
    machine = monitored(tmp_path, 0, **files)
    assert temperature(machine.block("sda")) is None
