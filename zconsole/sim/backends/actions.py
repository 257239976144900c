"""Acting on the simulated pools: the same plans, with facts and a kernel that are simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zconsole.actions.backend import ActionBackend
from zconsole.actions.device import Contents, Device
from zconsole.actions.plan import Facts
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Pool
from zconsole.pool.version import Version, parse_version
from zconsole.sim.disk import Leaf
from zconsole.sim.source import World, clock
from zconsole.sim.state import PoolState
from zconsole.sim.zpool import SimulatedRunner
from zconsole.system.audit import MemoryLog
from zconsole.tunables.control import Control
from zconsole.tunables.store import VolatileTunableStore

if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend

COUNTING = 0.05
"""Seconds that a step of making a simulated plan takes."""
FEATURES = ("resilver_defer", "device_rebuild", "head_errlog", "raidz_expansion")
"""What a simulated pool from 0.8 on has enabled; a plan asks for the version besides."""


class SimulatedParameters:
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
    """The facts about a simulated machine: its shelf of spare disks is all it has to offer."""

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
            },
            parameters=dict(state.tunables),
            devices=_devices(state),
            labels=_labels(state) if suspended else {},
        )

    async def guid(self, pool: str) -> str | None:
        """See Asker.guid."""
        return next((str(p.guid) for p in self._world.pools if p.name == pool), None)


def simulated_backend(world: World) -> ActionBackend:
    """What acts on simulated pools: its commands, tunables and log stay in this process."""
    parameters, log = SimulatedParameters(world), MemoryLog()
    control = Control(parameters, VolatileTunableStore(), log)

    async def _freeze(name: str, value: int) -> None:
        control.set({name: value}, world.pools[0].now, guard=True)

    runner = SimulatedRunner(world)
    return ActionBackend(
        runner,
        runner,
        SimulatedFacts(world),
        log,
        parameters,
        control,
        _freeze,
        clock=lambda: world.pools[0].now,
        steady=lambda: clock(world.pools[0]),
        rebalance_backend=lambda: _rebalance_backend(world),
    )


def _rebalance_backend(world: World) -> RebalanceBackend:
    from zconsole.sim.backends.rebalance import SimulatedRebalance

    return SimulatedRebalance(world, COUNTING)


def _devices(state: PoolState) -> tuple[Device, ...]:
    """The shelf, then what is in the pool and so has its label."""
    shelf, label = tuple(_device(leaf) for leaf in state.host.shelf), Contents(zfs_pool=state.name)
    return shelf + tuple(replace(_device(leaf), contents=label) for leaf in state.leaves())


def _device(leaf: Leaf) -> Device:
    whole = leaf.path.removesuffix("-part1")
    node = f"/dev/{leaf.device}"
    return Device(
        whole,
        node,
        (leaf.path, node),
        size=leaf.model.size,
        model=leaf.model.name,
        serial=leaf.devid.rpartition("_")[2],
        logical=512,
        physical=4096,
    )


def _labels(state: PoolState) -> dict[str, str]:
    return {str(leaf.guid): str(state.guid) if leaf.present else "" for leaf in state.leaves()}
