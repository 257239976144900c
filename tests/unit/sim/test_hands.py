from __future__ import annotations

import pytest

from zconsole.errors import ZconsoleError
from zconsole.sim.disk import OFFLINE, REMOVED
from zconsole.sim.hands import SimulatedHands, slot_name
from zconsole.sim.source import World


@pytest.fixture
def world() -> World:
    return World("swap", 1)


def leaf_in(world: World, bay: str):
    return next(leaf for leaf in world.pools[0].leaves() if slot_name(leaf.slot) == bay)


def test_a_pulled_disk_is_removed_and_lies_in_the_drawer(world: World):
    hands, leaf = SimulatedHands(world), leaf_in(world, "Slot 07")
    hands.pull("Slot 07")
    assert leaf.state == REMOVED
    assert world.pools[0].host.drawer[-1] is leaf
    assert dict(hands.bays())["Slot 07"] == ""


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
    assert dict(hands.bays())["Slot 11"]


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
