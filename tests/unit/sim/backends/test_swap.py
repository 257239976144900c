from __future__ import annotations

import pytest

from tests.table import rows
from tests.worlds import world_of
from zconsole.errors import ZconsoleError
from zconsole.sim import commands
from zconsole.sim.backends.swap import SimulatedHands
from zconsole.sim.disk import OFFLINE, REMOVED
from zconsole.sim.places import slot_name
from zconsole.sim.scenarios import names
from zconsole.sim.source import World
from zconsole.units import duration


@pytest.fixture
def world() -> World:
    return world_of("swap")


def leaf_in(world: World, bay: str):
    return next(leaf for leaf in world.pools[0].leaves() if slot_name(leaf.slot) == bay)


def test_a_pulled_disk_is_removed_and_lies_in_the_drawer(world: World):
    hands, leaf = SimulatedHands(world), leaf_in(world, "Slot 07")
    hands.pull("Slot 07")
    assert leaf.state == REMOVED
    assert world.pools[0].host.drawer[-1] is leaf
    assert hands.bays()["Slot 07"] == ""


def test_a_pulled_disk_that_was_offline_stays_offline(world: World):
    leaf = leaf_in(world, "Slot 07")
    leaf.state = OFFLINE
    SimulatedHands(world).pull("Slot 07")
    assert leaf.state == OFFLINE


def test_an_inserted_disk_is_free_to_be_used(world: World):
    hands, new = SimulatedHands(world), world.pools[0].host.drawer[0]
    assert "serial" in hands.drawer()[0]
    hands.insert(0, "Slot 11")
    assert world.pools[0].host.shelf == [new]
    assert hands.bays()["Slot 11"]


def test_a_free_disk_is_pulled_from_the_shelf(world: World):
    hands = SimulatedHands(world)
    hands.insert(0, "Slot 11")
    hands.pull("Slot 11")
    assert world.pools[0].host.shelf == []


@pytest.mark.parametrize(
    ("number", "bay"), [(0, "Slot 01"), (0, "Slot 99"), (9, "Slot 11"), (-1, "Slot 11")]
)
def test_what_cannot_be_inserted_is_an_error(world: World, number: int, bay: str):
    with pytest.raises(ZconsoleError):
        SimulatedHands(world).insert(number, bay)


def test_an_empty_bay_has_nothing_to_pull(world: World):
    with pytest.raises(ZconsoleError):
        SimulatedHands(world).pull("Slot 12")


@pytest.mark.slow
@rows("scenario", names())
def test_every_disk_of_every_scenario_sits_in_a_bay_and_a_new_one_fits_there(scenario: str):
    world = world_of(scenario)
    hands, pool = SimulatedHands(world), world.pools[0]
    leaf = next(leaf for leaf in pool.leaves() if leaf.present and leaf.kind == "disk")
    words = f"serial {leaf.serial}, {pool.name}"
    (bay,) = [bay for bay, disk in hands.bays().items() if words in disk]
    hands.pull(bay)
    new = next(n for n, x in enumerate(pool.host.drawer) if x.model.name == leaf.model.name)
    hands.insert(new, bay)
    assert pool.host.shelf[-1].slot == leaf.slot


@rows("scenario", ["failed-disk", "two-pools", "shared-bus"])
def test_every_bay_has_a_name_of_its_own(scenario: str):
    found = [*SimulatedHands(world_of(scenario)).bays()]
    assert len(set(found)) == len(found)


def test_a_flash_drive_needs_a_slot_for_it():
    world = world_of("healthy")
    hands = SimulatedHands(world)
    flash = next(n for n, leaf in enumerate(world.pools[0].host.drawer) if leaf.is_nvme)
    empty = next(bay for bay, disk in hands.bays().items() if not disk)
    with pytest.raises(ZconsoleError, match="doesn't fit"):
        hands.insert(flash, empty)


def test_a_disk_in_the_bay_of_another_is_called_as_that_was():
    world = world_of("failed-disk")
    hands, pool = SimulatedHands(world), world.pools[0]
    old = next(leaf for leaf in pool.leaves() if leaf.name == "bay05")
    path = old.path
    hands.pull("bay05")
    hands.insert(0, "bay05")
    new = pool.host.shelf[-1]
    assert (new.name, new.path) == ("bay05", path)
    assert new.disk not in {leaf.disk for leaf in (*pool.leaves(), *pool.host.drawer)}
    commands.replace(pool, str(old.guid), path)
    assert (old.name, old.path) == ("bay05/old", f"{path}/old")
    commands.detach(pool, str(new.guid))
    assert (old.name, old.path) == ("bay05", path)


@rows("begins", [True, False])
def test_time_passes_to_the_end_of_a_resilver_that_began_this_moment_or_for_an_hour(begins):
    world = world_of("failed-disk")
    pool, hands = world.pools[0], SimulatedHands(world)
    failed = next(leaf for leaf in pool.tops[0].leaves() if not leaf.online)
    if begins:
        commands.replace(pool, failed.path, pool.host.shelf[0].path)
    else:
        assert hands.wait(pool.name) == "nothing runs; time passes: 1h00m"
    before, said = pool.t, hands.wait(pool.name)
    world.advance(0.0)
    assert (pool.tops[0].lost() == 0) == begins
    assert said == f"time passes: {duration(pool.t - before)}" or not begins
    assert 60.0 <= pool.now - pool.scan.end < 1000.0 or not begins


def test_time_that_is_skipped_ends_soon_after_work_that_is_nearly_done():
    """With 76 s left of a resilver, 16 minutes passed."""
    world = world_of("flaky")  # its resilver soon restarts
    assert SimulatedHands(world).wait(world.pools[0].name) == "time passes: 2m30s"
