"""The light of a bay, also of one whose disk is out or no longer in the pool."""

from __future__ import annotations

from zconsole.actions.locate import light_effects
from zconsole.actions.plan import (
    ActionPlan,
    LightOrder,
    Precondition,
    Situation,
    Step,
    decide,
)
from zconsole.hardware.device import Device
from zconsole.swap.disk import SwapDisk, device_of


def plan_light(s: Situation, disk: SwapDisk, on: bool) -> ActionPlan:
    """Switch the light of the disk's bay; the disk must have one (``SwapDisk.light``)."""
    word = "on" if on else "off"
    step = Step(
        ("zconsole", "light", word, disk.whole),
        f"switch {disk.light} {word}",
        light=LightOrder(on, _remembered(disk)),
    )
    plan = ActionPlan(
        "locate",
        f"Switch the light of {disk.spot} {word}",
        (step,),
        consequences=light_effects(on),
        preconditions=(_same_bay(disk),),
        # A suspended pool is when somebody looks for the bay.
        urgent=lambda _: True,
    )
    return decide(plan, s)


def _remembered(disk: SwapDisk) -> Device:
    """The disk as it was: its light is found by its serial number, else by its bay."""
    return Device(
        disk.whole, disk.node, serial=disk.serial, bay=disk.bay, locate=disk.light or None
    )


def _same_bay(disk: SwapDisk) -> Precondition:
    """The disk sits in the bay of this light; one that is out leaves its bay where it was."""

    def _check(s: Situation) -> str | None:
        device = device_of(disk, s.facts.devices)
        if device is None or disk.shares_place(device) is not False:
            return None
        return f"{disk.mark or disk.name} is in another bay now: {device.bay or device.port}"

    return Precondition(f"{disk.name} is in the same bay, or out", _check)
