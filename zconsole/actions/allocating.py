"""Keeping a top-level vdev from new writes: ``allocating`` (vdevprops(7), 2.2)."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import leaf_is
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.target import Target, find
from zconsole.pool.allocator import why_unsettable
from zconsole.pool.balance import balance

SLOP = 1 / 32
"""Most of a pool that ZFS keeps for itself (spa_get_slop_space, module/zfs/spa_misc.c)."""


def plan_allocating(situation: Situation, key: str, on: bool) -> ActionPlan:
    """Plan to keep a top-level vdev from new writes, or to let it take them again."""
    target, value = find(situation.pool, key), "on" if on else "off"
    if target is None:
        return refuse("allocating", f"Set allocating={value}", situation, must.NOT_THERE)
    words = situation.zpool("set", f"allocating={value}", operands=(target.vdev.argument,))

    def _why_not(_: Situation, now: Target) -> str | None:
        return f"allocating is {value} already" if _is(now, on) else None

    plan = ActionPlan(
        action="allocating",
        title=f"Set allocating={value} on {target.name}",
        steps=(Step(words, f"new writes on {target.name}: {value}"),),
        consequences=(
            f"{target.name} takes new writes again"
            if on
            else f"{target.name} takes no new writes; its whole size is not available meanwhile",
        ),
        preconditions=(
            must.ANSWERING,
            Precondition("this OpenZFS can set it", lambda now: why_unsettable(now.facts.version)),
            must.present(target),
            must.of_device(target, "it is a normal vdev, and stays", _not_plain),
            must.of_device(target, f"allocating is not {value}", _why_not),
            *((must.of_device(target, "all data fits on the others", no_space),) * (not on)),
        ),
        follow=leaf_is(key, lambda now: _is(now, on), f"allocating is {value}"),
    )
    return decide(plan, situation)


def _is(target: Target, on: bool) -> bool:
    # Text of zpool only tells which vdevs don't allocate.
    return (target.vdev.allocating is not False) == on


def _not_plain(situation: Situation, now: Target) -> str | None:
    if now.vdev is not now.top or now.vdev.vclass != "normal":
        return f"{now.name} is no top-level vdev of the normal class"
    return f"{now.name} is being removed" if situation.works("removal", now.name) else None


def no_space(situation: Situation, now: Target) -> str | None:
    """Return why the other vdevs that take new writes can't hold all data; None if they can.

    ZFS takes a vdev without new writes out of the pool's space as a whole (spa_update_dspace,
    module/zfs/spa_misc.c). If the rest is less than what is stored, every write fails.
    """
    tops = {top.name: top for top in situation.pool.root.children}
    used = left = 0.0
    for each in balance(situation.pool.root).vdevs:
        if each.alloc_bytes is None or each.size_bytes is None or each.data_share is None:
            return f"the space of {each.name} is unknown"
        used += each.alloc_bytes * each.data_share
        if each.name != now.vdev.name and tops[each.name].allocating is not False:
            left += each.size_bytes * each.data_share
    if used < left * (1 - SLOP):
        return None
    return "the other vdevs that take new writes are too small for all data of the pool"
