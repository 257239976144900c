"""Showing where a disk is: by the identify LED of its bay (ses(4)), or by making it blink.

An enclosure's LED is lit for a stated time, then what was found is put back
(``hardware/light.py``). Without one, the disk is read in bursts (``hardware/blink.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from zconsole.actions import conditions as must
from zconsole.actions.plan import (
    ActionPlan,
    LightOrder,
    Precondition,
    Situation,
    Step,
    decide,
    refuse,
)
from zconsole.actions.target import FAILED, Target, find
from zconsole.hardware import blink, light
from zconsole.hardware.device import Device
from zconsole.units import percent

BY_SERIAL = "the serial number tells which disk it is"
NAMED = 3
"""Busy disks that are named, the busiest first."""


def plan_locate(s: Situation, key: str, on: bool) -> ActionPlan:
    """Switch the identify LED of a device's bay, where the enclosure has one (ses, sysfs)."""
    target = find(s.pool, key)
    title = f"Switch the locate LED {'on' if on else 'off'}"
    if target is None:
        return refuse("locate", title, s.pool.name, must.NOT_THERE)
    device = s.device_of(target.vdev)
    if device is None or device.locate is None:
        why = f"{target.name} has no bay with an LED"
        return refuse("locate", title, s.pool.name, why, "make it blink by reads", BY_SERIAL)
    plan = _lit(target, device, device.locate, on)
    doubts = _another_disk(s, target, device) if on else ()
    return decide(dataclasses.replace(plan, warnings=doubts), s)


def _lit(target: Target, device: Device, led: str, on: bool) -> ActionPlan:
    return ActionPlan(
        "locate",
        f"Switch the locate LED {'on' if on else 'off'}: {target.name}",
        (_step(device, LightOrder(on, device), led),),
        consequences=light_effects(on),
        preconditions=(_same_bay(target, led),),
        # A suspended pool is when somebody looks for the bay.
        urgent=lambda _: True,
    )


def light_effects(on: bool) -> tuple[str, ...]:
    """What switching the light of a bay does."""
    fault = "the fault LED is left alone"
    if not on:
        return (
            "the light of the bay goes off, whoever switched it on; one lit by zconsole is restored"
            f" to what was found; {fault}",
        )
    return (
        f"the light of the bay goes on for {light.LASTING / 3600:g} hours, also over a reboot, or"
        " until you switch it off",
        f"then the state found before is restored; {fault}",
    )


def plan_blink(s: Situation, key: str, on: bool, busy: Mapping[str, float]) -> ActionPlan:
    """Make a disk blink by reads; ``busy`` has the disks that do I/O now (``busy_disks``)."""
    target = find(s.pool, key)
    title = "Make the disk blink" if on else "Stop the blinking"
    if target is None:
        return refuse("blink", title, s.pool.name, must.NOT_THERE)
    device = s.device_of(target.vdev)
    why = _cannot_blink(target, device)
    if why or device is None:
        return refuse("blink", title, s.pool.name, why, BY_SERIAL)
    plan = ActionPlan(
        "blink",
        f"{title}: {target.name}",
        (_step(device, LightOrder(on, device, blink=True), device.node),),
        consequences=blinking_effects() if on else ("the reads that make it blink end",),
        warnings=(
            *_another_disk(s, target, device),
            *blink_doubts(target.name, target.vdev.state, device, busy),
        )
        if on
        else (),
        preconditions=(
            (must.same_device(s, target.vdev.path or ""), _same_node(target, device.node))
            if on
            else ()
        ),
        urgent=lambda _: True,
    )
    return decide(plan, s)


def plan_lights_off(s: Situation) -> ActionPlan:
    """Switch off every light that zconsole lit, of any pool, and end all blinking from here."""
    plan = ActionPlan(
        "locate",
        "Switch off every light that zconsole switched on",
        (Step(("zconsole", "light", "off"), "restore what was found", light=LightOrder(False)),),
        consequences=("each bay's light is restored to what was found; disks stop blinking",),
        urgent=lambda _: True,
    )
    return decide(plan, s)


def _step(device: Device, order: LightOrder, place: str) -> Step:
    verb = "blink" if order.blink and order.on else "on" if order.on else "off"
    why = f"read {place} in bursts" if verb == "blink" else f"switch {place} {verb}"
    return Step(("zconsole", "light", verb, device.path), why, light=order)


def blinking_effects() -> tuple[str, ...]:
    """What making a disk blink does."""
    return (
        f"the disk is read for half a second, rests for half a second, and so on for"
        f" {blink.LASTING / 60:g} minutes; nothing is written",
        f"up to {blink.READS} small reads a second slow other work on it a little",
        "it ends sooner when you switch it off or quit",
    )


def _cannot_blink(target: Target, device: Device | None) -> str:
    """Why a disk can't blink; empty when it can."""
    if target.vdev.kind == "file" or (device is not None and device.kind == "file"):
        return f"{target.name} is a file: only a disk can blink"
    if device is None or not device.node or target.vdev.state == "REMOVED":
        return f"{target.name} can't blink: the system no longer sees it"
    return ""


def blink_doubts(
    name: str, state: str, device: Device, busy: Mapping[str, float]
) -> tuple[str, ...]:
    """Why a light that blinks, or none that does, may not be this disk's; ``state`` in its pool."""
    doubts = list(filter(None, [busy_doubt(busy, device)]))
    if _others(busy, device).keys() < busy.keys():
        doubts.append("the disk is busy itself: its light may not rest between the reads")
    if state in ("FAULTED", "UNAVAIL"):
        doubts.append(f"{name} is {state}: a failed disk may not answer, and then it can't blink")
    return tuple(doubts)


def busy_doubt(busy: Mapping[str, float], device: Device) -> str:
    """That other disks are busy, so that blinking proves nothing; empty where they are not."""
    others = _others(busy, device)
    if not others:
        return ""
    named = ", ".join(f"{name} {percent(share)}" for name, share in list(others.items())[:NAMED])
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return (
        f"blinking proves nothing now: other disks are busy, too ({named}{more})."
        " Compare the serial number before you pull"
    )


def _others(busy: Mapping[str, float], device: Device) -> dict[str, float]:
    own = (device.node, *device.aliases)
    return {name: share for name, share in busy.items() if f"/dev/{name}" not in own}


def _another_disk(s: Situation, target: Target, device: Device) -> tuple[str, ...]:
    """That a failed device's path may name the disk that was put in after it."""
    held = device.contents
    if target.vdev.state not in FAILED or held.unread or held.zfs_pool in ("", s.pool.name):
        return ()
    serial = f" (serial {device.serial})" if device.serial else ""
    return (
        f"{target.name} is {target.vdev.state}, and the disk there now{serial} has no label of"
        f" {s.pool.name}: it may be another disk. Compare the serial number before you pull",
    )


def _same_node(target: Target, node: str) -> Precondition:
    """The path still leads to the node that is read: udev may give disks other nodes."""

    def _check(s: Situation) -> str | None:
        device = s.facts.device(target.vdev.path or "")
        if device is None or device.node == node:
            return None
        return f"{target.name} is {device.node} now, not {node}; plan again"

    return Precondition(f"{target.name} is still {node}", _check)


def _same_bay(target: Target, led: str) -> Precondition:
    def _check(s: Situation) -> str | None:
        now = find(s.pool, target.key)
        device = s.device_of(now.vdev if now else target.vdev)
        moved = device is not None and device.locate != led
        return f"{target.name} is in another bay now; plan again" if moved else None

    return Precondition(f"{target.name} is in the same bay", _check)
