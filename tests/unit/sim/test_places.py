"""Places of simulated disks."""

from __future__ import annotations

from tests.worlds import world_of
from zconsole.sim.disk import REMOVED
from zconsole.sim.places import lights, places


def test_a_disk_that_was_pulled_leaves_its_slot_empty_and_its_leaf_its_place():
    (pool,) = world_of("failed-disk").pools
    leaf = next(pool.leaves())
    leaf.present, leaf.state = False, REMOVED
    found = places(pool)
    assert found.enclosures[0].slots[0].disks == ()
    assert found.disks[leaf.path].slot == "Slot 01"
    assert found.disks[leaf.path].temperature is None


def test_a_failed_disk_has_its_fault_light_on():
    world = world_of("failed-disk")
    found = lights(world.pools, world.lit)
    lit = [name for (_, name), each in found.items() if each.fault]
    assert lit == ["Slot 05"]
    assert len(found) == 24
