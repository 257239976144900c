"""Showing where a disk is by the identify LED of its bay (ses(4)).

It is lit for a stated time, then what was found is put back (``hardware/light.py``). Without one,
the serial number on the disk's label tells.
"""

from __future__ import annotations

import dataclasses

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
from zconsole.actions.target import Target, find
from zconsole.hardware import light
from zconsole.hardware.device import Device
from zconsole.pool.topology import FAILED

ON_LABEL = "on its label after S/N or SN, beside a bar code"
"""Where the serial number stands, on disks of every maker."""
BY_SERIAL = f"the serial number tells which disk it is: it stands {ON_LABEL}"


def plan_locate(situation: Situation, key: str, on: bool) -> ActionPlan:
    """Switch the identify LED of a device's bay, where the enclosure has one (ses, sysfs)."""
    target = find(situation.pool, key)
    title = f"Switch the locate LED {'on' if on else 'off'}"
    if target is None:
        return refuse("locate", title, situation.pool.name, must.NOT_THERE)
    device = situation.device_of(target.vdev)
    if device is None or device.locate is None:
        why = f"{target.name} has no bay with an LED"
        return refuse("locate", title, situation.pool.name, why, BY_SERIAL)
    plan = _lit(target, device, device.locate, on)
    doubts = _another_disk(situation, target, device) if on else ()
    return decide(dataclasses.replace(plan, warnings=doubts), situation)


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


def plan_lights_off(situation: Situation) -> ActionPlan:
    """Switch off every light that zconsole lit, of any pool."""
    plan = ActionPlan(
        "locate",
        "Switch off every light that zconsole switched on",
        (Step(("zconsole", "light", "off"), "restore what was found", light=LightOrder(False)),),
        consequences=("each bay's light is restored to what was found",),
        urgent=lambda _: True,
    )
    return decide(plan, situation)


def _step(device: Device, order: LightOrder, place: str) -> Step:
    verb = "on" if order.on else "off"
    return Step(("zconsole", "light", verb, device.path), f"switch {place} {verb}", light=order)


def _another_disk(situation: Situation, target: Target, device: Device) -> tuple[str, ...]:
    """That a failed device's path may name the disk that was put in after it."""
    held = device.contents
    if target.vdev.state not in FAILED or held.unread or held.zfs_pool in ("", situation.pool.name):
        return ()
    serial = f" (serial {device.serial})" if device.serial else ""
    return (
        f"{target.name} is {target.vdev.state}, and the disk there now{serial} has no label of"
        f" {situation.pool.name}: it may be another disk."
        " Compare the serial number before you pull",
    )


def _same_bay(target: Target, led: str) -> Precondition:
    def _check(situation: Situation) -> str | None:
        now = find(situation.pool, target.key)
        device = situation.device_of(now.vdev if now else target.vdev)
        moved = device is not None and device.locate != led
        return f"{target.name} is in another bay now; plan again" if moved else None

    return Precondition(f"{target.name} is in the same bay", _check)
