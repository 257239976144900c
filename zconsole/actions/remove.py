"""Removing a spare, cache, log or data vdev from a pool (zpool-remove(8); vdev_removal.c).

A checkpoint is never offered before: while one exists, the kernel removes nothing, not even a
spare, and while a removal runs, it makes none.
"""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.allocating import SLOP
from zconsole.actions.follow import when
from zconsole.actions.plan import (
    ActionOutcome,
    ActionPlan,
    Follow,
    Precondition,
    Situation,
    Step,
    decide,
    refuse,
)
from zconsole.actions.running_scans import takes
from zconsole.actions.target import Target, find
from zconsole.pool.model import DATA, Pool, Vdev, data_vdevs, is_group
from zconsole.pool.redundancy import is_complete
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import counted, percent, size

MOST_SLOP = 128 << 30
"""Most bytes that ZFS keeps for itself (spa_max_slop, module/zfs/spa_misc.c)."""
NO_RAIDZ = "no vdev with data can be removed from a pool with raidz or dRAID"
EVACUATE = "evacuate"
"""The action of removing a vdev with data, also in the table of hazards."""


def plan_remove(
    situation: Situation, key: str, mapping: int | None = None, estimate: Estimate | None = None
) -> ActionPlan:
    """Plan to remove a spare, a cache, or the whole top-level vdev that a device is in.

    ``mapping``: bytes of memory for the table of moved blocks, ``estimate``: how long the copy
    takes; None if unknown.
    """
    target = whole(situation.pool, key)
    if target is None:
        return refuse("remove", "Remove a device", situation, must.NOT_THERE)
    vdev, name = target.vdev, target.name
    holds_data, disks = vdev.vclass in DATA, ", ".join(v.called for v in vdev.leaves())
    argv = situation.zpool("remove", operands=(target.argument,))
    effects = _evacuation(situation, vdev, mapping, estimate) if holds_data else _effect(target)
    plan = ActionPlan(
        action=EVACUATE if holds_data else "remove",
        title=f"Remove {name} from {situation.pool.name}",
        steps=(Step(argv, f"remove {name}"),),
        consequences=(*effects, *((f"its disks: {disks}",) if vdev.children else ())),
        not_undone=(
            "once the copy has ended: the pool is smaller, and ZFS never adds a raidz or dRAID to"
            " it again",
            "the table of moved blocks stays in memory, and shrinks only as these are freed",
        )
        * holds_data,
        preconditions=(
            must.ANSWERING,
            must.present(target),
            must.NO_CHECKPOINT,
            *_needs(target),
        ),
        needs_typed=vdev.name if holds_data else None,
        follow=_gone(target, situation.t),
        begins="removal" if holds_data else "",
        predicted=None if estimate is None else estimate.eta,
    )
    return decide(plan, situation)


def whole(pool: Pool, key: str) -> Target | None:
    """Return what is removed with a row: a spare, a cache, or its top-level vdev; None if gone."""
    row = find(pool, key)
    return find(pool, row.top_key) if row is not None else None


def plan_cancel(situation: Situation) -> ActionPlan:
    """Plan to cancel the removal of a vdev, whose data then stays on it."""
    plan = ActionPlan(
        action=EVACUATE,
        title=f"Cancel the removal of a vdev from {situation.pool.name}",
        steps=(Step(situation.zpool("remove", "-s"), "cancel it"),),
        consequences=("what was copied is dropped; the vdev stays and takes new writes again",),
        preconditions=(
            must.ANSWERING,
            Precondition(
                "a removal is running",
                lambda now: None if now.works("removal") else "no removal is running",
            ),
        ),
        follow=when(lambda now: not now.works("removal"), "no removal is running any more"),
        supersedes=True,
    )
    return decide(plan, situation)


def unremovable(situation: Situation) -> str | None:
    """Return why no vdev with data can be removed from the pool; None if one can, or unknown."""
    tops = data_vdevs(situation.pool.root)
    if any(top.kind.startswith(("raidz", "draid")) for top in tops):
        return NO_RAIDZ
    if situation.facts.has("device_removal") is False:
        return "the pool lacks the feature device_removal"
    if len({top.ashift for top in tops if top.vclass == "normal"} - {None}) > 1:
        return "no vdev can be removed where ashift differs between vdevs"
    return None


def _effect(target: Target) -> tuple[str, ...]:
    """Return what the pool lacks without a spare, cache or log."""
    others = [v for v in target.parent.children if v.vclass == target.vdev.vclass]
    left = len(others) - 1
    match target.vdev.vclass:
        case "spare":
            keeps = f"the pool keeps {counted(left, 'hot spare')}"
            return (keeps if left else "the pool has no hot spare then",)
        case "cache":
            return ("what it has cached is read from the pool's other disks; no data is on it",)
        case _:
            where = "other logs" if left else "disks with data, and may take longer"
            return (f"synchronous writes go to the pool's {where}",)


def _evacuation(
    situation: Situation, vdev: Vdev, mapping: int | None, estimate: Estimate | None
) -> tuple[str, ...]:
    """Return what removing a vdev with data copies, and how long and how much memory it takes."""
    table = "unknown" if mapping is None else f"about {size(mapping)}"
    rest = [v for v in data_vdevs(situation.pool.root) if v.vclass == "normal" and v is not vdev]
    room = sum(v.size_bytes or 0 for v in rest)
    moved = vdev.alloc_bytes
    fuller = ""
    if room and moved is not None and all(v.alloc_bytes is not None for v in rest):
        used = sum(v.alloc_bytes or 0 for v in rest)
        fuller = f", which are {percent((used + moved) / room)} full then"
        fuller += f" ({percent(used / room)} now)"
    return (
        f"copies {'its data' if moved is None else size(moved)} to the other vdevs{fuller}",
        takes(estimate, "the copy"),
        f"memory for the table of moved blocks: {table}; reads of these go through it",
        "until the copy has ended you can cancel it (zpool remove -s), and nothing can be replaced,"
        " attached or added",
        "checksums are not verified as it copies; a read or write error cancels it: scrub first",
    )


def _needs(target: Target) -> tuple[Precondition, ...]:
    """Return what must hold of the vdev and its pool (spa_vdev_remove, spa_vdev_remove_top)."""
    if target.vdev.vclass == "spare":
        return (must.of_device(target, "it does not stand in for a device", _stands_in),)
    if target.vdev.vclass not in DATA:
        return ()
    return (
        must.release("removing a vdev with data", (0, 8)),
        must.no_activity("removal", "device removal"),
        must.of_device(target, "the pool's vdevs are such that one can be removed", _fixed),
        must.of_device(target, "it has all its data", _lacks_data),
        must.of_device(target, "the other vdevs have room for its data", _no_room),
    )


def _stands_in(situation: Situation, now: Target) -> str | None:
    if now.vdev.kind == "dspare":
        return f"{now.name} is a distributed spare, a part of its dRAID"
    used = {v.argument for v in situation.pool.root.leaves() if v.vclass != "spare"}
    if now.vdev.argument in used:
        return f"{now.name} stands in for a device: return it first"
    return None


def _fixed(situation: Situation, now: Target) -> str | None:
    """Return what in the pool's layout keeps the vdev in it."""
    if why := unremovable(situation):
        return why
    tops = data_vdevs(situation.pool.root)
    alike = {top.ashift for top in tops if top.vclass in ("normal", now.vdev.vclass)} - {None}
    if len(alike) > 1:
        return f"{now.name} has another ashift than the vdevs that would take its data"
    if group := next((v for top in tops for v in top.walk() if is_group(v)), None):
        return f"a device is being replaced or spared ({group.name}): wait for that to end"
    return None


def _lacks_data(_: Situation, now: Target) -> str | None:
    if is_complete(now.vdev):
        return None
    return f"{now.name} ({now.vdev.state}) can't be read in full: only a healthy vdev is removed"


def _no_room(situation: Situation, now: Target) -> str | None:
    """Return why the pool can't do without the vdev's space, as spa_vdev_remove_top_check.

    None also where sizes are unknown. The kernel counts reservations as used, too.
    """
    tops = [top for top in data_vdevs(situation.pool.root) if top.vclass == "normal"]
    if not any(top is not now.vdev and top.allocating is not False for top in tops):
        return "no other vdev could take its data"
    total, free = 0, 0
    for top in tops:
        if top.size_bytes is None or top.alloc_bytes is None:
            return None
        total += top.size_bytes
        free += top.size_bytes - top.alloc_bytes
    if now.vdev.vclass != "normal":
        needed = now.vdev.alloc_bytes or 0
    elif now.vdev.allocating is False:  # its space does not count any more
        return None
    else:
        needed = now.vdev.size_bytes or 0
        free -= int(min(total * SLOP, MOST_SLOP))
    if needed <= free:
        return None
    takes_room = f"removing {now.name} takes {size(needed)}"
    return f"too little free space: {takes_room}, the pool has {size(max(0, free))} to spare"


def _gone(target: Target, since: float) -> Follow:
    """Follow until the vdev has left the pool, or its removal was canceled after ``since``."""

    def _follow(now: Situation) -> ActionOutcome | None:
        if find(now.pool, target.key) is None:
            bays = (leaf.disk.bay for leaf in target.vdev.leaves() if leaf.disk is not None)
            return ActionOutcome(
                True,
                f"{target.name} is no longer part of {now.pool.name}",
                unused=tuple(filter(None, bays)),
            )
        canceled = (
            work.kind == "removal" and work.state == "canceled" and (work.end or 0.0) >= int(since)
            for work in now.pool.activities
        )
        return ActionOutcome(False, "the removal was canceled") if any(canceled) else None

    return _follow
