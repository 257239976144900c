"""Disks and slots in words."""

from __future__ import annotations

from tests.table import rows
from zconsole.pool.chassis import LeafDisk, Slot


@rows(
    ("disk", "besides", "words"),
    [
        (LeafDisk(bay="Slot 07", serial="Z1"), "", "Slot 07, serial Z1"),
        (LeafDisk(bay="A12", serial="Z1"), "", "bay A12, serial Z1"),
        (LeafDisk(bay="bay12"), "", "bay12"),
        (LeafDisk(serial="Z1"), "", "serial Z1"),
        (LeafDisk(bay="A12", serial="Z1"), "ata-LAB_Z1", "bay A12"),
        (LeafDisk(bay="A12", serial="Z1"), "A12", "serial Z1"),
        (LeafDisk(model="LAB"), "", ""),
    ],
)
def test_a_disk_is_named_by_bay_and_serial_number(disk, besides, words):
    assert disk.words(besides) == words


def test_a_slot_that_is_only_a_number_is_called_a_slot():
    assert Slot("007", 7).label == "slot 7"
    assert Slot("12").label == "slot 12"
    assert Slot("Slot 07", 7).label == "Slot 07"
