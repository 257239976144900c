"""The disks that a plan names, and their places."""

from __future__ import annotations

from tests.records import replace
from tests.unit.actions.pools import at, disk, mirror, pool, top
from zconsole.actions.offline import plan_offline
from zconsole.actions.plan import Facts, Situation, places
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap
from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk

NEW = Device("/dev/disk/by-id/new", "/dev/sdx", size=1 << 50, bay="Slot 09", serial="NEW1")


def situation(*devices: Device) -> Situation:
    leaf = disk("d01", 1001, disk=LeafDisk(bay="Slot 01", serial="S1"))
    return at(pool(top("mirror", 0, 2, disk("d00", 1000), leaf)), Facts(devices=devices))


def test_what_is_known_of_the_machine_serves_where_the_sample_knows_nothing():
    made, leaf = mirror(), disk("d00", 1000)
    known = replace(made, facts=Facts(devices=(Device(leaf.path, bay="A1", serial="S1"),)))
    assert places({leaf.guid}, known) == ("d00 by its GUID: bay A1, serial S1",)
    assert places({leaf.guid}, made) == ("d00 by its GUID",)
    assert places({leaf.path}, made) == ()


def test_a_disk_that_took_over_the_path_of_a_failed_leaf_is_not_named_for_it():
    # "was /dev/sdb1" next to the healthy leaf that is /dev/sdb1 now.
    gone = disk("d00", 1000, "UNAVAIL", note="was /dev/sdb1")
    both = (replace(leaf, path="/dev/sdb1") for leaf in (gone, disk("d01", 1001)))
    sdb = Device("/dev/disk/by-id/h", "/dev/sdb", ("/dev/sdb1",), serial="HEALTHY", bay="Slot 03")
    found = mirror(changes=tuple(both), facts=Facts(devices=(sdb,)))
    assert not any("HEALTHY" in said for said in plan_replace(found, Swap("1000", NEW.path)).where)
    assert plan_offline(found, "1001").where == ("d01 by its GUID: Slot 03, serial HEALTHY",)


def test_a_disk_that_the_machine_has_no_longer_is_said_to_be_out():
    old, new = plan_replace(situation(NEW), Swap("1001", NEW.path)).where
    assert old.endswith(": Slot 01, serial S1 (not there now)")
    assert "not there" not in new
    (said,) = plan_offline(situation(replace(NEW, serial="S1")), "1001").where[:1]
    assert "not there" not in said
