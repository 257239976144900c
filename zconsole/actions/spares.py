"""Hot spares that are in use: make them permanent, or give them back (zpool-replace(8))."""

from __future__ import annotations

import dataclasses

from zconsole.actions.offline import plan_detach
from zconsole.actions.plan import ActionPlan, Situation, refuse
from zconsole.actions.replace import Swap, plan_replace
from zconsole.actions.target import Target, find, key_of
from zconsole.pool.model import Vdev


def plan_keep_spare(s: Situation, key: str) -> ActionPlan:
    """Make the spare permanent by detaching the device it stands in for."""
    title = "Make the spare permanent"
    failed = _failed(s, key)
    if failed is None:
        return refuse("spare", title, s.pool.name, "no spare stands in there")
    spare = _stand_in(failed)
    if spare is not None and spare.kind == "dspare":
        return refuse(
            "spare",
            title,
            s.pool.name,
            f"{spare.name} is distributed over the disks of {failed.top.name}: it can only be"
            " given back",
            "replace the failed device",
        )
    plan = plan_detach(s, failed.key)
    return dataclasses.replace(
        plan,
        action="spare",
        title=f"{title}: {spare.name if spare else ''} for {failed.name}",
        not_undone=(*plan.not_undone, "the pool has one spare less; add a new one"),
    )


def plan_give_back(s: Situation, key: str, new: str, sequential: bool = False) -> ActionPlan:
    """Replace the failed device by a new one; the spare then goes back to the list by itself."""
    title = "Give the spare back"
    failed = _failed(s, key)
    if failed is None:
        return refuse("spare", title, s.pool.name, "no spare stands in there")
    plan = plan_replace(s, Swap(failed.key, new), sequential)
    spare = _stand_in(failed)
    name = spare.name if spare else "the spare"
    return dataclasses.replace(
        plan,
        action="spare",
        title=f"{title}: replace {failed.name} by {new}",
        consequences=(*plan.consequences, f"when it is done, {name} is available again"),
    )


def plan_drop_spare(s: Situation, key: str) -> ActionPlan:
    """Detach the spare itself, when the device it stood in for is well again."""
    failed = _failed(s, key)
    spare = _stand_in(failed) if failed else None
    if failed is None or spare is None:
        return refuse("spare", "Give the spare back", s.pool.name, "no spare stands in there")
    plan = plan_detach(s, key_of(s.pool, spare) or "")
    return dataclasses.replace(plan, action="spare", title=f"Give {spare.name} back")


def _failed(s: Situation, key: str) -> Target | None:
    """The device that is spared, whichever device of the group (or the group) ``key`` is."""
    target = find(s.pool, key)
    if target is None:
        return None
    group = target.vdev if target.vdev.kind == "spare" and target.vdev.children else target.group
    if group is None or group.kind != "spare" or not group.children:
        return None
    first = key_of(s.pool, group.children[0])
    return find(s.pool, first) if first else None


def _stand_in(failed: Target) -> Vdev | None:
    group = failed.group
    return next((v for v in group.children if v is not failed.vdev), None) if group else None
