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


def plan_discard(s: Situation) -> ActionPlan:
    """Discard the checkpoint of the pool; one-way."""
    plan = ActionPlan(
        action="checkpoint",
        title=f"Discard the checkpoint of {s.pool.name}",
        steps=(Step(zpool("checkpoint", "-d", operands=(s.pool.name,)), "discard it"),),
        consequences=(_frees(s), "files stay as they are now", *_afterwards(s)),
        not_undone=("the pool can't be rewound to the checkpoint any more",),
        preconditions=(must.answering(), _exists()),
        needs_typed=s.pool.name,
        follow=when(lambda now: not _states(now), f"the checkpoint of {s.pool.name} is discarded"),
        begins="discard",
    )
    return decide(plan, s)


def _states(s: Situation) -> frozenset[str]:
    return frozenset(a.state for a in s.pool.activities if a.kind == "checkpoint")


def _frees(s: Situation) -> str:
    held = next((a.total_bytes for a in s.pool.activities if a.kind == "checkpoint"), None)
    much = f", {size(held)}" if held else ""
    return f"frees what only the checkpoint holds{much}; that takes a while"


def _afterwards(s: Situation) -> tuple[str, ...]:
    """What is left to do where the checkpoint kept a resilver from its end."""
    if s.active("resilver") or not left_behind(s.pool.root):
        return ()
    return ("afterwards, restart the resilver (zpool resilver): only then the old disk leaves",)


def _exists() -> Precondition:
    """There is a checkpoint, and it isn't being discarded already."""

    def _check(now: Situation) -> str | None:
        if "exists" in _states(now):
            return None
        if "running" in _states(now):
            return "the checkpoint is being discarded already"
        return "the pool has no checkpoint"

    return Precondition("a checkpoint exists", _check)
