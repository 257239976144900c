from __future__ import annotations

from pathlib import Path

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.hardware.lit_chassis import ID, Chassis
from zconsole.errors import UsageError
from zconsole.hardware.light import Leds, LedSlot, slot_of


@pytest.fixture
def chassis(tmp_path: Path) -> Chassis:
    made = Chassis(tmp_path)
    made.enclosure()
    return made


def test_a_slot_is_known_by_the_id_of_its_enclosure(chassis):
    assert chassis.slot() == LedSlot(ID, "Slot 01", "0:0:8:0")
    assert chassis.slot().key == replace(chassis.slot(), address="9:0:8:0").key


def test_what_is_not_the_led_of_a_slot_is_refused():
    with pytest.raises(UsageError, match="not the LED"):
        slot_of("/sys/class/enclosure/0:0:8:0/Slot 01/fault")


@rows("name", ["", ".", "..", "../../etc", "Slot 01/../Slot 02", "Slot\0", "Slot 99"])
def test_a_name_from_a_record_stays_in_its_enclosure(chassis, name):
    for place in (chassis.led().parent.parent, chassis.led().parent.parent.parent):
        (place / "locate").write_text("0")
    assert Leds(chassis.root).find(replace(chassis.slot(), component=name), "") is None


def test_a_slot_is_found_where_its_enclosure_has_moved_to(chassis):
    slot = chassis.slot()
    chassis.moved("0:0:8:0", "11:0:3:0")
    chassis.enclosure("0:0:8:0", "0x5000000000000000")
    assert Leds(chassis.root).find(slot, "") == chassis.led("11:0:3:0")


def test_of_two_expanders_of_one_chassis_the_one_of_before_counts(chassis):
    chassis.enclosure("1:0:8:0")
    for name, address in (("sda", "0:0:8:0"), ("sdb", "1:0:8:0")):
        chassis.disk(name, "S1", address, 1)
    for address in ("0:0:8:0", "1:0:8:0"):
        assert Leds(chassis.root).find(chassis.slot(address), "S1") == chassis.led(address)
    moved = replace(chassis.slot(), address="7:0:8:0")
    assert Leds(chassis.root).find(moved, "S1") == chassis.led("0:0:8:0")


def test_of_two_chassis_with_a_made_up_id_the_one_with_the_disk_counts(chassis):
    slot = chassis.slot("0:0:8:0")
    chassis.enclosure("1:0:8:0")
    chassis.disk("sda", "S1", "1:0:8:0", 1)
    assert Leds(chassis.root).find(slot, "S1") == chassis.led("1:0:8:0")


def test_no_bay_is_lit_that_could_be_another_one(chassis):
    slot = replace(chassis.slot(), address="7:0:8:0")
    chassis.enclosure("1:0:8:0")
    assert Leds(chassis.root).find(slot, "S1") is None


def test_an_enclosure_without_an_id_is_found_by_its_address(chassis):
    chassis.enclosure("1:0:8:0", "")
    slot = chassis.slot("1:0:8:0")
    assert Leds(chassis.root).find(slot, "") == chassis.led("1:0:8:0")
    assert Leds(chassis.root).find(replace(slot, address="2:0:8:0"), "") is None


def test_writing_makes_no_file_and_follows_no_link(chassis, tmp_path):
    with pytest.raises(FileNotFoundError):
        Leds().write(tmp_path / "locate", "1")
    (tmp_path / "link").symlink_to(chassis.led())
    with pytest.raises(OSError, match="symbolic links"):
        Leds().write(tmp_path / "link", "1")
    assert chassis.led().read_text() == "0"
