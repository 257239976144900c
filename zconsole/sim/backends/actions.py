"""Acting on the simulated pools: the same plans, with facts, kernel and zpool simulated."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import Facts, LightOrder
from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.errors import NotFoundError, UsageError, ZconsoleError
from zconsole.hardware import light
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.location import PARTITION
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Pool, Version, parse_version
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.sim.commands import execute
from zconsole.sim.disk import Leaf
from zconsole.sim.places import machine_leaves, places
from zconsole.sim.simulation import keep_hours
from zconsole.sim.source import World, clock, glance
from zconsole.sim.state import PoolState
from zconsole.system.audit import Log, MemoryLog
from zconsole.system.host import process_mark
from zconsole.system.process import Completed
from zconsole.timeline.devices import described
from zconsole.timeline.frame import Pairs
from zconsole.tunables.autopilot import RUNS, Autopilot, PilotClaim, Status, Steered
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import ACTION, HoldOrder, Pilot
from zconsole.tunables.store import TunableStore
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend

DEMO, GUARD, OWNER = "demo", "guard", "autopilot"
"""Marks of the console, its guards and the autopilot, in place of those of processes."""
LOOK = 0.5
"""Seconds between two looks whether the autopilot is due."""
COUNTING = 0.05
"""Seconds that a step of making a simulated plan takes."""
FEATURES = (
    "resilver_defer",
    "device_rebuild",
    "head_errlog",
    "raidz_expansion",
    "allocation_classes",
    "device_removal",
)
"""What a simulated pool from 0.8 on has enabled; a plan asks for the version besides."""


class SimulatedParameters(Parameters):
    """The module parameters of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def era(self) -> str:
        """See Parameters.era."""
        return f"demo:{self._world.scenario.name}"

    @property
    def version(self) -> Version:
        """See Parameters.version."""
        return parse_version(self._world.pools[0].version)

    def path(self, name: str) -> str:
        """See Parameters.path."""
        return f"demo:{name}"

    def read(self, name: str) -> int | None:
        """See Parameters.read."""
        return self._world.pools[0].tunables.get(name)

    def write(self, name: str, value: int) -> None:
        """See Parameters.write."""
        if self.read(name) is None:
            raise ZconsoleError(f"{name}={value}: refused: No such file or directory")
        for pool in self._world.pools:
            pool.tunables[name] = value


class SimulatedFacts:
    """The facts about a simulated machine, which has only a shelf of spare disks."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """See Asker."""
        del paths  # a simulated machine has no disks but its own
        state = next((p for p in self._world.pools if p.name == pool.name), self._world.pools[0])
        enabled = "disabled" if state.one_stage else "enabled"
        return Facts(
            version=parse_version(state.version),
            features=dict.fromkeys(FEATURES, enabled),
            properties={
                "autoexpand": "on" if state.autoexpand else "off",
                "guid": str(state.guid),
                "last_scrubbed_txg": str(state.scrubbed_txg),
            },
            parameters=dict(state.tunables),
            devices=_devices(self._world.pools, state),
            labels=_labels(state) if suspended else {},
        )

    async def guid(self, pool: str) -> str | None:
        """See Asker.guid."""
        return next((str(p.guid) for p in self._world.pools if p.name == pool), None)


def simulated_backend(world: World) -> ActionBackend:
    """The backend of simulated pools: its commands, tunables and log stay in this process."""
    parameters, log, store = SimulatedParameters(world), MemoryLog(), TunableStore(None, OWNER)
    control = Control(parameters, store, log, DEMO, _lives)
    pilots = Control(parameters, store, log, OWNER, _lives)
    guards = Control(parameters, store, log, GUARD, _lives)

    async def _freeze(name: str, value: int) -> None:
        guards.set({name: value}, world.pools[0].now, guard=True)

    runner = SimulatedRunner(world)
    return ActionBackend(
        runner,
        runner,
        SimulatedFacts(world),
        log,
        parameters,
        control,
        _freeze,
        SimulatedAutopilots(world, pilots, parameters, log),
        clock=lambda: world.pools[0].now,
        steady=lambda: clock(world.pools[0]),
        rebalance_backend=lambda: _rebalance_backend(world, log),
        lights=SimulatedLights(world),
        windows=SimulatedWindows(world),
    )


class SimulatedRunner:
    """Runs ``zpool …`` argument vectors on a world; nothing leaves the process."""

    def __init__(self, world: World) -> None:
        """``world`` is what the commands act on, at the moment it has come to."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run. Raises FileNotFoundError for any program but zpool."""
        del deadline  # a simulated machine answers at once
        if not argv or argv[0].rsplit("/", 1)[-1] != "zpool":
            program = argv[0] if argv else "program"
            raise FileNotFoundError(f"the simulated machine has no {program}")
        return execute(self.world.pools, argv)


def _lives(_mark: str) -> bool:
    """Whether the process of a mark runs: all that is simulated is in this one."""
    return True


def _rebalance_backend(world: World, log: MemoryLog) -> RebalanceBackend:
    from zconsole.sim.backends.rebalance import SimulatedRebalance

    return SimulatedRebalance(world, COUNTING, log)


def _devices(pools: Sequence[PoolState], first: PoolState) -> tuple[Device, ...]:
    """What is plugged in: the shelf, then what is in a pool and so has its label.

    The pool that asks comes first. A disk with partitions of several pools is one device.
    """
    found: dict[str, Device] = {}
    for state in sorted(pools, key=lambda pool: pool is not first):
        label, disks = Contents(zfs_pool=state.name), places(state).disks
        devices = [_device(leaf, disks) for leaf in state.host.shelf]
        inside = (leaf for leaf in state.leaves() if leaf.present)
        devices += [replace(_device(leaf, disks), contents=label) for leaf in inside]
        for device in devices:
            known = found.setdefault(device.path, device)
            aliases = tuple(dict.fromkeys((*known.aliases, *device.aliases)))
            found[device.path] = replace(known, aliases=aliases)
    return tuple(found.values())


def _device(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> Device:
    where = disks.get(leaf.path, LeafDisk())
    whole = PARTITION.sub("", leaf.path)
    node = f"/dev/{leaf.disk}"
    return Device(
        whole,
        node,
        (leaf.path, f"/dev/{leaf.device}"),
        size=leaf.model.size,
        model=leaf.model.name.partition("-")[2],
        serial=leaf.serial,
        wwn=where.wwn,
        logical=512,
        physical=4096,
        locate=locate_of(leaf, disks),
        enclosure=where.enclosure,
        slot=where.slot,
        bay=where.bay,
        port=where.port,
    )


def _labels(state: PoolState) -> dict[str, str]:
    return {str(leaf.guid): str(state.guid) if leaf.present else "" for leaf in state.leaves()}


def _plugged(world: World, name: str) -> Leaf | None:
    """The disk on the machine of this path, or node of the whole of it."""
    leaves = (leaf for leaf in machine_leaves(world.pools[0]) if leaf.present)
    disks = (leaf for leaf in leaves if leaf.kind == "disk")
    return next((leaf for leaf in disks if name in (leaf.path, f"/dev/{leaf.disk}")), None)


async def smart_of(world: World, name: str) -> SmartCounts | None:
    """What a disk says of itself, by its path or node; None of one that is not there."""
    leaf = _plugged(world, name)
    return None if leaf is None else smart_counts(leaf)


async def probe_results_of(world: World, path: str, _since: float) -> ProbeResults:
    """The counts of the leaf at ``path``; nothing for one that is not there.

    Damaged transfers count as CRC errors, failed requests as sectors replaced or pending.
    """
    return ProbeResults(await smart_of(world, path))


async def details_of(world: World, path: str) -> Pairs:
    """Model, serial, size and sectors of the leaf at ``path``; nothing for one not there."""
    leaf = _plugged(world, path)
    if leaf is None:
        return ()
    facts = {
        "device": leaf.device,
        "model": leaf.model.name.partition("-")[2] or leaf.model.name,
        "serial": leaf.serial,
        "size": str(leaf.model.size),
        "rotational": str(int(not leaf.model.flash)),
        "logical_sector": "512",
        "physical_sector": "4096",
    }
    return described(facts)


def smart_counts(disk: Leaf) -> SmartCounts:
    """What a simulated disk says of itself, by its errors: bad sectors, or a bad cable."""
    bad, damaged = int(disk.reads.errors + disk.writes.errors), int(disk.cksum_errors)
    if damaged > 3 * bad:
        return SmartCounts(passed=True, reallocated=0, pending=0, uncorrectable=0, crc=damaged)
    if disk.model.flash:
        return SmartCounts(passed=True, uncorrectable=bad)
    return SmartCounts(passed=True, reallocated=bad, pending=bad // 8, uncorrectable=0, crc=0)


# Lights of bays, and hours of scrubs


def locate_of(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> str | None:
    """The LED file of a disk's slot, by where the disks are; flash sits in slots without."""
    where = disks.get(leaf.path)
    if where is None or leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/{where.enclosure}/{where.slot}/locate"


@dataclass(slots=True)
class SimulatedLights:
    """Switches the lights of a world's bays; see LightSwitch."""

    world: World

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        self.tidy()
        if order.device is None:
            self.world.lit.clear()
            return "every light is off"
        device = order.device
        if device.locate is None:
            raise UsageError(f"{device.path} has no bay with a light")
        enclosure, name = PurePath(device.locate).parts[-3:-1]
        slot = enclosure, name
        name = device.bay or name
        name = f"{name} (serial {device.serial})" if device.serial else name
        if not order.on:
            return f"the light of {name} {'is' if self.world.lit.pop(slot, None) else 'was'} off"
        self.world.lit[slot] = self.world.pools[0].now + light.LASTING
        return f"the light of {name} is on"

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        now = self.world.pools[0].now
        self.world.lit = {bay: until for bay, until in self.world.lit.items() if until > now}
        return ()


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


# The autopilot


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
    """The keeper's duty kept in this process, by its time; see Autopilots."""

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
