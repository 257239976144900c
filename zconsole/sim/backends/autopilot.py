"""The autopilot of a simulated machine: the keeper's duty, kept in this process by its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.sim.source import World, clock, glance
from zconsole.system.audit import Log
from zconsole.system.host import process_mark
from zconsole.tunables.autopilot import RUNS, Autopilot, PilotClaim, Status, Steered
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import ACTION, HoldOrder, Pilot
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

OWNER = "autopilot"
"""Whose the tunables are that it sets."""
LOOK = 0.5
"""Seconds between two looks whether it is due."""


@dataclass(frozen=True, slots=True)
class _Glances:
    """The pools of a world at the moment it has come to; asking changes nothing there."""

    world: World
    capabilities: Capabilities

    async def sample(self) -> tuple[Raw, ...]:
        """See Source.sample."""
        return tuple(map(glance, self.world.pools))

    async def aclose(self) -> None:
        """See Source.aclose."""


class _Claim(PilotClaim):
    """The place of the only autopilot, in memory."""

    status: Status | None = None

    def tell(self, now: Status) -> None:
        """See PilotClaim.tell."""
        self.status = now

    def drop(self) -> None:
        """See PilotClaim.drop."""
        self.status = None


class SimulatedAutopilots:
    """See Autopilots; it ends with this process."""

    def __init__(self, world: World, control: Control, parameters: Parameters, log: Log) -> None:
        self._world = world
        self._log = log
        self._control = control
        self._parameters = parameters
        self._task: asyncio.Task[None] | None = None
        self._claim = _Claim(Path(), OWNER)

    async def start(self, wanted: HoldOrder) -> None:
        """See Autopilots.start."""
        if self._claim.status is not None:
            raise ZconsoleError(RUNS)
        first, mark = self._world.pools[0], process_mark(os.getpid())
        duty = Autopilot(
            Pilot(self._control, self._parameters, wanted.targets, wanted.below),
            _Glances(self._world, Capabilities("demo")),
            Steered(wanted.targets.words, wanted.below, mark),
            self._log,
            self._claim,
            partial(clock, first),
            lambda: first.now,
        )
        duty.tell()
        target = str(wanted.targets)
        self._log.note(first.now, "begun", kind="autopilot", action=ACTION, target=target)
        self._task = asyncio.create_task(self._keep(duty))

    async def stop(self) -> bool:
        """See Autopilots.stop."""
        task, self._task = self._task, None
        if task is None or self._claim.status is None:
            return False
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return True

    async def status(self) -> Status | None:
        """See Autopilots.status."""
        return self._claim.status

    async def _keep(self, duty: Autopilot) -> None:
        try:
            goes_on = True
            while goes_on:
                await asyncio.sleep(LOOK)
                if duty.due(clock(self._world.pools[0])) <= 0.0:
                    goes_on = await duty.act()
        finally:
            await duty.undo()
