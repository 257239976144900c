"""The disks that a plan names, and their places."""

from __future__ import annotations

from tests.records import replace
from tests.unit.actions.pools import at, pool, top
from zconsole.actions.offline import plan_detach, plan_offline
from zconsole.actions.plan import Facts, Situation, places
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap
from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Vdev

NEW = Device("/dev/disk/by-id/new", "/dev/sdx", size=1 << 50, bay="Slot 09", serial="NEW1")


def in_bays(found: Pool) -> Pool:
    """Return the pool with its leaves in slots by number; leaves without a number are in none."""

    def placed(vdev: Vdev, number: int) -> Vdev:
        if vdev.children:
            below = (placed(child, i) for i, child in enumerate(vdev.children))
            return replace(vdev, children=tuple(below))
        return replace(vdev, disk=LeafDisk(bay=f"Slot {number:02}", serial=f"S{number}"))

    return replace(found, root=placed(found.root, 0))


def situation(*devices: Device) -> Situation:
    made = at(pool(top("mirror", 0, 2)))
    return replace(made, pool=in_bays(made.pool), facts=Facts(devices=devices))


def test_offline_and_detach_name_the_bay_and_serial_number():
    for plan in (plan_offline, plan_detach):
        (said,) = plan(situation(), "1001").where
        assert said == "d01 by its GUID: Slot 01, serial S1"


def test_what_is_known_of_the_machine_serves_where_the_sample_knows_nothing():
    made = at(pool(top("mirror", 0, 2)))
    leaf = next(iter(made.pool.root.leaves()))
    device = Device(leaf.path, bay="A1", serial="S1")
    assert places({leaf.guid}, at(made.pool, Facts(devices=(device,)))) == (
        f"{leaf.name} by its GUID: bay A1, serial S1",
    )
    assert places({leaf.guid}, made) == (f"{leaf.name} by its GUID",)
    assert places({leaf.path}, made) == ()


def test_a_disk_that_took_over_the_path_of_a_failed_leaf_is_not_named_for_it():
    # "was /dev/sdb1" next to the healthy leaf that is /dev/sdb1 now.
    mirror = top("mirror", 0, 2)
    gone, healthy = (replace(leaf, path="/dev/sdb1") for leaf in mirror.children)
    tree = replace(mirror, children=(replace(gone, state="UNAVAIL", note="was /dev/sdb1"), healthy))
    sdb = Device("/dev/disk/by-id/h", "/dev/sdb", ("/dev/sdb1",), serial="HEALTHY", bay="Slot 03")
    found = at(pool(tree), Facts(devices=(sdb,)))
    assert not any("HEALTHY" in said for said in plan_replace(found, Swap("1000", NEW.path)).where)
    assert plan_offline(found, "1001").where == ("d01 by its GUID: Slot 03, serial HEALTHY",)


def test_a_disk_that_the_machine_has_no_longer_is_said_to_be_out():
    old, new = plan_replace(situation(NEW), Swap("1001", NEW.path)).where
    assert old.endswith(": Slot 01, serial S1 (not there now)")
    assert "not there" not in new
    (said,) = plan_offline(situation(replace(NEW, serial="S1")), "1001").where[:1]
    assert "not there" not in said
