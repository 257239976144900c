"""Discarding the checkpoint of a pool (zpool-checkpoint(8)).

While a checkpoint exists, no resilver removes the replaced device, and ``zpool`` refuses replace,
attach and detach. The kernel's checks are in spa_checkpoint_discard_check, spa_checkpoint.c
(2.3.9).
"""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide
from zconsole.pool.scan_outcome import left_behind
from zconsole.units import size


def plan_discard(situation: Situation) -> ActionPlan:
    """Plan to discard the checkpoint of the pool, which can't be undone."""
    held = situation.pool.checkpoint.total_bytes if situation.pool.checkpoint else None
    much = f", {size(held)}" if held else ""
    # A checkpoint keeps a resilver from removing the old device.
    unended = left_behind(situation.pool.root) and not situation.active("resilver")
    then = "afterwards, restart the resilver (zpool resilver): only then the old disk leaves"
    plan = ActionPlan(
        action="checkpoint",
        title=f"Discard the checkpoint of {situation.pool.name}",
        steps=(Step(situation.zpool("checkpoint", "-d"), "discard it"),),
        consequences=(
            f"frees what only the checkpoint holds{much}; that takes a while",
            "files stay as they are now",
            *((then,) * unended),
        ),
        not_undone=("the pool can't be rewound to the checkpoint any more",),
        preconditions=(must.ANSWERING, Precondition("a checkpoint exists", _nothing_to_discard)),
        needs_typed=situation.pool.name,
        follow=when(
            lambda now: now.pool.checkpoint is None,
            f"the checkpoint of {situation.pool.name} is discarded",
        ),
        begins="discard",
    )
    return decide(plan, situation)


def _nothing_to_discard(now: Situation) -> str | None:
    if now.pool.checkpoint is None:
        return "the pool has no checkpoint"
    return "the checkpoint is being discarded already" if now.pool.checkpoint.discarding else None
