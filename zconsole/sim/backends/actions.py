"""Actions on simulated pools: the real plans, with simulated facts, kernel and zpool."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zconsole.actions.backend import ActionBackend, Autopilots
from zconsole.actions.executor import Executor
from zconsole.actions.facts import MachineFacts, Refresher, RoundsOnDemand
from zconsole.actions.held_vdevs_keeper import HeldVdevsKeeper
from zconsole.actions.locate import MachineLights
from zconsole.actions.scrub_window import MachineWindows
from zconsole.actions.window_keeper import WindowKeeper
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.light import OFF, ON, Leds, LedSlot, LightDuty, LocateLights
from zconsole.hardware.location import PARTITION
from zconsole.hardware.shingled import shingled
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import Version, parse_version
from zconsole.rebalance.held_vdevs import MachineHolds
from zconsole.sim.commands import execute
from zconsole.sim.disk import Leaf
from zconsole.sim.places import places
from zconsole.sim.source import World, clock, snapshot
from zconsole.sim.state import PoolState
from zconsole.system.audit import MemoryLog
from zconsole.system.host import Clocks, process_mark
from zconsole.system.keeper import END, LOOK, Begin, Keeper, Order
from zconsole.system.process import Completed
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session
from zconsole.tunables import autopilot, guard
from zconsole.tunables.autopilot import Autopilot, PilotClaim, Status
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import MODULE, Parameters
from zconsole.tunables.store import TunableStore
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.rebalance.backend import JobView, RebalanceBackend

DEMO, GUARD, PILOT = "demo", "guard", "autopilot"
"""Marks of the console, its guards and the autopilot, in place of process marks."""
COUNTING = 0.05
"""Seconds per step of making a simulated plan."""


class SimulatedParameters(Parameters):
    """The module parameters of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def era(self) -> str:
        """Name of the scenario, in place of a boot id."""
        return f"demo:{self._world.scenario.name}"

    @property
    def version(self) -> Version:
        """OpenZFS version of the first pool."""
        return parse_version(self._world.pools[0].version)

    def path(self, name: str) -> str:
        """Return a made-up location of a parameter, as messages show it."""
        return f"demo:{MODULE}/parameters/{name}"

    def read(self, name: str) -> int | None:
        """Return the value of a parameter, or None if the simulated kernel lacks it."""
        return self._world.pools[0].tunables.get(name)

    def write(self, name: str, value: int) -> None:
        """Set a parameter for all pools. Raises ZconsoleError if it does not exist."""
        if self.read(name) is None:
            raise ZconsoleError(f"{name}={value}: refused: No such file or directory")
        with self._world.lock:
            for pool in self._world.pools:
                pool.tunables[name] = value


def simulated_facts(world: World) -> MachineFacts:
    """Return the facts about a simulated machine, which sees only its own disks."""

    def _found(_files: tuple[str, ...]) -> tuple[Device, ...]:
        with world.lock:
            return _devices(world.pools)

    return MachineFacts(SimulatedRunner(world), SimulatedParameters(world), _found)


def simulated_backend(world: World) -> ActionBackend:
    """Return the backend of simulated pools; commands, tunables and log stay in this process."""
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
        rebalance_backend=lambda: keeper.rebalance,
        holds=keeper.holds,
        lights=MachineLights(lambda: keeper.lights),
        windows=keeper.windows,
    )


class SimulatedRunner:
    """A runner of zpool and zdb commands on a world; nothing leaves this process."""

    def __init__(self, world: World) -> None:
        """Run commands on ``world`` at its current moment."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run zpool or zdb. Raises FileNotFoundError for any other program."""
        del deadline  # a simulated machine answers at once
        program = argv[0].rsplit("/", 1)[-1] if argv else "program"
        with self.world.lock:
            if program == "zdb":
                return Completed(tuple(argv), 0, _label(self.world.pools, argv[-1]), "")
            if program == "zpool":
                return execute(self.world.pools, argv)
        raise FileNotFoundError(f"the simulated machine has no {program}")


def clocks_of(world: World) -> Clocks:
    """Return the clocks of a simulated machine."""
    first = world.pools[0]
    return Clocks(lambda: first.now, partial(clock, first))


def _lives(_mark: str) -> bool:
    """Return True: everything that is simulated lives in this process."""
    return True


def _label(pools: Sequence[PoolState], path: str) -> str:
    """Return the ``zdb -l`` output for the leaf at ``path``; empty if it is not there."""
    leaves = ((pool, leaf) for pool in pools for leaf in pool.leaves() if leaf.present)
    return next((f"    pool_guid: {pool.guid}\n" for pool, leaf in leaves if leaf.path == path), "")


def _devices(pools: Sequence[PoolState]) -> tuple[Device, ...]:
    """Return the plugged-in devices: those on the shelf, then those in pools with a ZFS label.

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
        shingled=shingled("", leaf.model.name),
        locate=locate_of(leaf, disks),
        enclosure=where.enclosure,
        slot=where.slot,
        bay=where.bay,
        port=where.port,
    )


# Lights of bays


def locate_of(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> str | None:
    """Return the LED file of a disk's slot, or None; slots of flash disks have no LED."""
    where = disks.get(leaf.path)
    if where is None or leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/{where.enclosure}/{where.slot}/locate"


class SimulatedLeds(Leds):
    """The locate LEDs of a simulated machine; they exist only in memory."""

    boot = "demo"

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def find(self, slot: LedSlot, serial: str) -> Path:
        """Return the locate file of a slot, whose address never changes on a simulated machine."""
        del serial
        return Path("/sys/class/enclosure", slot.address, slot.component, "locate")

    def read(self, led: Path) -> str:
        """Return ON or OFF, from the world's set of lit slots."""
        return ON if led.parts[-3:-1] in self._world.lit else OFF

    def write(self, led: Path, value: str) -> None:
        """Switch the LED on or off in the world's set of lit slots."""
        slot = led.parts[-3], led.parts[-2]
        (self._world.lit.add if value == ON else self._world.lit.discard)(slot)


# The keeper

PAUSE = 0.5
"""Seconds between two checks for due duties."""


class SimulatedKeeper:
    """A keeper that runs as a thread instead of a process, with its own event loop and no files.

    The thread ends with the last duty, as the process would, and with the demo.
    """

    def __init__(
        self, world: World, parameters: Parameters, store: TunableStore, log: MemoryLog
    ) -> None:
        clocks, ask = clocks_of(world), simulated_facts(world)
        wall, steady, source = clocks.wall, clocks.steady, partial(_Snapshots, world)
        rounds = RoundsOnDemand(SessionFeed(source(), Session(), 0.0))
        fresh = Refresher(rounds.fresh, ask)
        executor = Executor(SimulatedRunner(world), fresh, log, clock=wall, steady=steady)
        self._claim = _Claim(Path(), PILOT)
        self.windows = MachineWindows(wake=self.wake)
        self.holds = MachineHolds(wake=self.wake)
        self.lights = LocateLights(None, SimulatedLeds(world), wall, log, self.wake)
        held, steered = (Control(parameters, store, log, m, _lives) for m in (GUARD, PILOT))
        orders: dict[str, Begin] = {
            guard.ORDER: lambda order: guard.begin(held, parameters, order, clocks),
            autopilot.ORDER: lambda order: autopilot.begin(
                steered, parameters, log, self._claim, source, order, clocks
            ),
        }
        hours = WindowKeeper(self.windows, None, executor, ask, rounds.frames, steady)
        full = HeldVdevsKeeper(self.holds, None, executor, ask, rounds.frames, self._jobs, steady)
        duties = (LightDuty(self.lights, None, steady), hours, full)
        self._keeper = Keeper(orders, duties, log, steady)
        self._log = log
        self._world = world
        self._loop: asyncio.AbstractEventLoop | None = None
        """Loop of the thread; None while no duty is kept."""
        self._asking = threading.Lock()
        """Held for each order: meanwhile the thread does not end."""

    @cached_property
    def rebalance(self) -> RebalanceBackend:
        """The jobs of the simulated machine."""
        from zconsole.sim.backends.rebalance import SimulatedRebalance

        return SimulatedRebalance(self._world, COUNTING, self._log, self.holds)

    async def _jobs(self) -> Sequence[JobView]:
        return await self.rebalance.jobs(None)

    def status(self) -> Status | None:
        """Return the status of the autopilot, or None if none is running."""
        return self._claim.status

    def end(self) -> bool:
        """End the autopilot; return whether one was running."""
        return bool(self.ask(order=END, duty=Autopilot.name))

    def wake(self) -> None:
        """Tell the keeper to check for new duties."""
        self.ask(order=LOOK)

    def ask(self, **order: Any) -> Any:
        """Run an order in the keeper's thread and return its answer.

        Raises ZconsoleError with the reason if the order fails.
        """
        heard = json.loads(json.dumps(order))  # the same JSON round trip as through the socket
        with self._asking:
            if self._loop is None:
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                threading.Thread(target=self._keep, args=(runner,), daemon=True).start()
            answer = asyncio.run_coroutine_threadsafe(self._obey(heard), self._loop).result()
        if "error" in answer:
            raise ZconsoleError(answer["error"])
        return answer["done"]

    async def _obey(self, order: Order) -> Order:
        answer = await self._keeper.obey(order)
        self._keeper.act_on_due()
        return answer

    def _keep(self, runner: asyncio.Runner) -> None:
        with runner:
            runner.run(self._have_duties_act())

    async def _have_duties_act(self) -> None:
        """Have duties act when they are due, until none is left or the demo has ended."""
        while True:
            self._keeper.act_on_due()
            ends = self._world.is_over or not self._keeper.duties
            if ends and self._asking.acquire(blocking=False):
                self._loop = None
                self._asking.release()
                return
            await asyncio.sleep(PAUSE)


@dataclass(frozen=True, slots=True)
class _Snapshots:
    """A source of samples of a world that leaves the world's events in place."""

    world: World

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the demo."""
        return Capabilities("demo")

    async def sample(self) -> tuple[Raw, ...]:
        """Return every pool as it is now; each sample counts as taken after all earlier actions."""
        with self.world.lock:
            found = tuple(map(snapshot, self.world.pools))
        for raw in found:
            # Plans want samples that began after the last action, and simulated time may stand
            # still between the two.
            raw["began"] = math.nextafter(raw["clock"], math.inf)
        return found

    async def aclose(self) -> None:
        """Do nothing: no resource is held."""


class _Claim(PilotClaim):
    """The claim of the only autopilot, in memory."""

    status: Status | None = None

    def take(self, parameters: Parameters) -> bool:
        """Return whether no autopilot is running."""
        del parameters  # no other process can hold them
        return self.status is None

    def tell(self, now: Status) -> None:
        """Keep the status of the running autopilot."""
        self.status = now

    def drop(self) -> None:
        """Release the claim."""
        self.status = None
