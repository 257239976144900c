"""The dependencies of actions: for this machine, or for a simulated one."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from zconsole.actions.executor import Executor
from zconsole.actions.facts import Asker, MachineFacts
from zconsole.actions.locate import LightSwitch, MachineLights
from zconsole.actions.refresh import Refresher
from zconsole.actions.scrub_window import MachineWindows, WindowSwitch
from zconsole.errors import UsageError
from zconsole.pool.model import Pool
from zconsole.system.async_process import CommandRunner, LastingRunner, ProcessRunner
from zconsole.system.audit import Log, audit_log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import process_mark, steady_clock
from zconsole.system.keeper import wake
from zconsole.system.record_file import LockedStore
from zconsole.system.state_dir import change_mark, state_dir
from zconsole.tunables import autopilot, guard
from zconsole.tunables.autopilot import Status, every_pool
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder
from zconsole.tunables.store import TunableStore
from zconsole.zfs.sources.live import LiveSource


class Autopilots(Protocol):
    """The machine's autopilot for tunables, of which at most one runs."""

    async def start(self, wanted: HoldOrder) -> None:
        """Start the autopilot for the lifetime of this console. Raises ZconsoleError."""

    async def stop(self) -> bool:
        """Restore the original values and stop; return whether one ran. Raises ZconsoleError."""

    async def status(self) -> Status | None:
        """Return the autopilot's status, whoever started it; None if none runs."""


class MachineAutopilots:
    """The autopilot of this machine, which stops with the console that started it."""

    def __init__(self, directory: Path, control: Control, mark: str | None) -> None:
        self._directory = directory
        self._control = control
        self._mark = mark
        self._store = LockedStore(directory)

    async def start(self, wanted: HoldOrder) -> None:
        """Restore what a killed autopilot left, then start one for this console."""
        await in_daemon_thread(make_way, self._control)
        begin = autopilot.start
        await in_daemon_thread(begin, self._directory, wanted, self._mark)

    async def stop(self) -> bool:
        """Stop the autopilot through the state directory, whoever started it."""
        return await in_daemon_thread(lambda: autopilot.stop(self._directory))

    async def status(self) -> Status | None:
        """Read the autopilot's status from the state directory."""
        return await in_daemon_thread(autopilot.status, self._directory, self._store)


def make_way(control: Control) -> None:
    """Restore what a killed autopilot left.

    Raises UsageError if the operator has set a tunable that the autopilot would set: such settings
    are not taken over.
    """
    control.settle(time.time())
    settings = map(control.setting, LEVERS)
    if ours := [each.tunable.name for each in settings if each.ours]:
        raise UsageError(f"restore {ours[0]} first: zconsole tunables restore {' '.join(ours)}")


if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend

Freeze = Callable[[str, int], Awaitable[None]]
"""Sets a guarded tunable for the lifetime of this console. Raises ZconsoleError."""


async def live_pools() -> tuple[tuple[Pool, ...], bool]:
    """Read the pools of this machine that answer, and whether these are all."""
    source = LiveSource()
    try:
        return await every_pool(source)
    finally:
        await source.aclose()


FROZEN = 3600.0
"""Seconds after which frozen scans continue, even if the console has died."""


def live_rebalance() -> RebalanceBackend:
    """Return the rebalance backend of this machine."""
    from zconsole.rebalance.live_backend import LiveRebalance

    return LiveRebalance()


@dataclass(frozen=True, slots=True)
class ActionBackend:
    """The dependencies of actions; created for each console."""

    runner: CommandRunner
    """Runs queries, which are killed at their deadline."""
    command_runner: CommandRunner
    """Runs the commands of plans, which are never killed."""
    ask: Asker
    log: Log
    parameters: Parameters
    control: Control
    freeze: Freeze
    autopilots: Autopilots
    denied: str = ""
    """Why nothing may be changed here, even if the source allows it; empty when it may."""
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = steady_clock
    """The clock of the samples' start times."""
    rebalance_backend: Callable[[], RebalanceBackend] = live_rebalance
    """Creates the rebalance backend; imported only when needed."""
    lights: LightSwitch = field(default_factory=MachineLights)
    windows: WindowSwitch = field(default_factory=MachineWindows)
    every_pool: Callable[[], Awaitable[tuple[tuple[Pool, ...], bool]]] = live_pools
    """Reads all pools that answer, for a console that shows some, and whether these are all."""
    change_mark: Callable[[], object] | None = None
    """Returns a mark that changes when records of consoles or jobs may have changed.

    It does not read them (see ``state_dir.change_mark``). None: they have to be read.
    """

    def executor(self, refresh: Refresher, denied: str = "") -> Executor:
        """Create an executor of plans.

        ``denied``: why it may run none, in addition to ``self.denied``.
        """
        return Executor(
            self.command_runner,
            refresh,
            self.log,
            self.denied or denied,
            self.clock,
            self.steady,
            self.lights,
            self.windows,
        )


def live_backend(read_only: bool) -> ActionBackend:
    """Create the backend of this machine; ``denied`` says why it may not write, if so."""
    runner = ProcessRunner()
    parameters = Parameters()
    denied = "read-only" if read_only else "" if os.geteuid() == 0 else "not root"
    # The directory is created and checked only when something is written: an unusable or hanging
    # one must not keep the operator from clearing a pool.
    directory = state_dir(create=False)
    log = audit_log()
    mark = process_mark(os.getpid())

    async def _freeze(name: str, value: int) -> None:
        wanted = guard.Guarded(name, value, FROZEN, mark)
        await in_daemon_thread(guard.start, directory, wanted)

    watch = partial(wake, directory, guard.KEPT)
    control = Control(parameters, TunableStore(directory), log, mark, wake=watch)
    return ActionBackend(
        runner,
        LastingRunner(),
        MachineFacts(runner),
        log,
        parameters,
        control,
        _freeze,
        MachineAutopilots(directory, control, mark),
        denied,
        change_mark=lambda: change_mark(time.time()),
    )
