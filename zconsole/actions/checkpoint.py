"""The checkpoint of a pool: made before a vdev is added, and discarded (zpool-checkpoint(8)).

While a checkpoint exists, no resilver removes the replaced device (it may even restart without
end, #17109), and ``zpool`` refuses replace, attach, detach and remove, so that no hot spare stands
in. The kernel's checks are in spa_checkpoint_check and spa_checkpoint_discard_check,
spa_checkpoint.c (2.3.9).
"""

from __future__ import annotations

from dataclasses import replace

from zconsole.actions import conditions as must
from zconsole.actions.add import Layout, plan_add
from zconsole.actions.follow import when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide
from zconsole.actions.target import failed
from zconsole.pool.scan_outcome import left_behind
from zconsole.units import size


def plan_add_with_way_back(
    situation: Situation, layout: Layout, devices: tuple[str, ...]
) -> ActionPlan:
    """Plan to add a vdev after a checkpoint, refused where the checkpoint would do harm."""
    plan, name = plan_add(situation, layout, devices), situation.pool.name
    if plan.refused is not None:
        return plan
    checkpoint = Step(situation.zpool("checkpoint"), "keep a way back")
    return decide(
        replace(
            plan,
            title=f"{plan.title}, after a checkpoint",
            steps=(
                checkpoint,
                *(replace(step, requires=plan.preconditions) for step in plan.steps),
            ),
            consequences=(
                f"the checkpoint is a way back: zpool export {name}, then zpool import"
                f" --rewind-to-checkpoint {name}; what was written since is lost",
                "while it exists, nothing can be replaced, attached, detached or removed, no hot"
                " spare stands in, and space that is freed stays in use: discard it soon (zpool"
                f" checkpoint -d {name})",
                *plan.consequences,
            ),
            preconditions=(
                *plan.preconditions,
                must.feature("zpool_checkpoint", "a checkpoint", (0, 8)),
                Precondition("no checkpoint exists", _kept_already),
                must.no_activity("expansion", "raidz expansion"),
                must.nothing_runs("resilver", "rebuild"),
                Precondition("no device waits to be replaced or filled", _needs_repair),
            ),
        ),
        situation,
    )


def _kept_already(now: Situation) -> str | None:
    return "the pool has a checkpoint already" if now.pool.checkpoint is not None else None


def _needs_repair(now: Situation) -> str | None:
    if gone := failed(now.pool):
        return f"{gone[0].name} is {gone[0].vdev.state}: replace it first"
    if left_behind(now.pool.root):
        return "a device is being replaced or waits for a resilver, which a checkpoint would block"
    return None


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
