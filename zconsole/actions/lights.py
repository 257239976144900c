"""Switching lights for plans: the LED of a bay, and disks that blink by reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from zconsole.actions.plan import LightOrder
from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware import blink
from zconsole.hardware.device import Device
from zconsole.hardware.led import LedSlot, slot_of
from zconsole.hardware.light import LASTING, LocateLights
from zconsole.units import counted


class LightSwitch(Protocol):
    """Switches the lights of a machine; every method may take seconds."""

    def switch(self, order: LightOrder) -> str:
        """Do as ordered; returns what came of it, in words. Raises ZconsoleError, OSError."""

    def busy(self) -> Mapping[str, float]:
        """The disks that do I/O now, with the share of time; see ``blink.busy_disks``."""

    def tidy(self) -> tuple[str, ...]:
        """Put back and light again what is due; see ``LocateLights.tidy``."""


class MachineLights:
    """The lights of this machine. Disks blink as long as it is there."""

    def __init__(self, make: Callable[[], LocateLights] = LocateLights) -> None:
        """``make`` is called once a light is asked for."""
        self._make = make
        self._blinker = blink.Blinker()

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        if order.device is None:
            return self._all_off()
        if order.blink:
            return self._blink(order.device.node, order.on)
        return self._on(order.device) if order.on else self._off(order.device)

    def busy(self) -> Mapping[str, float]:
        """See LightSwitch.busy."""
        return blink.busy_disks()

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        return self._make().tidy()

    def _on(self, device: Device) -> str:
        if device.locate is None:
            raise UsageError(f"{device.path} has no bay with a light")
        lights, slot = self._make(), slot_of(device.locate)
        for lit in lights.lit():  # where it was before: another disk may be there now
            if device.serial and lit.serial == device.serial and lit.slot.key != slot.key:
                with suppress(ZconsoleError, OSError):  # tried again once its time is over
                    lights.unlight(lit.slot)
        return lights.light(slot, device.serial, lights.time() + LASTING, device.bay).words

    def _off(self, device: Device) -> str:
        """Put its light back, also where the disk was moved to another bay since it was lit."""
        lights = self._make()
        here = None if device.locate is None else slot_of(device.locate)
        for lit in lights.lit():
            if device.serial and lit.serial == device.serial and lit.slot.key != _key(here):
                return lights.unlight(lit.slot) or ""
        if here is None:
            raise UsageError(f"{device.path} has no bay with a light")
        return lights.force_off(here)

    def _blink(self, node: str, on: bool) -> str:
        if on:
            self._blinker.start(node)
            return f"{node} blinks"
        return f"{node} no longer blinks" if self._blinker.stop(node) else f"{node} wasn't blinking"

    def _all_off(self) -> str:
        stopped = self._blinker.stop_all()
        said = [f"{counted(stopped, 'disk')} stopped blinking"] if stopped else []
        return "; ".join((*said, *self._make().unlight_all())) or "no light was on"


def _key(slot: LedSlot | None) -> tuple[str, str] | None:
    return None if slot is None else slot.key
