"""Places of disks in raw forms, including recordings from untrusted sources."""

from __future__ import annotations

from tests.table import rows
from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.pool.model import Pool, Vdev
from zconsole.zfs.decode.builders import Devices
from zconsole.zfs.decode.decoder import with_measurements

ODD = (None, 7, "x", [], {}, [[]], {"a": 7}, [7], [{}])


def test_what_was_recorded():
    disk = {"bay": "A1", "slot": "1", "serial": "S", "temperature": 41}
    shelf = {"key": "0x5", "name": "LSI", "slots": [[0, "Slot 00", "sda"], [None, "B"]]}
    assert Devices({"t": 1.0, "disks": {"/dev/sda": disk}}).disks == {
        "/dev/sda": LeafDisk(bay="A1", slot="1", serial="S", temperature=41.0)
    }
    assert tuple(Devices({"t": 1.0, "enclosures": [shelf]}).enclosures) == (
        Enclosure("0x5", "LSI", (Slot("Slot 00", 0, ("sda",)), Slot("B"))),
    )


@rows("odd", ODD)
def test_other_shapes_are_unknown(odd):
    assert not any(any(disk) for disk in Devices({"t": 1.0, "disks": odd}).disks.values())
    assert all(not each.slots for each in Devices({"t": 1.0, "enclosures": odd}).enclosures)
    (shelf,) = Devices({"t": 1.0, "enclosures": [{"slots": odd}]}).enclosures
    assert shelf.slots == ()
    assert Devices({"t": 1.0, "disks": {"/dev/sda": {"bay": odd, "temperature": [odd]}}}).disks


def test_text_and_numbers_are_made_safe():
    disk = {"bay": "A\x1b[2J", "serial": "x" * 9999, "temperature": float("nan")}
    found = Devices({"t": 1.0, "disks": {"/dev/sda": disk}}).disks["/dev/sda"]
    assert found.bay == r"A\x1b[2J"
    assert len(found.serial) == 128
    assert found.temperature is None


def test_a_failed_leaf_has_not_the_disk_that_took_over_its_path():
    # "was /dev/sdb1" next to the healthy leaf that is /dev/sdb1 now.
    disk = LeafDisk(bay="Slot 03", serial="HEALTHY")
    gone = Vdev("99", "disk", state="UNAVAIL", guid="99", path="/dev/sdb1", note="was /dev/sdb1")
    healthy = Vdev("sdb", "disk", state="ONLINE", guid="7", path="/dev/sdb1")
    leaves = [leaf._replace(disk=disk) for leaf in (gone, healthy)]
    pool = Pool("tank", "DEGRADED", Vdev("tank", "root", children=tuple(leaves)))
    found = with_measurements(pool, {"t": 1.0, "disks": {"/dev/sdb1": {}}}).root.children
    assert [leaf.disk for leaf in found] == [None, disk]
