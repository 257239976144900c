"""The lights of a simulated machine: its hard disks sit in a chassis with locate LEDs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from zconsole.actions.plan import LightOrder
from zconsole.errors import UsageError, ZconsoleError
from zconsole.hardware import blink, light
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
    """Switches the lights of a world's bays, and makes its disks blink; see LightSwitch."""

    world: World
    blinking: dict[str, float] = field(default_factory=dict)

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        self.tidy()
        if order.device is None:
            self.world.lit.clear()
            self.blinking.clear()
            return "every light is off"
        return (
            self._blink(order.device.node, order.on)
            if order.blink
            else self._light(order.device, order.on)
        )

    def _light(self, device: Device, on: bool) -> str:
        slot = _slot_of(device)
        name = device.bay or slot[1]
        name = f"{name} (serial {device.serial})" if device.serial else name
        if not on:
            return f"the light of {name} {'is' if self.world.lit.pop(slot, None) else 'was'} off"
        self.world.lit[slot] = self.world.pools[0].now + light.LASTING
        return f"the light of {name} is on"

    def _blink(self, node: str, on: bool) -> str:
        if not on:
            stopped = self.blinking.pop(node, None)
            return f"{node} no longer blinks" if stopped else f"{node} wasn't blinking"
        if not self._answers(node):
            raise ZconsoleError(f"{node} doesn't answer, so it doesn't blink")
        self.blinking[node] = self.world.pools[0].now + blink.LASTING
        return f"{node} blinks"

    def busy(self) -> Mapping[str, float]:
        """See LightSwitch.busy."""
        leaves = (leaf for pool in self.world.pools for leaf in pool.leaves())
        shares = {leaf.disk: min(1.0, leaf.in_flight) for leaf in leaves if leaf.present}
        busy = ((name, share) for name, share in shares.items() if share >= blink.BUSY)
        return dict(sorted(busy, key=lambda pair: -pair[1]))

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        now = self.world.pools[0].now
        self.world.lit = {bay: until for bay, until in self.world.lit.items() if until > now}
        self.blinking = {node: until for node, until in self.blinking.items() if until > now}
        return ()

    def _answers(self, node: str) -> bool:
        leaves = (leaf for pool in self.world.pools for leaf in (*pool.leaves(), *pool.host.shelf))
        return any(leaf.present for leaf in leaves if f"/dev/{leaf.disk}" == node)
