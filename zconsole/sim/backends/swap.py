"""The guided swap on a simulated shelf: checklists in memory, and hands that pull and insert."""

from __future__ import annotations

from functools import partial

from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.sim.hands import SimulatedHands
from zconsole.sim.source import World
from zconsole.swap.backend import SwapBackend
from zconsole.swap.store import MemorySwapStore


def simulated_swap(world: World) -> SwapBackend:
    """What leads through swaps of a world; hands only where its machine has bays."""
    store = MemorySwapStore()
    hands = SimulatedHands(world) if world.pools[0].host.bays else None
    return SwapBackend(lambda _: store, partial(_smart, world), hands=hands)


async def _smart(_: World, __: str) -> SmartCounts | None:
    """A simulated disk says nothing of itself beyond its errors."""
    return None
