"""The hands of whoever stands at the simulated shelf: they pull disks, and put others in."""

from __future__ import annotations

from collections.abc import Iterator

from zconsole.errors import ZconsoleError
from zconsole.hardware.hands import BayContent
from zconsole.sim import lifecycle
from zconsole.sim.disk import OFFLINE, REMOVED, Leaf
from zconsole.sim.source import World
from zconsole.sim.state import Host, PoolState
from zconsole.units import size


class SimulatedHands:
    """See ``zconsole.hardware.hands.Hands``; acts on the machine of the first pool."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _host(self) -> Host:
        return self._world.pools[0].host

    def bays(self) -> tuple[BayContent, ...]:
        """See Hands.bays; of the first shelf."""
        return tuple(BayContent(bay, self._words(bay)) for bay in self._host.bays)

    def drawer(self) -> tuple[str, ...]:
        """See Hands.drawer."""
        return tuple(_described(leaf) for leaf in self._host.drawer)

    def pull(self, bay: str) -> str:
        """See Hands.pull."""
        leaves = self._in_bay(bay)
        if not leaves:
            raise ZconsoleError(f"{bay} is empty")
        for leaf in leaves:
            leaf.present = False
            for pool in self._world.pools:
                _gone(pool, leaf)
        host = self._host
        host.shelf = [x for x in host.shelf if x not in leaves]
        host.drawer = [*host.drawer, leaves[0]]
        return f"{_described(leaves[0])} is out of {bay}"

    def insert(self, number: int, bay: str) -> str:
        """See Hands.insert."""
        host = self._host
        if bay not in host.bays or self._in_bay(bay):
            raise ZconsoleError(f"{bay} is not an empty bay")
        if not 0 <= number < len(host.drawer):
            raise ZconsoleError(f"there is no disk {number} in the drawer")
        disk = host.drawer[number]
        host.drawer = [leaf for leaf in host.drawer if leaf is not disk]
        in_pools = [leaf for leaf in self._of_pools() if leaf.devid == disk.devid]
        for leaf in in_pools or [disk]:
            leaf.present, leaf.slot = True, host.bays.index(bay) + 1
        if not in_pools:
            host.shelf = [*host.shelf, disk]
        return f"{_described(disk)} is in {bay}"

    def _in_bay(self, bay: str) -> list[Leaf]:
        """The leaves on the disk in a bay: one for each of its partitions."""
        every = (*self._of_pools(), *self._host.shelf)
        return [leaf for leaf in every if leaf.present and slot_name(leaf.slot) == bay]

    def _of_pools(self) -> Iterator[Leaf]:
        for pool in self._world.pools:
            yield from pool.leaves()

    def _words(self, bay: str) -> str:
        found = self._in_bay(bay)
        pools = [p.name for p in self._world.pools if any(x in found for x in p.leaves())]
        whose = f", {' and '.join(pools)}" if pools else ""
        return f"{_described(found[0])}{whose}" if found else ""


def slot_name(number: int) -> str:
    """What the shelf calls its slot of this number."""
    return f"Slot {number:02d}"


def _described(leaf: Leaf) -> str:
    return f"{leaf.model.name.partition('-')[2]} {size(leaf.model.size)}, serial {leaf.serial}"


def _gone(pool: PoolState, leaf: Leaf) -> None:
    """What a pool sees of it: a leaf in use is REMOVED, one that was offline stays so."""
    if any(leaf is x for top in pool.tops for x in top.leaves()):
        if leaf.state != OFFLINE:
            lifecycle.lose(pool, leaf, REMOVED)
    elif any(leaf is spare for spare in pool.spares):
        leaf.state = REMOVED
