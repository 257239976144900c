"""Locate a disk by the identify LED of its bay (ses(4)).

The LED is on for a limited time, then its former state is restored (``hardware/light.py``). Without
an LED, the serial number on the disk's label identifies the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

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
from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING, LocateLights, slot_of
from zconsole.pool.model import FAILED

ON_LABEL = "on its label after S/N or SN, beside a bar code"
"""Where to find the serial number, on disks of every maker."""
BY_SERIAL = f"the serial number tells which disk it is: it stands {ON_LABEL}"


def plan_locate(situation: Situation, key: str, on: bool) -> ActionPlan:
    """Plan to switch the identify LED of a device's bay, if the enclosure has one (ses, sysfs)."""
    target = find(situation.pool, key)
    title = f"Switch the locate LED {'on' if on else 'off'}"
    if target is None:
        return refuse("locate", title, situation, must.NOT_THERE)
    device = situation.device_of(target.vdev)
    if device is None or device.locate is None:
        why = f"{target.name} has no bay with an LED"
        return refuse("locate", title, situation, why, BY_SERIAL)
    doubts = _another_disk(situation, target, device) if on else ()
    in_place = _same_bay(target, device.locate)
    return plan_light(situation, f"{title}: {target.name}", device, on, in_place, doubts)


def plan_light(
    situation: Situation,
    title: str,
    device: Device,
    on: bool,
    in_place: Precondition,
    doubts: tuple[str, ...] = (),
) -> ActionPlan:
    """Plan to switch the light of a device's bay, which must have one (``Device.locate``).

    ``in_place``: the condition that the device is still in that bay, as far as can be told.
    """
    word, fault = "on" if on else "off", "the fault LED is left alone"
    effects: tuple[str, ...] = (
        "the light of the bay goes off, whoever switched it on; one lit by zconsole is restored"
        f" to what was found; {fault}",
    )
    if on:
        effects = (
            f"the light of the bay goes on for {LASTING / 3600:g} hours, also over a reboot, or"
            " until you switch it off",
            f"then the state found before is restored; {fault}",
        )
    argv = ("zconsole", "light", word, device.path)
    plan = ActionPlan(
        "locate",
        title,
        (Step(argv, f"switch {device.locate} {word}", light=LightOrder(on, device)),),
        consequences=effects,
        warnings=doubts,
        preconditions=(in_place,),
        # Allowed for a suspended pool, too: that is when an operator looks for the bay.
        urgent=lambda _: True,
    )
    return decide(plan, situation)


def plan_lights_off(situation: Situation) -> ActionPlan:
    """Plan to switch off every light that zconsole switched on, for any pool."""
    plan = ActionPlan(
        "locate",
        "Switch off every light that zconsole switched on",
        (Step(("zconsole", "light", "off"), "restore what was found", light=LightOrder(False)),),
        consequences=("each bay's light is restored to what was found",),
        urgent=lambda _: True,
    )
    return decide(plan, situation)


def _another_disk(situation: Situation, target: Target, device: Device) -> tuple[str, ...]:
    """Return the doubt that a failed device's path may name the disk inserted after it."""
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
    """Require that the device is still in the bay of this LED."""

    def _check(situation: Situation) -> str | None:
        now = find(situation.pool, target.key)
        device = situation.device_of(now.vdev if now else target.vdev)
        moved = device is not None and device.locate != led
        return f"{target.name} is in another bay now; plan again" if moved else None

    return Precondition(f"{target.name} is in the same bay", _check)


@dataclass(frozen=True, slots=True)
class MachineLights:
    """The lights of a machine; every method may take seconds."""

    make: Callable[[], LocateLights] = LocateLights

    def switch(self, order: LightOrder) -> str:
        """Run an order and return its result as a sentence. Raises ZconsoleError, OSError."""
        device, lights = order.device, self.make()
        if device is None:
            return "; ".join(lights.unlight_all()) or "no light was on"
        here = None if device.locate is None else slot_of(device.locate)
        # The bay where the disk was when it was lit: another disk may be there now.
        before = [
            lit.slot
            for lit in lights.lit()
            if device.serial and lit.serial == device.serial
            if here is None or lit.slot.key != here.key
        ]
        if before and not order.on:
            return lights.unlight(before[0]) or ""
        if here is None:
            raise UsageError(f"{device.path} has no bay with a light")
        if not order.on:
            return lights.force_off(here)
        for slot in before:
            with suppress(ZconsoleError, OSError):  # retried when its time is over
                lights.unlight(slot)
        return lights.light(here, device.serial, lights.time() + LASTING, device.bay).words

    def tidy(self) -> tuple[str, ...]:
        """Restore overdue lights and relight others after a reboot; return results as sentences."""
        return self.make().tidy()
