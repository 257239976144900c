"""The guided swap on a simulated machine: hands that pull and insert disks.

Its checklists are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from zconsole.errors import ZconsoleError
from zconsole.pool.chassis import SlotKey
from zconsole.sim import lifecycle, simulation
from zconsole.sim.build import letters, serial
from zconsole.sim.disk import OFFLINE, REMOVED, Leaf
from zconsole.sim.places import machine_leaves, place_of, places
from zconsole.sim.probes import smart_of
from zconsole.sim.source import World
from zconsole.sim.state import Host, PoolState, rng
from zconsole.swap.store import WHILE, SwapBackend, SwapStore
from zconsole.units import duration, size

NEW_DISKS = 2
"""New disks of each model in the drawer, unless the scenario put disks there."""
BEYOND = 60.0
"""Seconds that ``wait`` lets pass after the end of work that runs."""
SHORTEST, STEP, STEPS, LONGEST = 30.0, 900.0, 6, 60 * 86400.0
"""Least and most simulated seconds between checks for that end, steps for them, and limit in
seconds."""
SHARE = 8
"""Divisor of the time passed so far that gives the time to the next check: little time is skipped
after work that ends soon."""


class SimulatedHands:
    """``Hands`` (zconsole.swap.store) for a world, whose pools are all on one machine."""

    def __init__(self, world: World) -> None:
        """Fill an empty drawer with new disks of every model."""
        self._world = world
        self._host.drawer = self._host.drawer or list(_new_disks(world.pools))

    @property
    def _host(self) -> Host:
        return self._world.pools[0].host

    @property
    def _slots(self) -> dict[str, SlotKey]:
        """Slots by the name of their bay."""
        return {bay: key for key, bay in places(self._world.pools[0]).bays.items()}

    def bays(self) -> dict[str, str]:
        """Return a description of the disk in each bay."""
        inside: dict[SlotKey, list[Leaf]] = {}
        for leaf in self._present():
            inside.setdefault(place_of(self._world.pools[0], leaf), []).append(leaf)
        return {bay: self._words(inside.get(key, [])) for bay, key in self._slots.items()}

    def drawer(self) -> tuple[str, ...]:
        """Return a description of each disk in the drawer."""
        lying = self._host.drawer
        return tuple(f"{'pulled' if x.slot else 'new'}: {_described(x)}" for x in lying)

    def pull(self, bay: str) -> str:
        """Pull the disk in ``bay`` and return a sentence that says so.

        Raises ZconsoleError if the bay is empty.
        """
        with self._world.lock:
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
        """Insert disk ``number`` of the drawer into ``bay`` and return a sentence that says so.

        Raises ZconsoleError if the bay is not empty, the number is wrong or the disk doesn't fit.
        """
        with self._world.lock:
            host, slots = self._host, self._slots
            if bay not in slots or self._in_bay(bay):
                raise ZconsoleError(f"{bay} is not an empty bay")
            if not 0 <= number < len(host.drawer):
                raise ZconsoleError(f"there is no disk {number} in the drawer")
            disk = host.drawer[number]
            if disk.is_nvme != (not slots[bay][0]):
                raise ZconsoleError(f"{_described(disk)} doesn't fit into {bay}")
            host.drawer = [leaf for leaf in host.drawer if leaf is not disk]
            # A disk with partitions in pools returns with all its leaves.
            leaves = (leaf for pool in self._world.pools for leaf in pool.leaves())
            in_pools = [leaf for leaf in leaves if leaf.devid == disk.devid]
            for leaf in in_pools or [disk]:
                leaf.present, leaf.slot = True, self._number(slots[bay])
            if not in_pools:
                self._name(disk)
                host.shelf = [*host.shelf, disk]
            return f"{_described(disk)} is in {bay}"

    def wait(self, pool: str) -> str:
        """Simulate until the scans of ``pool`` end, and return a sentence with the time passed.

        The next sample is taken that much later.
        """
        with self._world.lock:
            played = next(each for each in self._world.pools if each.name == pool)
            scan, rebuilds, begun = played.scan, [top.rebuild for top in played.tops], played.t

            def _runs() -> bool:
                is_scan = scan is not None and scan is played.scan and scan.running
                return is_scan or any(each is not None and each.active for each in rebuilds)

            while _runs() and not played.suspended and played.t < begun + LONGEST:
                pause = max(SHORTEST, min(STEP, (played.t - begun) / SHARE))
                simulation.advance(played, played.t + pause, STEPS)
            works = played.t > begun
            seconds = played.t - begun + BEYOND if works else WHILE
            self._world.skipped += seconds
            said = f"time passes: {duration(seconds)}"
            return said if works else f"nothing runs; {said}"

    def _number(self, slot: SlotKey) -> int:
        """Return the number of a slot through all shelves, or the number of the NVMe slot."""
        enclosure, name = slot
        if not enclosure:
            return int(name)
        return [key for key in self._slots.values() if key[0]].index(slot) + 1

    def _name(self, disk: Leaf) -> None:
        """Name a disk that no pool knows: by its bay, and with the next free device letters."""
        known = (*machine_leaves(self._world.pools[0]), *self._host.drawer)
        used = {leaf.disk for leaf in known if leaf is not disk}
        names = (f"nvme{n}n1" if disk.is_nvme else f"sd{letters(n)}" for n in count())
        free = next(name for name in names if name not in used)
        disk.device = f"{free}p1" if disk.is_nvme else f"{free}1"
        disk.named_by(self._host.alias)
        if any(leaf.path == disk.path and leaf.present for leaf in known if leaf is not disk):
            disk.named_by("")  # a disk that was moved keeps its old by-vdev name

    def _in_bay(self, bay: str) -> list[Leaf]:
        """Return the leaves on the disk in a bay: one for each of its partitions."""
        slot, first = self._slots.get(bay), self._world.pools[0]
        return [leaf for leaf in self._present() if place_of(first, leaf) == slot]

    def _present(self) -> Iterator[Leaf]:
        every = machine_leaves(self._world.pools[0])
        return (leaf for leaf in every if leaf.present and leaf.kind == "disk")

    def _words(self, found: Sequence[Leaf]) -> str:
        if not found:
            return ""
        pools = [p.name for p in self._world.pools if any(x in found for x in p.leaves())]
        whose = f", {' and '.join(pools)}" if pools else ""
        return f"{_described(found[0])}{whose}"


def _new_disks(pools: Sequence[PoolState]) -> Iterator[Leaf]:
    """Yield new disks of every model in the pools."""
    disks = (leaf for pool in pools for leaf in pool.leaves() if leaf.kind == "disk")
    models = {leaf.model.name: leaf for leaf in disks}
    draw = rng(pools[0].guid & 0xFFFF_FFFF, "drawer")
    for like in models.values():
        for _ in range(NEW_DISKS):
            devid = f"{like.model.name}_{serial(draw)}"
            guid = draw.getrandbits(63) | 1 << 62
            yield Leaf("", "", guid, like.model, like.device, devid=devid).named_by("")


def _described(leaf: Leaf) -> str:
    return f"{leaf.model.name.partition('-')[2]} {size(leaf.model.size)}, serial {leaf.serial}"


def _gone(pool: PoolState, leaf: Leaf) -> None:
    """Update a pool after a pull: a leaf in use is REMOVED, an OFFLINE one stays OFFLINE."""
    if leaf in pool.in_vdevs():
        if leaf.state != OFFLINE:
            lifecycle.lose(pool, leaf, REMOVED)
    elif leaf in pool.spares:
        leaf.state = REMOVED


def simulated_swap(world: World) -> SwapBackend:
    """Return the backend for guided swaps in a world."""
    store = SwapStore(None, memory={})
    return SwapBackend(lambda _: store, partial(smart_of, world), hands=SimulatedHands(world))
