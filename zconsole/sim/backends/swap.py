"""The guided swap on a simulated machine: checklists in memory, and hands that pull and insert."""

from __future__ import annotations

from functools import partial

from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.sim.backends.smart import smart_counts
from zconsole.sim.hands import SimulatedHands
from zconsole.sim.places import machine_leaves
from zconsole.sim.source import World
from zconsole.swap.store import MemorySwapStore, SwapBackend


def simulated_swap(world: World) -> SwapBackend:
    """What leads through swaps of a world."""
    store = MemorySwapStore()
    return SwapBackend(lambda _: store, partial(_smart, world), hands=SimulatedHands(world))


async def _smart(world: World, node: str) -> SmartCounts | None:
    leaves = machine_leaves(world.pools[0])
    disk = next((leaf for leaf in leaves if leaf.present and node == f"/dev/{leaf.disk}"), None)
    return None if disk is None else smart_counts(disk)
