"""Whole swaps played on the simulated shelf, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.records import replace
from tests.worlds import world_of
from zconsole.actions.executor import ExecutionEvent, Executor
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.diagnosis.device_errors.faults import DeviceFault, SmartCounts
from zconsole.hardware.device import Device
from zconsole.pool.model import Sample
from zconsole.sim import commands
from zconsole.sim.backends.actions import SimulatedRunner, simulated_backend, simulated_facts
from zconsole.sim.backends.swap import SimulatedHands
from zconsole.sim.build import Build
from zconsole.sim.disk import RED_4T, SSD_400G, Leaf
from zconsole.sim.places import places, slot_name
from zconsole.sim.source import World, clock, raw
from zconsole.sim.state import PoolState
from zconsole.swap.choice import SwapChoice, choose
from zconsole.swap.disk import REPLACE_FIRST, Checklist, MachineView
from zconsole.swap.several import started
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import Guide, SwapStore, is_own
from zconsole.system.audit import MemoryLog
from zconsole.zfs.decode.decoder import decode

OLD, WRONG, EMPTY = "Slot 07", "Slot 06", "Slot 11"
NEW, SMALL = 0, 1
"""Numbers of disks in the drawer."""


@dataclass
class Play:
    """One machine, one checklist, one person at the shelf."""

    world: World = field(default_factory=lambda: world_of("swap"))
    store: SwapStore = field(default_factory=lambda: SwapStore(None, memory={}))
    faults: tuple[DeviceFault, ...] = ()
    smart: Mapping[str, SmartCounts] = field(default_factory=dict)
    boot: str = "first"
    lights: bool = False
    """Whether its bays have lights."""
    devices: Callable[[tuple[Device, ...]], tuple[Device, ...]] = lambda found: found
    """Changes the devices that the machine shows."""
    guide: Guide | None = None
    elapsed: float = 0.0
    steps: list[str] = field(default_factory=list)
    """Current steps so far, in order."""
    last: dict[str, Situation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hands = SimulatedHands(self.world)
        self._facts = simulated_facts(self.world)
        self.log = MemoryLog()
        self.led = simulated_backend(self.world).lights

    @property
    def pool(self) -> PoolState:
        return self.world.pools[0]

    @property
    def now(self) -> float:
        return self.pool.now

    def wait(self, seconds: float) -> None:
        self.elapsed += seconds
        self.world.advance(self.elapsed)

    def leaf(self, bay: str = OLD) -> Leaf:
        return next(leaf for leaf in self.pool.leaves() if slot_name(leaf.slot) == bay)

    def situation(self, pool: PoolState) -> Situation:
        found = raw(pool)
        suspended = pool.suspended
        if not suspended:
            (sample,) = decode(found)
            assert isinstance(sample, Sample)
            self.last[pool.name] = Situation(sample.pool)
        known = self.last[pool.name].pool
        facts: Facts = asyncio.run(self._facts(known, suspended))
        facts = Facts(
            **{n: getattr(facts, n) for n in facts.__slots__ if n != "devices"},
            devices=self.devices(tuple(map(self._lightless, facts.devices))),
        )
        return Situation(known, facts, pool.now, suspended, clock(pool) + 1e-6)

    def _lightless(self, device: Device) -> Device:
        return device if self.lights else replace(device, locate=None)

    def view(self) -> MachineView:
        every = [self.situation(pool) for pool in self.world.pools]
        guide = self.guide
        first = next(s for s in every if guide is None or is_own(guide.checklist, s))
        others = tuple(s for s in every if s is not first)
        return MachineView(
            first,
            others,
            self.faults,
            self.smart,
            boot=self.boot,
            enclosures=places(self.pool).enclosures,
        )

    def choice(self, bay: str = OLD) -> SwapChoice:
        found = choose(self.view(), str(self.leaf(bay).guid))
        assert found is not None
        return found

    def begin(self, mode: str = "", bay: str = OLD) -> SwapStage:
        choice = self.choice(bay)
        # Without a mode, the best way that needs no disk in a free bay.
        way = next(
            way
            for way in choice.ways
            if (way.mode == mode if mode else way.mode != REPLACE_FIRST or way.new is not None)
        )
        self.guide = started(choice, way, self.store, self.now)
        return self.look()

    @property
    def checklist(self) -> Checklist:
        return self.guide.checklist

    def look(self) -> SwapStage:
        stage = self.guide.look(self.view(), self.now)
        if not self.steps or self.steps[-1] != stage.step:
            self.steps.append(stage.step)
        return stage

    def answer(self, name: str) -> SwapStage:
        (answer,) = [answer for answer in self.look().answers if answer.name == name]
        self.guide.answer(self.now, answer)
        return self.look()

    def offline(self) -> None:
        """Begin, and take the old disk offline."""
        self.begin()
        self.do()

    def pulled(self) -> None:
        """Begin, take the old disk offline, and pull it."""
        self.offline()
        self.hands.pull(OLD)

    def inserted(self, number: int = NEW) -> None:
        """Change the old disk for one of the drawer; that is not looked at yet."""
        self.pulled()
        self.look()
        self.hands.insert(number, OLD)

    def wrong(self, bay: str = WRONG) -> SwapStage:
        """Take the old disk offline, then pull another one."""
        self.offline()
        self.hands.pull(bay)
        return self.look()

    def put_back(self, bay: str = WRONG, into: str = "") -> SwapStage:
        """Insert the disk that was pulled from a bay into it again, or ``into`` another one."""
        was_in = [leaf.slot and slot_name(leaf.slot) for leaf in self.pool.host.drawer]
        self.hands.insert(was_in.index(bay), into or bay)
        return self.look()

    def moved(self) -> SwapStage:
        """Pull a wrong disk and the old one, put the wrong one into the old one's bay, fill it."""
        self.wrong()
        self.hands.pull(OLD)
        self.look()
        self.put_back(into=OLD)
        self.run_alarm()
        return self.refilled()

    def replaced_elsewhere(self) -> None:
        """Have ZED, or another operator, replace the old disk by the newest one of no pool."""
        commands.replace(self.pool, str(self.leaf().guid), self.pool.host.shelf[-1].path)

    def shows(self, bay: str, **changes: object) -> None:
        """Have the machine show the disk of a bay with other facts."""
        self.devices = lambda found: tuple(
            replace(device, **changes) if device.bay == bay else device for device in found
        )

    def exchanged(self) -> SwapStage:
        """Pull the old disk, insert the new one, replace and wait for the resilver."""
        self.hands.pull(OLD)
        self.look()
        self.hands.insert(NEW, OLD)
        self.do()
        return self.until("scrub")

    def back(self) -> SwapStage:
        stage = self.look()
        if stage.back.plan is not None:
            return self.run(stage, stage.back.plan)
        if stage.back.closes:
            self.guide.close(self.now)
        return self.look()

    def do(self) -> SwapStage:
        """Run the plan of the current stage, which must not be refused."""
        stage = self.look()
        assert stage.plan is not None, stage
        return self.run(stage, stage.plan)

    def run(self, stage: SwapStage, plan: ActionPlan) -> SwapStage:
        assert plan.refused is None, plan.refused
        events = self.execute(plan)
        self.guide.ran(self.now, stage, plan, events)
        assert events[-1].kind == "done", events
        self.wait(1.0)
        return self.look()

    def execute(self, plan: ActionPlan) -> list[ExecutionEvent]:
        executor = Executor(
            SimulatedRunner(self.world),
            _Refresher(self),
            self.log,
            clock=lambda: self.now,
            steady=lambda: clock(self.pool),
            lights=self.led,
        )

        async def _run() -> list[ExecutionEvent]:
            return [event async for event in executor.run(plan, plan.needs_typed)]

        return asyncio.run(_run())

    def run_alarm(self) -> str:
        """Wait for a plan that brings a wrong disk back, and run it; returns its pool."""
        for _ in range(400):
            stage = self.look()
            assert stage.alarm, stage
            if stage.plan is not None:
                self.do()
                return stage.plan.pool
            self.wait(20.0)
        raise AssertionError(f"nothing to run: {self.look()}")

    def until(self, step: str, every: float = 20.0, most: int = 400) -> SwapStage:
        """Wait until a step is current; steps other than waiting fail."""
        for _ in range(most):
            stage = self.look()
            if stage.step == step:
                return stage
            assert stage.waits, f"{stage.step} waits for the operator, not for time: {stage}"
            self.wait(every)
        raise AssertionError(f"never came to {step}: {self.steps}")

    def refilled(self, most: int = 400) -> SwapStage:
        """Wait until nothing is wrong and only the operator's hands are waited for."""
        for _ in range(most):
            stage = self.look()
            if not stage.alarm:
                return stage
            self.wait(20.0)
        raise AssertionError(f"still: {self.look()}")


class _Refresher:
    """Takes new samples of the simulated pool."""

    def __init__(self, play: Play) -> None:
        self._play = play

    async def __call__(self, pool: str, since: float) -> Situation:
        state = next(p for p in self._play.world.pools if p.name == pool)
        return await asyncio.to_thread(self._play.situation, state)

    async def guid(self, pool: str) -> str | None:
        return next((str(p.guid) for p in self._play.world.pools if p.name == pool), None)


def fresh() -> Leaf:
    """Return a further new disk."""
    leaf = Build(7, "more").leaf(RED_4T)
    leaf.slot = 12
    return leaf


WWN_BITS = 0xFF_FFFF_FFFF
"""Bits of a simulated device's GUID that are also its disk's World Wide Name."""


def partitioned(play: Play, bay: str, number: int, leaf: Leaf) -> None:
    """Make a leaf a partition of the disk in a bay."""
    disk = play.leaf(bay)
    leaf.guid = leaf.guid & ~WWN_BITS | disk.guid & WWN_BITS
    leaf.path = f"/dev/disk/by-id/{disk.devid}-part{number}"
    leaf.name, leaf.devid = f"{disk.devid}-part{number}", disk.devid
    leaf.slot, leaf.device = disk.slot, f"{disk.device[:-1]}{number}"


def with_second_pool(play: Play, *bays: str, name: str = "fast") -> PoolState:
    """Create a second pool: a mirror of partitions on the disks in these bays."""
    make = Build(3, name, play.pool.start)
    leaves = make.leaves(len(bays), SSD_400G)
    second = make.pool([make.mirror(leaves, fill=0.01)], host=play.pool.host)
    for bay, leaf in zip(bays, leaves, strict=True):
        partitioned(play, bay, 2, leaf)
    second.t = play.pool.t
    play.pool.host.shelf = []
    partitioned(play, OLD, 1, play.leaf())
    play.world.pools = (play.pool, second)
    return second
