"""The autopilot as a console starts and stops it: on this machine, or on a simulated one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from zconsole.errors import UsageError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.patient import Patient
from zconsole.tunables import autopilot
from zconsole.tunables.autopilot import Status
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.pilot import HoldOrder


class Autopilots(Protocol):
    """The one autopilot of a machine, if it runs."""

    async def start(self, wanted: HoldOrder) -> None:
        """Start it, for as long as this console runs. Raises ZconsoleError."""

    async def stop(self) -> bool:
        """Have the originals restored, and end it; whether one ran. Raises ZconsoleError."""

    async def status(self) -> Status | None:
        """What it does, whoever started it; None while none runs."""


class MachineAutopilots:
    """The autopilot of this machine, which ends with the console that started it."""

    def __init__(self, directory: Path, control: Control, mark: str | None) -> None:
        self._directory = directory
        self._control = control
        self._mark = mark
        self._patient = Patient()

    async def start(self, wanted: HoldOrder) -> None:
        """See Autopilots.start."""
        await in_daemon_thread(make_way, self._control)
        begin = autopilot.start
        await in_daemon_thread(begin, self._directory, wanted, self._mark)

    async def stop(self) -> bool:
        """See Autopilots.stop."""
        return await in_daemon_thread(lambda: autopilot.stop(self._directory))

    async def status(self) -> Status | None:
        """See Autopilots.status."""
        return await in_daemon_thread(autopilot.status, self._directory, self._patient)


def make_way(control: Control) -> None:
    """Restore what a killed autopilot left.

    Raises UsageError where a person has set what the next one would set: they are not taken over.
    """
    control.settle(time.time())
    settings = map(control.setting, LEVERS)
    if ours := [each.tunable.name for each in settings if each.ours]:
        raise UsageError(f"restore {ours[0]} first: zconsole tunables restore {' '.join(ours)}")
