"""The autopilot of a simulated machine: it steers in this process, by simulated time."""

from __future__ import annotations

import asyncio
import contextlib

from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool, Sample
from zconsole.sim.source import World, clock, glance
from zconsole.system.audit import Log
from zconsole.tunables.autopilot import RUNS, Status
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import INTERVAL
from zconsole.tunables.hold_plan import Order
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import ACTION, Pilot, scanning
from zconsole.zfs.decode import decode

OWNER = "autopilot"
"""Whose the tunables are that it sets."""
LOOK = 0.5
"""Seconds between two looks at what somebody else set."""


class SimulatedAutopilots:
    """See Autopilots; it ends with this process."""

    def __init__(self, world: World, control: Control, parameters: Parameters, log: Log) -> None:
        self._world = world
        self._log = log
        self._control = control
        self._parameters = parameters
        self._task: asyncio.Task[None] | None = None
        self._status: Status | None = None

    async def start(self, wanted: Order) -> None:
        """See Autopilots.start."""
        if self._status is not None:
            raise ZconsoleError(RUNS)
        pilot = Pilot(self._control, self._parameters, wanted.targets, wanted.below)
        self._note(pilot, wanted, ())
        self._tell("begun", target=str(wanted.targets))
        self._task = asyncio.create_task(self._steer(pilot, wanted))

    async def stop(self) -> bool:
        """See Autopilots.stop."""
        task, self._task = self._task, None
        if task is None or self._status is None:
            return False
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return True

    async def status(self) -> Status | None:
        """See Autopilots.status."""
        return self._status

    async def _steer(self, pilot: Pilot, wanted: Order) -> None:
        """Steer until the scans end or somebody sets a tunable, and restore."""
        next_at, why = float("-inf"), "told to stop"
        try:
            while not (name := pilot.set_by_others()):
                now = clock(self._world.pools[0])
                if now >= next_at:
                    if not (pools := self._scanning()):
                        why = "no scan runs any more"
                        return
                    pilot.take(pools, now, self._world.pools[0].now)
                    self._note(pilot, wanted, pools)
                    next_at = now + INTERVAL
                await asyncio.sleep(LOOK)
            why = f"somebody else set {name}"
        finally:
            t = self._world.pools[0].now
            pilot.restore(t)
            self._tell("ended", result=why)
            self._status = None

    def _tell(self, event: str, **fields: str) -> None:
        """A line of the log, as a real autopilot writes it."""
        t = self._world.pools[0].now
        self._log.note(t, event, kind="autopilot", action=ACTION, **fields)

    def _scanning(self) -> tuple[Pool, ...]:
        found = (each for pool in self._world.pools for each in decode(glance(pool)))
        return scanning(each.pool for each in found if isinstance(each, Sample))

    def _note(self, pilot: Pilot, wanted: Order, pools: tuple[Pool, ...]) -> None:
        names = tuple(pool.name for pool in pools)
        t, level = self._world.pools[0].now, pilot.steering.level
        self._status = Status(OWNER, t, wanted.targets.words, level, names, OWNER, pilot.slowest)
