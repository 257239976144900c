"""Two disks of one vdev to swap: one after the other, and by one resilver for both."""

from __future__ import annotations

import pytest

from tests.unit.swap.playing import OLD, Play
from zconsole.actions.replace import plan_batch
from zconsole.actions.target import Swap
from zconsole.sim.build import Build
from zconsole.sim.disk import Leaf
from zconsole.sim.models import RED_4T
from zconsole.swap.checklist import DONE, PULL_FIRST, REPLACE_FIRST
from zconsole.swap.several import orders, predicted

OTHER = "Slot 08"


def another(seed: int) -> Leaf:
    return Build(seed, "spare disks").leaf(RED_4T)


@pytest.fixture
def two(play: Play) -> Play:
    """A shelf with two bad disks, and two new ones in the drawer."""
    play.leaf(OTHER).reads.errors = 7.0
    play.pool.host.drawer[:] = [another(11), another(12)]
    return play


def swapped(play: Play, bay: str) -> None:
    """Pull first, from the first step to the report."""
    play.begin(PULL_FIRST, bay)
    play.do()
    play.hands.pull(bay)
    assert play.look().step == "insert"
    play.hands.insert(0, bay)
    assert play.do().step == "resilver"
    play.until("scrub")
    play.do()
    play.answer("no-wait")
    assert play.checklist.state == DONE


def test_one_after_the_other(two: Play):
    old = {two.leaf(bay).serial for bay in (OLD, OTHER)}
    swapped(two, OLD)
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    swapped(second, OTHER)
    assert not old & {leaf.serial for leaf in two.pool.leaves()}
    assert two.pool.tops[0].lost() == 0
    assert {c.state for c in two.store.read()} == {DONE}


def test_the_second_waits_until_the_first_is_filled(two: Play):
    two.begin(PULL_FIRST)
    two.do()
    two.hands.pull(OLD)
    two.look()
    two.hands.insert(0, OLD)
    two.do()
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    (way,) = [way for way in second.choice(OTHER).ways if way.mode == PULL_FIRST]
    assert "wait for that resilver" in way.refused


def test_one_resilver_for_both_and_each_is_pulled_afterwards(two: Play):
    two.hands.insert(0, "Slot 11")
    two.hands.insert(0, "Slot 12")
    keys = [str(two.leaf(bay).guid) for bay in (OLD, OTHER)]
    v = two.view()
    together = next(o for o in orders(v, keys, predicted(v, keys)) if o.together)
    assert together.refused == ""
    new = [leaf.path for leaf in two.pool.host.shelf]
    plan = plan_batch(v.situation, tuple(map(Swap, keys, new)))
    assert plan.refused is None
    assert two.execute(plan)[-1].kind == "done"
    two.wait(1.0)
    second = Play(world=two.world, store=two.store, elapsed=two.elapsed)
    for play, bay in ((two, OLD), (second, OTHER)):
        assert play.begin(bay=bay).step == "resilver"
        assert play.checklist.mode == REPLACE_FIRST
    two.until("pull")
    second.elapsed = two.elapsed
    second.look()
    two.hands.pull(OLD)
    assert two.look().step == "scrub"
    assert not second.look().alarm
    two.do()
    two.answer("no-wait")
    stage = second.look()
    assert stage.step == "pull"
    assert not stage.alarm
    second.hands.pull(OTHER)
    assert second.look().step == "scrub"
    second.answer("no-wait")
    assert {c.state for c in two.store.read()} == {DONE}
    assert two.pool.tops[0].lost() == 0
