"""Discarding the checkpoint that keeps a resilver from ending."""

from __future__ import annotations

from tests.unit.actions.pools import CHECKPOINT, mirror
from zconsole.actions.checkpoint import plan_discard
from zconsole.pool.model import Activity


def test_it_is_confirmed_by_name_and_says_what_is_lost():
    plan = plan_discard(mirror(activities=(CHECKPOINT,)))
    assert plan.refused is None
    assert [step.command for step in plan.steps] == ["zpool checkpoint -d tank"]
    assert plan.needs_typed == "tank"
    assert plan.not_undone == ("the pool can't be rewound to the checkpoint any more",)
    assert not any("resilver" in text for text in plan.consequences)


def test_without_one_or_with_one_that_goes_already_it_is_refused():
    assert plan_discard(mirror()).refused == "the pool has no checkpoint"
    going = mirror(activities=(Activity("checkpoint", "running"),))
    assert "already" in plan_discard(going).refused
