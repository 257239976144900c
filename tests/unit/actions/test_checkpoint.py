"""Discarding the checkpoint that keeps a resilver from ending."""

from __future__ import annotations

from tests.unit.actions.pools import CHECKPOINT, at, disk, group, mirror, pool
from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.scrub import plan_resilver
from zconsole.pool.model import Activity

PAIR = group("replacing", disk("old", 1000), disk("new", 1001))


def test_it_is_confirmed_by_name_and_says_what_is_lost():
    plan = plan_discard(mirror(activities=(CHECKPOINT,)))
    assert plan.refused is None
    assert [step.command for step in plan.steps] == ["zpool checkpoint -d tank"]
    assert plan.needs_typed == "tank"
    assert plan.not_undone == ("the pool can't be rewound to the checkpoint any more",)
    assert not any("resilver" in text for text in plan.consequences)


def test_where_a_resilver_was_kept_from_its_end_the_next_step_is_said():
    s = at(pool(PAIR, activities=(CHECKPOINT,)))
    assert any("restart the resilver" in text for text in plan_discard(s).consequences)
    assert plan_resilver(s).refused is None


def test_without_one_or_with_one_that_goes_already_it_is_refused():
    assert plan_discard(mirror()).refused == "the pool has no checkpoint"
    going = mirror(activities=(Activity("checkpoint", "running"),))
    assert "already" in plan_discard(going).refused


def test_its_end_is_seen():
    plan = plan_discard(mirror(activities=(CHECKPOINT,)))
    assert plan.follow(mirror(activities=(Activity("checkpoint", "running"),))) is None
    ended = plan.follow(mirror())
    assert ended.ok
