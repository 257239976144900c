"""The way back from a step: the inverse of what was done last, as a plan."""

from __future__ import annotations

from zconsole.actions.offline import plan_online
from zconsole.actions.plan import Situation
from zconsole.actions.scrub import plan_stop
from zconsole.actions.target import Target, find
from zconsole.swap.after import undo_replace
from zconsole.swap.before import plan_offline_safely
from zconsole.swap.checklist import Checklist
from zconsole.swap.disk import device_of
from zconsole.swap.light import plan_light
from zconsole.swap.stage import SwapStage, WayBack
from zconsole.swap.undone import old_helps, taken_offline
from zconsole.swap.view import MachineView


def way_back(c: Checklist, v: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """What Back does: the inverse of what was done last; ``clean``: nothing is left undone."""
    if stage.alarm or stage.step == "light-off":
        return None
    if stage.step == "scrub":
        s = v.situation
        return _before_scrub(c, s) if stage.plan is not None else _stopping(c, s)
    return _from_disk(c, v, stage, clean)


def _from_disk(c: Checklist, v: MachineView, stage: SwapStage, clean: bool) -> WayBack | None:
    """The inverse of what was done to the disks, or their light."""
    s = v.situation
    target = find(s.pool, c.old.key)
    out = device_of(c.old, v.devices) is None
    if target is not None and target.group is not None and target.group.kind == "replacing":
        return _detaching(c, v)
    if c.same and target is not None and stage.step == "resilver":
        return WayBack(f"take {target.name} offline again", plan_offline_safely(s, target.key))
    if c.pulled is not None and target is not None and out and v.devices:
        disk = f"the old disk ({c.old.mark})" if c.old.mark else "the old disk"
        return WayBack(f"put {disk} back into {c.old.place or 'its bay'}: it is put online again")
    if c.lit and "light-off" not in c.passed and not old_helps(c, v):
        return WayBack("switch the light off", plan_light(s, c.old, on=False))
    back = None if target is None else _onlining(c, v, target)
    return back or _detaching(c, v) or _closing(c, clean and target is not None)


def _before_scrub(c: Checklist, s: Situation) -> WayBack | None:
    """Switch the light on that was switched off last."""
    if "light-off" not in c.passed or c.lit or not c.old.light:
        return None
    return WayBack("switch the light on again", plan_light(s, c.old, on=True))


def _stopping(c: Checklist, s: Situation) -> WayBack | None:
    """Stop the scrub that this checklist began."""
    if c.scrub_begun is None or s.active("scrub") is None:
        return None
    return WayBack("stop the scrub", plan_stop(s))


def _onlining(c: Checklist, v: MachineView, target: Target) -> WayBack | None:
    """Put online what was taken offline, the devices of other pools on the disk first."""
    for s, other in taken_offline(c, v):
        text = f"put {other.name} of {s.pool.name} online again"
        return WayBack(text, plan_online(s, other.key))
    if target.vdev.state != "OFFLINE":
        return None
    return WayBack(f"put {target.name} online again", plan_online(v.situation, target.key))


def _detaching(c: Checklist, v: MachineView) -> WayBack | None:
    plan = undo_replace(c, v)
    return None if plan is None else WayBack(plan.title[:1].lower() + plan.title[1:], plan)


def _closing(c: Checklist, clean: bool) -> WayBack | None:
    """Nothing was done, or it is undone: the checklist can be closed."""
    if not clean or c.pulled is not None:
        return None
    return WayBack("give up this swap: nothing is left to undo", closes=True)
