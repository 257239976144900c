"""The identify LED of a device's bay (ses(4); drivers/misc/enclosure.c)."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.target import Target, find


def plan_locate(s: Situation, key: str, on: bool) -> ActionPlan:
    """Switch the identify LED of a device's bay, where the enclosure has one (ses, sysfs)."""
    target = find(s.pool, key)
    title = f"Switch the locate LED {'on' if on else 'off'}"
    if target is None:
        return refuse("locate", title, s.pool.name, must.NOT_THERE)
    device = s.facts.device(target.vdev.path or "")
    if device is None or device.locate is None:
        why = f"{target.name} has no bay with an LED"
        return refuse("locate", title, s.pool.name, why, "the serial number tells which disk it is")
    value = "1" if on else "0"
    step = Step(("tee", device.locate), f"write {value} to it", write=(device.locate, value))
    plan = ActionPlan(
        "locate",
        f"{title}: {target.name}",
        (step,),
        consequences=(f"the light of the bay {'goes on' if on else 'goes off'}; nothing else",),
        preconditions=(_same_bay(target, device.locate),),
        # A suspended pool is when somebody looks for the bay.
        urgent=lambda _: True,
    )
    return decide(plan, s)


def _same_bay(target: Target, led: str) -> Precondition:
    def _check(s: Situation) -> str | None:
        device = s.facts.device(target.vdev.path or "")
        moved = device is not None and device.locate != led
        return f"{target.name} is in another bay now; plan again" if moved else None

    return Precondition(f"{target.name} is in the same bay", _check)
