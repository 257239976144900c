"""The light of a bay, also of one whose disk is out or no longer in the pool; else blinking."""

from __future__ import annotations

from collections.abc import Mapping

from zconsole.actions.locate import BY_SERIAL, blink_doubts, blinking_effects, light_effects
from zconsole.actions.plan import (
    ActionPlan,
    LightOrder,
    Precondition,
    Situation,
    Step,
    decide,
    refuse,
)
from zconsole.actions.target import find
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


def can_blink(disk: SwapDisk) -> bool:
    """Whether reads may make the disk blink, where its bay has no light."""
    return bool(disk.node) and not disk.light


def plan_blink(s: Situation, disk: SwapDisk, busy: Mapping[str, float]) -> ActionPlan:
    """Make a disk blink by short reads; ``busy``: the disks that do I/O now, with their share."""
    title = f"Make {disk.words} blink"
    device = device_of(disk, s.facts.devices)
    if device is None or not device.node:
        why = "the system no longer sees it"
        return refuse("blink", title, s.pool.name, why, BY_SERIAL)
    target = find(s.pool, disk.key)
    state = target.vdev.state if target is not None else ""
    step = Step(
        ("zconsole", "light", "blink", device.path),
        f"read {device.node} in bursts",
        light=LightOrder(True, device, blink=True),
    )
    plan = ActionPlan(
        "blink",
        title,
        (step,),
        consequences=blinking_effects(),
        warnings=blink_doubts(disk.name, state, device, busy),
        preconditions=(_same_node(disk, device.node),),
        urgent=lambda _: True,
    )
    return decide(plan, s)


def blinking_ends(disk: SwapDisk) -> LightOrder:
    """The order that ends the blinking of a disk, also of one that is out."""
    return LightOrder(False, _remembered(disk), blink=True)


def _same_node(disk: SwapDisk, node: str) -> Precondition:
    """The disk is still this node: udev may give disks other nodes."""

    def _check(s: Situation) -> str | None:
        device = device_of(disk, s.facts.devices)
        if device is not None and device.node == node:
            return None
        return f"{disk.mark or disk.name} is no longer {node}; plan again"

    return Precondition(f"{disk.name} is still {node}", _check)


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
