"""Enclosures and their slots, from trees of real layouts and hostile ones."""

from __future__ import annotations

import pytest

from tests.unit.hardware.chassis import Machine, expander_24, jbod_60, nvme_12
from zconsole.hardware.location import enclosures, lights_of
from zconsole.pool.chassis import Slot, SlotLights


def test_every_slot_of_24_and_which_are_empty(tmp_path):
    (found,) = enclosures(expander_24(tmp_path).root)
    assert (found.key, found.name) == ("0x500304801ee3ee7f", "LSI SAS3x40")
    assert [slot.number for slot in found.slots] == list(range(24))
    assert [slot.number for slot in found.slots if not slot.disks] == [3, 11, 23]
    assert found.slots[1].disks == ("sdb",)


@pytest.mark.slow
@pytest.mark.parametrize("second", ["0x5000ccab0512ab00", "0x5000ccab0512abff"])
def test_two_paths_are_one_shelf_whose_disks_have_two_names(tmp_path, second):
    (found,) = enclosures(jbod_60(tmp_path, second).root)
    assert len(found.slots) == 60
    assert found.slots[0].disks == ("sda", "sdbi")
    assert [slot.number for slot in found.slots if not slot.disks] == [17, 59]
    assert [len(slot.folders) for slot in found.slots] == [2] * 60


@pytest.mark.parametrize(
    ("key", "filled", "keys"),
    [
        ("0x5001", False, ["0x5001"]),
        ("0x5001", True, ["0x5001 0:0:9:0", "0x5001 1:0:9:0"]),
        ("0x0000000000000000", False, ["0:0:9:0", "1:0:9:0"]),
    ],
)
def test_two_paths_are_of_one_shelf_by_its_id_unless_its_disks_differ(tmp_path, key, filled, keys):
    machine = Machine(tmp_path)
    for host in (0, 1):
        disk = machine.sas(f"sd{'ab'[host]}", host, 0, f"5000{host}") if filled else None
        machine.enclosure(f"{host}:0:9:0", key, {1: disk})
    assert [each.key for each in enclosures(tmp_path)] == keys


def test_slots_are_components_for_a_disk_whatever_their_numbers(tmp_path):
    machine = Machine(tmp_path)
    place = machine.enclosure("0:0:9:0", "0x5001", {1: None, 2: None})
    for name in ("Disk #00", "Disk #01"):
        machine.slot(place, name, 0, None)
    machine.write(place / "Expander", type="SAS expander", slot=2)
    machine.write(place / "Odd", slot=3)
    (place / "Slot 01/slot").write_text("9" * 100_000)
    (place / "Slot 02/slot").write_text("-1\n")
    (found,) = enclosures(tmp_path)
    numbers = [("Disk #00", 0), ("Disk #01", 0), ("Slot 01", None), ("Slot 02", None)]
    assert [(slot.name, slot.number) for slot in found.slots] == numbers


def test_nvme_slots_with_a_disk_are_listed(tmp_path):
    (found,) = enclosures(nvme_12(tmp_path).root)
    assert (found.key, found.name) == ("", "NVMe slots")
    assert [slot.name for slot in found.slots] == [str(n) for n in range(1, 13) if n != 7]
    assert found.slots[0].disks == ("nvme1n1",)


def test_lights(tmp_path):
    machine = expander_24(tmp_path)
    (found,) = enclosures(machine.root)
    place = tmp_path / found.slots[1].folders[0]
    machine.write(place, fault=1, locate=0)
    assert lights_of(found.slots[1]) == SlotLights(True, False, "OK")
    assert lights_of(found.slots[3]) == SlotLights(False, False, "not installed")
    assert lights_of(Slot("gone", folders=(str(tmp_path / "gone"),))) == SlotLights()


@pytest.mark.slow
def test_a_path_that_is_gone_leaves_the_other_to_tell_the_lights(tmp_path):
    machine = jbod_60(tmp_path)
    slot = enclosures(machine.root)[0].slots[0]
    for name in ("fault", "locate", "status"):
        (tmp_path / slot.folders[0] / name).unlink()
    assert lights_of(slot) == SlotLights(False, False, "OK")


def test_control_characters_and_long_names_are_made_safe(tmp_path):
    machine = Machine(tmp_path)
    place = machine.enclosure("0:0:9:0", "0x5001\x1b[2J", {})
    machine.slot(place, "Slot\x1b]0;x\x07\u202e 1", 1, None)
    machine.slot(place, "x" * 200, 2, None)
    (place / "../../model").resolve().write_bytes(b"\0\xff" * 10_000)
    (found,) = enclosures(tmp_path)
    shown = (found.key, found.name, *(slot.name for slot in found.slots))
    assert all(text.isprintable() and len(text) <= 80 for text in shown)


def test_links_in_a_circle_and_files_for_folders_give_nothing(tmp_path):
    machine = Machine(tmp_path)
    (tmp_path / "sys/class/enclosure/a").symlink_to("b")
    (tmp_path / "sys/class/enclosure/b").symlink_to("a")
    (tmp_path / "sys/class/enclosure/file").touch()
    place = machine.enclosure("0:0:9:0", "0x5001", {1: None})
    (place / "Slot 01/device").symlink_to(".")
    (found,) = enclosures(tmp_path)
    assert found.slots[0].disks == ()


def test_what_cannot_be_read_is_left_out(tmp_path):
    machine = expander_24(tmp_path)
    place = (tmp_path / "sys/class/enclosure/0:0:24:0").resolve()
    for name in ("id", "Slot 01/type"):
        (place / name).unlink()
        (place / name).mkdir()
    (found,) = enclosures(machine.root)
    assert (found.key, len(found.slots)) == ("0:0:24:0", 23)
