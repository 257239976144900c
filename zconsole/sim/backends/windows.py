"""Hours of scrubs on simulated pools: the same decisions, at each step of simulated time."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.actions.plan import WindowOrder
from zconsole.actions.scrub_window import ScrubWindow
from zconsole.errors import NotFoundError
from zconsole.sim.hours import keep_hours
from zconsole.sim.source import World
from zconsole.sim.state import ScrubHours


@dataclass(slots=True)
class SimulatedWindows:
    """See WindowSwitch. What keeps to the hours is part of the simulated pool."""

    world: World

    def switch(self, order: WindowOrder) -> str:
        """See WindowSwitch.switch."""
        pool = next((p for p in self.world.pools if str(p.guid) == order.guid), None)
        if pool is None:
            raise NotFoundError(f"no pool {order.pool}")
        if not order.hours:
            pool.hours = None
            return f"{pool.name} is scrubbed at any hour"
        pool.hours = ScrubHours(order.hours, order.begun, order.paused)
        keep_hours(pool)
        return f"{pool.name} is scrubbed only between {order.hours}"

    def windows(self) -> tuple[ScrubWindow, ...]:
        """See WindowSwitch.windows."""
        pools = ((pool, pool.hours) for pool in self.world.pools)
        return tuple(
            ScrubWindow(pool.name, str(pool.guid), hours.text, hours.begun, hours.paused)
            for pool, hours in pools
            if hours is not None
        )

    def resume(self) -> None:
        """See WindowSwitch.resume: a simulated machine never reboots."""
