"""Switching the lights of bays for plans."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from zconsole.actions.plan import LightOrder
from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware.device import Device
from zconsole.hardware.light import LASTING, LedSlot, LocateLights, slot_of


class LightSwitch(Protocol):
    """Switches the lights of a machine; every method may take seconds."""

    def switch(self, order: LightOrder) -> str:
        """Do as ordered; returns what came of it, in words. Raises ZconsoleError, OSError."""

    def tidy(self) -> tuple[str, ...]:
        """Put back and light again what is due; see ``LocateLights.tidy``."""


class MachineLights:
    """The lights of this machine."""

    def __init__(self, make: Callable[[], LocateLights] = LocateLights) -> None:
        """``make`` is called once a light is asked for."""
        self._make = make

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        if order.device is None:
            return "; ".join(self._make().unlight_all()) or "no light was on"
        return self._on(order.device) if order.on else self._off(order.device)

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


def _key(slot: LedSlot | None) -> tuple[str, str] | None:
    return None if slot is None else slot.key
