"""The lights of a simulated machine: its hard disks sit in a chassis with locate LEDs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from zconsole.actions.plan import LightOrder
from zconsole.errors import UsageError
from zconsole.hardware import light
from zconsole.hardware.device import Device
from zconsole.pool.chassis import LeafDisk, SlotKey
from zconsole.sim.disk import Leaf
from zconsole.sim.source import World


def locate_of(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> str | None:
    """The LED file of a disk's slot, by where the disks are; flash sits in slots without."""
    where = disks.get(leaf.path)
    if where is None or leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/{where.enclosure}/{where.slot}/locate"


def _slot_of(device: Device) -> SlotKey:
    """The slot of a device's light. Raises UsageError where it has none."""
    if device.locate is None:
        raise UsageError(f"{device.path} has no bay with a light")
    enclosure, slot = PurePath(device.locate).parts[-3:-1]
    return enclosure, slot


@dataclass(slots=True)
class SimulatedLights:
    """Switches the lights of a world's bays; see LightSwitch."""

    world: World

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        self.tidy()
        if order.device is None:
            self.world.lit.clear()
            return "every light is off"
        device, slot = order.device, _slot_of(order.device)
        name = device.bay or slot[1]
        name = f"{name} (serial {device.serial})" if device.serial else name
        if not order.on:
            return f"the light of {name} {'is' if self.world.lit.pop(slot, None) else 'was'} off"
        self.world.lit[slot] = self.world.pools[0].now + light.LASTING
        return f"the light of {name} is on"

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        now = self.world.pools[0].now
        self.world.lit = {bay: until for bay, until in self.world.lit.items() if until > now}
        return ()
