"""Hot spares that are in use: make them permanent, or give them back (zpool-replace(8))."""

from __future__ import annotations

import dataclasses

from zconsole.actions.offline import plan_detach
from zconsole.actions.plan import ActionPlan, Situation, refuse
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap, Target, find, key_of
from zconsole.pool.model import Vdev

NO_SPARE = "no spare stands in there"
GIVE_BACK = "Give the spare back"


def plan_keep_spare(s: Situation, key: str) -> ActionPlan:
    """Make the spare permanent by detaching the device it stands in for."""
    title = "Make the spare permanent"
    pair = _spared(s, key)
    if pair is None:
        return refuse("spare", title, s.pool.name, NO_SPARE)
    failed, spare = pair
    if spare.kind == "dspare":
        why = f"{spare.name} is distributed over the disks of {failed.top.name}: it can only be"
        return refuse("spare", title, s.pool.name, f"{why} given back", "replace the failed device")
    plan = plan_detach(s, failed.key)
    return dataclasses.replace(
        plan,
        action="spare",
        title=f"{title}: {spare.name} for {failed.name}",
        not_undone=(*plan.not_undone, "the pool has one spare less; add a new one"),
    )


def plan_give_back(s: Situation, key: str, new: str, sequential: bool = False) -> ActionPlan:
    """Replace the failed device by a new one; the spare then goes back to the list by itself."""
    pair = _spared(s, key)
    if pair is None:
        return refuse("spare", GIVE_BACK, s.pool.name, NO_SPARE)
    failed, spare = pair
    plan = plan_replace(s, Swap(failed.key, new), sequential)
    return dataclasses.replace(
        plan,
        action="spare",
        title=f"{GIVE_BACK}: replace {failed.name} by {new}",
        consequences=(*plan.consequences, f"when it is done, {spare.name} is available again"),
    )


def plan_drop_spare(s: Situation, key: str) -> ActionPlan:
    """Detach the spare itself, when the device it stood in for is well again."""
    pair = _spared(s, key)
    if pair is None:
        return refuse("spare", GIVE_BACK, s.pool.name, NO_SPARE)
    spare = pair[1]
    plan = plan_detach(s, key_of(s.pool, spare) or "")
    return dataclasses.replace(plan, action="spare", title=f"Give {spare.name} back")


def _spared(s: Situation, key: str) -> tuple[Target, Vdev] | None:
    """The failed device and the spare in its place; ``key`` is either's, or their group's."""
    target = find(s.pool, key)
    if target is None:
        return None
    group = target.vdev if target.vdev.kind == "spare" and target.vdev.children else target.group
    if group is None or group.kind != "spare" or len(group.children) < 2:
        return None
    failed = find(s.pool, key_of(s.pool, group.children[0]) or "")
    return None if failed is None else (failed, group.children[1])
