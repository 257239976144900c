"""Discarding the checkpoint of a pool (zpool-checkpoint(8)).

While one exists no resilver lets go of what it replaced, and ``zpool`` refuses replace, attach and
detach. What the kernel refuses: spa_checkpoint_discard_check, spa_checkpoint.c (2.3.9).
"""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, zpool
from zconsole.pool.scan_outcome import left_behind
from zconsole.units import size


def plan_discard(situation: Situation) -> ActionPlan:
    """Discard the checkpoint of the pool; one-way."""
    plan = ActionPlan(
        action="checkpoint",
        title=f"Discard the checkpoint of {situation.pool.name}",
        steps=(Step(zpool("checkpoint", "-d", operands=(situation.pool.name,)), "discard it"),),
        consequences=(_frees(situation), "files stay as they are now", *_afterwards(situation)),
        not_undone=("the pool can't be rewound to the checkpoint any more",),
        preconditions=(must.answering(), _exists()),
        needs_typed=situation.pool.name,
        follow=when(_is_gone, f"the checkpoint of {situation.pool.name} is discarded"),
        begins="discard",
    )
    return decide(plan, situation)


def _is_gone(situation: Situation) -> bool:
    return situation.pool.checkpoint is None


def _frees(situation: Situation) -> str:
    held = situation.pool.checkpoint.total_bytes if situation.pool.checkpoint else None
    much = f", {size(held)}" if held else ""
    return f"frees what only the checkpoint holds{much}; that takes a while"


def _afterwards(situation: Situation) -> tuple[str, ...]:
    """What is left to do where the checkpoint kept a resilver from its end."""
    if situation.active("resilver") or not left_behind(situation.pool.root):
        return ()
    return ("afterwards, restart the resilver (zpool resilver): only then the old disk leaves",)


def _exists() -> Precondition:
    """There is a checkpoint, and it isn't being discarded already."""

    def _check(now: Situation) -> str | None:
        if now.pool.checkpoint is None:
            return "the pool has no checkpoint"
        going = now.pool.checkpoint.discarding
        return "the checkpoint is being discarded already" if going else None

    return Precondition("a checkpoint exists", _check)
