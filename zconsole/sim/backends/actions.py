"""Acting on the simulated pools: the same plans, with facts, kernel and zpool simulated."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zconsole.actions.backend import ActionBackend, Autopilots
from zconsole.actions.executor import Executor
from zconsole.actions.facts import MachineFacts
from zconsole.actions.locate import MachineLights
from zconsole.actions.refresh import Refresher, RoundsOnDemand
from zconsole.actions.scrub_window import MachineWindows
from zconsole.actions.window_keeper import WindowKeeper
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.light import OFF, ON, Leds, LedSlot, LightDuty, LocateLights
from zconsole.hardware.location import PARTITION
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Version, parse_version
from zconsole.sim.commands import execute
from zconsole.sim.disk import Leaf
from zconsole.sim.places import places
from zconsole.sim.source import World, clock, glance
from zconsole.sim.state import PoolState
from zconsole.system.audit import MemoryLog
from zconsole.system.host import Clocks, process_mark
from zconsole.system.keeper import END, LOOK, Begin, Keeper, Order
from zconsole.system.process import Completed
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session
from zconsole.tunables import autopilot, guard
from zconsole.tunables.autopilot import RUNS, Autopilot, PilotClaim, Status
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import TunableStore
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend

DEMO, GUARD, PILOT = "demo", "guard", "autopilot"
"""Marks of the console, its guards and the autopilot, in place of those of processes."""
COUNTING = 0.05
"""Seconds that a step of making a simulated plan takes."""


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


def simulated_facts(world: World) -> MachineFacts:
    """The facts about a simulated machine, which has no disks but its own."""
    runner, parameters = SimulatedRunner(world), SimulatedParameters(world)
    return MachineFacts(runner, parameters, lambda _: _devices(world.pools))


def simulated_backend(world: World) -> ActionBackend:
    """The backend of simulated pools: its commands, tunables and log stay in this process."""
    parameters, log, store = SimulatedParameters(world), MemoryLog(), TunableStore(None, PILOT)
    control = Control(parameters, store, log, DEMO, _lives)
    keeper, clocks = SimulatedKeeper(world, parameters, store, log), clocks_of(world)
    mark, runner = process_mark(os.getpid()), SimulatedRunner(world)
    return ActionBackend(
        runner,
        runner,
        simulated_facts(world),
        log,
        parameters,
        control,
        Autopilots(control, mark, keeper.ask, keeper.end, keeper.status, clocks.wall),
        clock=clocks.wall,
        steady=clocks.steady,
        rebalance_backend=lambda: _rebalance_backend(world, log),
        lights=MachineLights(lambda: keeper.lights),
        windows=keeper.windows,
    )


class SimulatedRunner:
    """Runs zpool and zdb on a world; nothing leaves the process."""

    def __init__(self, world: World) -> None:
        """``world`` is what the commands act on, at the moment it has come to."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run. Raises FileNotFoundError for any other program."""
        del deadline  # a simulated machine answers at once
        program = argv[0].rsplit("/", 1)[-1] if argv else "program"
        if program == "zdb":
            return Completed(tuple(argv), 0, _label(self.world.pools, argv[-1]), "")
        if program != "zpool":
            raise FileNotFoundError(f"the simulated machine has no {program}")
        return execute(self.world.pools, argv)


def clocks_of(world: World) -> Clocks:
    """The clocks of a simulated machine."""
    first = world.pools[0]
    return Clocks(lambda: first.now, partial(clock, first))


def _lives(_mark: str) -> bool:
    """Whether the process of a mark runs: all that is simulated is in this one."""
    return True


def _rebalance_backend(world: World, log: MemoryLog) -> RebalanceBackend:
    from zconsole.sim.backends.rebalance import SimulatedRebalance

    return SimulatedRebalance(world, COUNTING, log)


def _label(pools: Sequence[PoolState], path: str) -> str:
    """What ``zdb -l`` prints of the leaf at ``path``; nothing of one that is not there."""
    leaves = ((pool, leaf) for pool in pools for leaf in pool.leaves() if leaf.present)
    return next((f"    pool_guid: {pool.guid}\n" for pool, leaf in leaves if leaf.path == path), "")


def _devices(pools: Sequence[PoolState]) -> tuple[Device, ...]:
    """What is plugged in: the shelf, then what is in a pool and so has its label.

    A disk with partitions of several pools is one device.
    """
    found: dict[str, Device] = {}
    for state in pools:
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


# Lights of bays


def locate_of(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> str | None:
    """The LED file of a disk's slot, by where the disks are; flash sits in slots without."""
    where = disks.get(leaf.path)
    if where is None or leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/{where.enclosure}/{where.slot}/locate"


class SimulatedLeds(Leds):
    """The locate LEDs of a simulated machine; a light is on or off, and lasts as the disks do."""

    boot = "demo"

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def find(self, slot: LedSlot, serial: str) -> Path:
        """See Leds.find; the slots of a simulated machine keep their address."""
        del serial
        return Path("/sys/class/enclosure", slot.address, slot.component, "locate")

    def read(self, led: Path) -> str:
        """See Leds.read."""
        return ON if led.parts[-3:-1] in self._world.lit else OFF

    def write(self, led: Path, value: str) -> None:
        """See Leds.write."""
        slot = led.parts[-3], led.parts[-2]
        (self._world.lit.add if value == ON else self._world.lit.discard)(slot)


# The keeper

PAUSE = 0.5
"""Seconds between two looks whether a duty is due."""


class SimulatedKeeper:
    """A thread instead of a process, with its own event loop; what is kept is in memory."""

    def __init__(
        self, world: World, parameters: Parameters, store: TunableStore, log: MemoryLog
    ) -> None:
        clocks, ask = clocks_of(world), simulated_facts(world)
        wall, steady, source = clocks.wall, clocks.steady, partial(_Glances, world)
        rounds = RoundsOnDemand(SessionFeed(source(), Session(), 0.0))
        fresh = Refresher(rounds.fresh, ask)
        executor = Executor(SimulatedRunner(world), fresh, log, clock=wall, steady=steady)
        self._claim = _Claim(Path(), PILOT)
        self.windows = MachineWindows(wake=self.wake)
        self.lights = LocateLights(None, SimulatedLeds(world), wall, log, self.wake)
        held, steered = (Control(parameters, store, log, m, _lives) for m in (GUARD, PILOT))
        orders: dict[str, Begin] = {
            guard.ORDER: lambda order: guard.begin(held, parameters, order, clocks),
            autopilot.ORDER: lambda order: autopilot.begin(
                steered, parameters, log, self._claim, source, order, clocks
            ),
        }
        hours = WindowKeeper(self.windows, None, executor, ask, rounds.frames, steady)
        self._keeper = Keeper(orders, (LightDuty(self.lights, None, steady), hours), log, steady)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def status(self) -> Status | None:
        """Say what the autopilot does; None while none runs."""
        return self._claim.status

    def end(self) -> bool:
        """End the autopilot; whether one ran."""
        return bool(self.ask(order=END, duty=Autopilot.name))

    def wake(self) -> None:
        """Have it look whether there is anything to keep."""
        self.ask(order=LOOK)

    def ask(self, **order: Any) -> Any:
        """Have an order carried out; what it answers. Raises ZconsoleError with the reason."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True, name="keeper").start()
        heard = json.loads(json.dumps(order))  # as the socket has it
        answer = asyncio.run_coroutine_threadsafe(self._obey(heard), self._loop).result()
        if "error" in answer:
            raise ZconsoleError(answer["error"])
        return answer["done"]

    async def _obey(self, order: Order) -> Order:
        answer = await self._keeper.obey(order)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep())
        return answer

    async def _keep(self) -> None:
        while self._keeper.duties:
            self._keeper.begin_due()
            await asyncio.sleep(PAUSE)


@dataclass(frozen=True, slots=True)
class _Glances:
    """The pools of a world at the moment it has come to; asking changes nothing there."""

    world: World

    @property
    def capabilities(self) -> Capabilities:
        """See Source.capabilities."""
        return Capabilities("demo")

    async def sample(self) -> tuple[Raw, ...]:
        """See Source.sample; each pool is looked at after all that has happened."""
        found = tuple(map(glance, self.world.pools))
        for raw in found:
            raw["began"] = math.nextafter(raw["clock"], math.inf)
        return found

    async def aclose(self) -> None:
        """See Source.aclose."""


class _Claim(PilotClaim):
    """The place of the only autopilot, in memory."""

    status: Status | None = None

    def take(self, parameters: Parameters) -> None:
        """See PilotClaim.take."""
        del parameters  # nobody else has them
        if self.status is not None:
            raise ZconsoleError(RUNS)

    def tell(self, now: Status) -> None:
        """See PilotClaim.tell."""
        self.status = now

    def drop(self) -> None:
        """See PilotClaim.drop."""
        self.status = None
