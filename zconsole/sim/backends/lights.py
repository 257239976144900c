"""The lights of a simulated machine: its hard disks sit in a chassis with locate LEDs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zconsole.actions.plan import LightOrder
from zconsole.errors import ZconsoleError
from zconsole.hardware import blink, light
from zconsole.sim.disk import Leaf
from zconsole.sim.source import World


def locate_of(leaf: Leaf) -> str | None:
    """The LED file of a disk's slot; flash sits in slots without."""
    if leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/0:0:8:0/{leaf.device}/locate"


@dataclass(slots=True)
class SimulatedLights:
    """Remembers what is on, by device; see LightSwitch."""

    world: World
    lit: dict[str, float] = field(default_factory=dict)
    """Device to when its light goes off, in simulated epoch seconds."""
    blinking: dict[str, float] = field(default_factory=dict)

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        self.tidy()
        if order.device is None:
            self.lit.clear()
            self.blinking.clear()
            return "every light is off"
        node = order.device.node
        lights, lasting, what = (
            (self.blinking, blink.LASTING, f"{node} blinks")
            if order.blink
            else (self.lit, light.LASTING, f"the light of {node} is on")
        )
        if not order.on:
            return f"the light of {node} {'is' if lights.pop(node, None) else 'was'} off"
        if order.blink and not self._answers(node):
            raise ZconsoleError(f"{node} doesn't answer, so it doesn't blink")
        lights[node] = self.world.pools[0].now + lasting
        return what

    def busy(self) -> Mapping[str, float]:
        """See LightSwitch.busy."""
        leaves = (leaf for pool in self.world.pools for leaf in pool.leaves())
        shares = {leaf.device: min(1.0, leaf.in_flight) for leaf in leaves if leaf.present}
        busy = ((name, share) for name, share in shares.items() if share >= blink.BUSY)
        return dict(sorted(busy, key=lambda pair: -pair[1]))

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        now = self.world.pools[0].now
        for lights in (self.lit, self.blinking):
            for node in [node for node, until in lights.items() if until <= now]:
                del lights[node]
        return ()

    def _answers(self, node: str) -> bool:
        leaves = (leaf for pool in self.world.pools for leaf in (*pool.leaves(), *pool.host.shelf))
        return any(leaf.present for leaf in leaves if f"/dev/{leaf.device}" == node)
