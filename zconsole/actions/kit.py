"""Everything a console needs to act: on this machine, or on a simulated one."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zconsole.actions.audit import Audit, whoami
from zconsole.actions.execute import Log
from zconsole.actions.look import Asker, machine_facts
from zconsole.actions.machine import Machine
from zconsole.sources.runner import LastingRunner, ProcessRunner, Runner
from zconsole.state import StateError, state_dir
from zconsole.tunables import guard
from zconsole.tunables.control import Control
from zconsole.tunables.memory import Memory, process_mark
from zconsole.tunables.parameters import Parameters, SysfsParameters

if TYPE_CHECKING:
    from zconsole.rebalance.running.desk import Desk

Freeze = Callable[[str, int], Awaitable[None]]
"""Sets a guarded tunable for as long as this console lives. Raises ZconsoleError."""

FROZEN = 3600.0
"""Seconds after which frozen scans go on, whatever the console does."""


def live_desk() -> Desk:
    """Rebalance on this machine."""
    from zconsole.rebalance.running.livedesk import LiveDesk

    return LiveDesk()


@dataclass(frozen=True, slots=True)
class Kit:
    """What acts; made anew for each console."""

    runner: Runner
    """Asks the machine; what does not answer in time is ended."""
    hands: Runner
    """Runs what a plan says; that is never cut short."""
    ask: Asker
    log: Log
    parameters: Parameters
    control: Control
    freeze: Freeze
    denied: str = ""
    """Why nothing may be changed here, whatever the source says; empty when it may."""
    clock: Callable[[], float] = time.time
    desk: Callable[[], Desk] = live_desk
    """Makes the console's side of rebalance; loaded once it is wanted."""


@dataclass(slots=True)
class MemoryLog:
    """An audit log that is forgotten: for simulated pools."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def write(self, t: float, event: str, **fields: Any) -> None:
        """See execute.Log."""
        self.records.append({"t": t, "event": event, **fields})


def live_kit(read_only: bool) -> Kit:
    """A kit for this machine; one that may not write says why in ``denied``."""
    runner = ProcessRunner()
    parameters = SysfsParameters()
    denied = "read-only" if read_only else "" if os.geteuid() == 0 else "not root"
    directory = state_dir(create=False)
    if not denied:
        try:
            directory = state_dir(create=True)
        except StateError as error:
            denied = str(error)
    mark = process_mark(os.getpid())

    async def freeze(name: str, value: int) -> None:
        await guard.start(runner, directory, name, value, FROZEN, mark)

    return Kit(
        runner,
        LastingRunner(),
        machine_facts(runner, Machine()),
        Audit(directory, whoami()),
        parameters,
        Control(parameters, Memory(directory), mark),
        freeze,
        denied,
    )
