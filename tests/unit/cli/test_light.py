from __future__ import annotations

from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.hardware.lit_chassis import Chassis
from zconsole.cli import light
from zconsole.cli.main import main
from zconsole.hardware.device import Device


@pytest.fixture
def chassis(tmp_path: Path, monkeypatch) -> Chassis:
    made = Chassis(tmp_path)
    made.enclosure()
    made.disk("sda", "S1", "0:0:8:0", 1)
    disk = Device(
        "/dev/disk/by-id/d0", "/dev/sda", serial="S1", locate=str(made.led()), bay="bay 1"
    )
    monkeypatch.setenv("ZCONSOLE_STATE", str(made.state))
    monkeypatch.setattr("zconsole.system.keeper.ask", lambda *_, **order: 1)
    others = (Device(node, node, serial="SAME") for node in ("/dev/sdb", "/dev/sdc"))
    led = str(made.led(number=2))
    paths = (Device(n, n, serial="TWO", wwn="naa.5", locate=led) for n in ("/dev/sdd", "/dev/sde"))
    known = (disk, *others, *paths, Device("/dev/sdf", "/dev/sdf"))
    monkeypatch.setattr(light, "disks", lambda *_: known)
    monkeypatch.setattr(light, "LocateLights", made.lights)
    monkeypatch.setattr(light, "MachineLights", lambda: real(made.lights))
    return made


real = light.MachineLights


@pytest.mark.parametrize("word", ["/dev/sda", "/dev/disk/by-id/d0", "S1"])
def test_a_disk_is_lit_by_any_of_its_names(chassis, capsys, word):
    assert main(["light", "on", word]) == 0
    assert chassis.led().read_text() == "1"
    assert "the light of bay 1 (serial S1) is on" in capsys.readouterr().err


@rows("words", [[], ["S1"], ["bay 1"], ["/dev/sda"]])
def test_a_light_goes_off(chassis, words):
    main(["light", "on", "S1"])
    assert main(["light", "off", *words]) == 0
    assert chassis.led().read_text() == "0"
    assert chassis.lights().lit() == ()


def test_after_a_reboot_it_is_lit_again(chassis, capsys):
    main(["light", "on", "S1"])
    chassis.led().write_text("0")
    chassis.boot("boot-2")
    assert main(["light", "resume"]) == 0
    assert chassis.led().read_text() == "1"
    assert "on again after the reboot" in capsys.readouterr().err


@rows(
    ("words", "code", "text"),
    [
        (["on"], 2, "on needs a DISK"),
        (["list", "S1"], 2, "list takes no DISK"),
        (["on", "S2"], 3, "S2 is not a disk"),
        (["on", "SAME"], 2, "SAME is the serial number of 2 disks: /dev/sdb, /dev/sdc"),
        (["off", ""], 2, "empty DISK"),
        (["on", "S1", "--read-only"], 2, "not allowed with --read-only"),
        (["dim", "S1"], 2, "invalid choice"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(chassis, capsys, words, code, text):
    assert main(["light", *words]) == code
    assert text in capsys.readouterr().err
    assert chassis.led().read_text() == "0"


def test_two_paths_to_one_disk_are_one_disk(chassis):
    main(["light", "on", "TWO"])
    assert (chassis.led(number=2).read_text(), len(chassis.lights().lit())) == ("1", 1)
