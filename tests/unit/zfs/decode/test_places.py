"""Places of disks in raw forms, some from recordings that anybody may have made."""

from __future__ import annotations

import pytest

from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.zfs.decode.places import disks_of, enclosures_of

ODD = (None, 7, "x", [], {}, [[]], {"a": 7}, [7], [{}])


def test_what_was_recorded():
    disk = {"bay": "A1", "slot": "1", "serial": "S", "temperature": 41}
    shelf = {"key": "0x5", "name": "LSI", "slots": [[0, "Slot 00", "sda"], [None, "B"]]}
    assert disks_of({"t": 1.0, "disks": {"/dev/sda": disk}}) == {
        "/dev/sda": LeafDisk(bay="A1", slot="1", serial="S", temperature=41.0)
    }
    assert enclosures_of({"t": 1.0, "enclosures": [shelf]}) == (
        Enclosure("0x5", "LSI", (Slot("Slot 00", 0, ("sda",)), Slot("B"))),
    )


@pytest.mark.parametrize("odd", ODD)
def test_other_shapes_are_unknown(odd):
    assert not any(any(disk) for disk in disks_of({"t": 1.0, "disks": odd}).values())
    assert all(not each.slots for each in enclosures_of({"t": 1.0, "enclosures": odd}))
    assert enclosures_of({"t": 1.0, "enclosures": [{"slots": odd}]})[0].slots == ()
    assert disks_of({"t": 1.0, "disks": {"/dev/sda": {"bay": odd, "temperature": [odd]}}})


def test_text_and_numbers_are_made_safe():
    disk = {"bay": "A\x1b[2J", "serial": "x" * 9999, "temperature": float("nan")}
    found = disks_of({"t": 1.0, "disks": {"/dev/sda": disk}})["/dev/sda"]
    assert found.bay == r"A\x1b[2J"
    assert len(found.serial) == 128
    assert found.temperature is None
