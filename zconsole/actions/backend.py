"""The dependencies of actions: for this machine, or for a simulated one."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from zconsole.actions.executor import Executor
from zconsole.actions.facts import MachineFacts, Refresher
from zconsole.actions.locate import MachineLights
from zconsole.actions.scrub_window import MachineWindows
from zconsole.errors import UsageError
from zconsole.hardware.machine import devices
from zconsole.pool.model import Pool
from zconsole.rebalance.held_vdevs import MachineHolds
from zconsole.system import keeper
from zconsole.system.async_process import CommandRunner, LastingRunner, ProcessRunner
from zconsole.system.audit import Log, audit_log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT, process_mark, steady_clock
from zconsole.system.record_file import LockedStore
from zconsole.system.state_dir import change_mark, state_dir
from zconsole.tunables import autopilot, guard
from zconsole.tunables.autopilot import AutopilotOrder, Status, every_pool
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.holds import Setter
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder
from zconsole.tunables.store import TunableStore
from zconsole.zfs.sources.live import LiveSource


@dataclass(frozen=True, slots=True)
class Autopilots:
    """The machine's single autopilot, if it runs; it ends with the console that started it."""

    control: Control
    mark: str | None
    """Process mark of the console."""
    ask: Callable[..., object]
    """Sends an order to the keeper. Raises ZconsoleError."""
    end: Callable[[], bool]
    read: Callable[[], Status | None]
    clock: Callable[[], float] = time.time

    async def start(self, wanted: HoldOrder) -> None:
        """Start the autopilot. Raises ZconsoleError."""
        order = asdict(AutopilotOrder(wanted.targets.words, wanted.below, self.mark))
        await in_daemon_thread(make_way, self.control, self.clock())
        await in_daemon_thread(partial(self.ask, **order))

    async def stop(self) -> bool:
        """Restore the original values and end the autopilot; return whether one was running.

        Raises ZconsoleError.
        """
        return await in_daemon_thread(self.end)

    async def status(self) -> Status | None:
        """Return its status, whoever started it; None if none is running."""
        return await in_daemon_thread(self.read)


def make_way(control: Control, now: float) -> None:
    """Restore what a killed autopilot left, at ``now`` (epoch seconds).

    Raises UsageError if the operator has set a tunable that the autopilot would set: such settings
    are not taken over.
    """
    control.settle(now)
    settings = map(control.setting, LEVERS)
    if ours := [s.tunable.name for s in settings if s.hold and s.hold.by is not Setter.AUTOPILOT]:
        raise UsageError(f"restore {ours[0]} first: zconsole tunables restore {' '.join(ours)}")


if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend


async def live_pools() -> tuple[tuple[Pool, ...], bool]:
    """Return the pools of this machine that answer, and whether these are all of them."""
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
    """Runs the commands of a plan, which are never cut short."""
    ask: MachineFacts
    log: Log
    parameters: Parameters
    control: Control
    autopilots: Autopilots
    denied: str = ""
    """Why nothing may be changed here, even if the source allows it; empty if it may."""
    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = steady_clock
    """Clock of the start times of samples."""
    rebalance_backend: Callable[[], RebalanceBackend] = live_rebalance
    """Makes the console's side of rebalance; imported only when needed."""
    lights: MachineLights = field(default_factory=MachineLights)
    windows: MachineWindows = field(default_factory=MachineWindows)
    holds: MachineHolds = field(default_factory=MachineHolds)
    every_pool: Callable[[], Awaitable[tuple[tuple[Pool, ...], bool]]] = live_pools
    """Returns all pools that answer, and whether these are all, even if the console shows fewer."""
    change_mark: Callable[[], object] | None = None
    """Returns a mark that changes when records of consoles or jobs may have changed.

    It does not read them (``state_dir.change_mark``). If None, they have to be read.
    """

    async def freeze(self, name: str, value: int) -> None:
        """Set a guarded tunable for as long as this console lives. Raises ZconsoleError."""
        order = asdict(guard.GuardOrder(name, value, FROZEN, self.autopilots.mark))
        await in_daemon_thread(partial(self.autopilots.ask, **order))

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
    """Return the backend of this machine; its ``denied`` says why it may not write, if so."""
    runner = ProcessRunner()
    parameters = Parameters()
    denied = "read-only" if read_only else "" if os.geteuid() == 0 else "not root"
    # The directory is created and checked only when something is written: an unusable or hanging
    # one must not keep the operator from clearing a pool.
    directory = state_dir(create=False)
    log = audit_log()
    mark = process_mark(os.getpid())

    ask, end = partial(keeper.ask, directory), partial(autopilot.stop, directory)
    watch = partial(keeper.wake, directory, guard.KEPT)
    control = Control(parameters, TunableStore(directory), log, mark, wake=watch)
    status = partial(autopilot.status, directory, LockedStore(directory))
    return ActionBackend(
        runner,
        LastingRunner(),
        MachineFacts(runner, parameters, partial(devices, ROOT)),
        log,
        parameters,
        control,
        Autopilots(control, mark, ask, end, status),
        denied,
        change_mark=lambda: change_mark(time.time()),
    )
