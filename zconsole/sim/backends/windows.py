"""Hours of scrubs on simulated pools: the same decisions, at each step of simulated time."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.errors import NotFoundError
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.sim.hours import keep_hours
from zconsole.sim.source import World


@dataclass(slots=True)
class SimulatedWindows:
    """See WindowSwitch. What keeps to the hours is part of the simulated pool."""

    world: World

    def switch(self, order: ScrubWindow) -> str:
        """See WindowSwitch.switch."""
        pool = next((p for p in self.world.pools if str(p.guid) == order.guid), None)
        if pool is None:
            raise NotFoundError(f"no pool {order.pool}")
        pool.hours = order if order.hours else None
        if pool.hours is not None:
            keep_hours(pool)
        return order.ordered

    def windows(self) -> tuple[ScrubWindow, ...]:
        """See WindowSwitch.windows."""
        return tuple(pool.hours for pool in self.world.pools if pool.hours is not None)

    def resume(self) -> None:
        """See WindowSwitch.resume: a simulated machine never reboots."""
