"""Build pools: leaves with stable names, and top-level vdevs with their sizes and contents."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.sim import scan
from zconsole.sim.disk import CANT_OPEN, FAULTED, MIB, OFFLINE, SSD_400G, DiskModel, Leaf
from zconsole.sim.state import (
    FINISHED,
    SCRUB,
    VERSION,
    DataLayout,
    ForegroundLoad,
    Host,
    PoolState,
    SimulatedScan,
    Wobble,
    rng,
)
from zconsole.sim.topology import Group, Member, Top

HOUR, DAY = 3600.0, 86400.0
BULK = DataLayout(block=float(MIB), run=64.0 * MIB, span=24.0 * MIB)
"""Large files that were written once: long runs of large blocks."""

BAY = "bay"
"""Prefix of the bay names on a machine that names disks by their bay."""
_SCRUBBED = 12 * DAY
"""Seconds from a pool's last full scrub to its story, unless the scenario says otherwise."""
_SERIAL = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"


@dataclass(slots=True)
class Build:
    """A pool under construction: hands out names, GUIDs and variation, derived from the seed."""

    seed: int
    name: str
    start: float = 0.0
    """Epoch seconds at which the story begins."""
    random: random.Random = field(init=False)
    bays: bool = False
    """Name disks by their bay, as vdev_id.conf does, instead of by model and serial number."""
    count: int = 0
    flash: int = 0
    models: dict[int, DiskModel] = field(default_factory=dict)
    """GUID to the model of the leaf."""

    def __post_init__(self) -> None:
        self.random = rng(self.seed, self.name)

    def guid(self) -> int:
        """Return a new GUID."""
        # Between 2^62 and 2^63, so that every GUID has 19 digits.
        return self.random.getrandbits(63) | 1 << 62

    def leaf(self, model: DiskModel, bus: str | None = None) -> Leaf:
        """Return a new device of ``model``, up to 2 % faster or slower than the model."""
        number = serial(self.random)
        vary = 1.0 + self.random.uniform(-0.02, 0.02)
        guid = self.guid()
        self.models[guid] = model
        unit = model._replace(outer=model.outer * vary, inner=model.inner * vary)
        devid, device = f"{model.name}_{number}", self._device(model)
        leaf = Leaf("", "", guid, unit, device, devid=devid, slot=len(self.models), bus=bus)
        return leaf.named_by(BAY if self.bays else "")

    def leaves(self, count: int, model: DiskModel, bus: str | None = None) -> list[Leaf]:
        """Return ``count`` new devices of one model."""
        return [self.leaf(model, bus) for _ in range(count)]

    def _device(self, model: DiskModel) -> str:
        if model.name.startswith("nvme"):
            self.flash += 1
            return f"nvme{self.flash - 1}n1p1"
        self.count += 1
        return f"sd{letters(self.count - 1)}1"

    def replacing(self, old: Leaf, new: Leaf, kind: str = "replacing") -> Group:
        """Return a group in which the empty device ``new`` replaces ``old`` (or is its spare)."""
        new.dtl = 1.0
        return Group(kind, self.guid(), [old, new])

    def replaced(
        self, disks: Sequence[Leaf], number: int, model: DiskModel | None = None
    ) -> list[Member]:
        """Return devices of which one is being replaced by a new one, of its model by default."""
        old = disks[number]
        new = self.leaf(model or self.models[old.guid], old.bus)
        return [*disks[:number], self.replacing(old, new), *disks[number + 1 :]]

    def top(
        self,
        kind: str,
        members: Sequence[Member],
        fill: float,
        nparity: int = 0,
        vclass: str = "normal",
        frag: float = 0.1,
    ) -> Top:
        """Return a top-level vdev as large as its smallest device allows, ``fill`` (0…1) full."""
        top = Top(kind, self.guid(), list(members), nparity, vclass, frag=frag)
        top.space = top.usable
        top.alloc = top.synced = top.space * fill
        return top

    def raidz(self, nparity: int, members: Sequence[Member], fill: float, frag: float = 0.1) -> Top:
        """Return a raidz vdev."""
        return self.top("raidz", members, fill, nparity, frag=frag)

    def mirror(
        self, members: Sequence[Member], fill: float, vclass: str = "normal", frag: float = 0.1
    ) -> Top:
        """Return a mirror vdev."""
        return self.top("mirror", members, fill, vclass=vclass, frag=frag)

    def load(self, read: float = 0.0, write: float = 0.0, **rest: float) -> ForegroundLoad:
        """Return foreground load (bytes/s), varied a little by the seed."""
        vary = self.random.uniform(0.95, 1.05)
        wobble = Wobble(rng(self.seed, self.name, "load"), 23.0)
        return ForegroundLoad(wobble, read * vary, write * vary, **rest)

    def pool(
        self,
        tops: Sequence[Top],
        load: ForegroundLoad | None = None,
        layout: DataLayout | None = None,
        host: Host | None = None,
        spares: Sequence[Leaf] = (),
        cache: Sequence[Leaf] = (),
        version: str = VERSION,
    ) -> PoolState:
        """Return the pool itself, with nothing running yet."""
        machine = host or Host()
        largest = max((leaf for top in tops for leaf in top.leaves()), key=lambda x: x.model.size)
        # Every machine has two unused devices, so that replace and add can be tried.
        if not machine.shelf:
            machine.shelf = [self.leaf(self.models[largest.guid]), self.leaf(SSD_400G)]
        machine.alias = BAY if self.bays else ""
        pool = PoolState(
            self.name,
            self.guid(),
            list(tops),
            machine,
            load or self.load(),
            Wobble(rng(self.seed, self.name, "breath"), 9.0),
            layout or DataLayout(),
            version,
            spares=list(spares),
            cache=list(cache),
            start=self.start,
            scrubbed=self.start - _SCRUBBED,
        )
        flash = (leaf.slot for leaf in (*pool.leaves(), *machine.shelf) if leaf.is_nvme)
        machine.flash = tuple(sorted({*machine.flash, *flash}))
        return pool

    def lost(self, leaf: Leaf, state: int = CANT_OPEN, aux: int = 1) -> Leaf:
        """Return ``leaf`` as a device that failed before the story begins."""
        leaf.state, leaf.aux = state, aux
        leaf.present = state in (OFFLINE, FAULTED)
        return leaf


class Scenario(NamedTuple):
    """A named pool to start from."""

    name: str
    pool: str
    story: Callable[[Build], PoolState]
    """Builds the pool of this name with its incidents; other pools share its machine."""
    age: float = 0.0
    """Simulated seconds before the first sample."""
    bays: bool = False
    """Name disks by their bay (``Build.bays``)."""

    def build(self, seed: int, start: float) -> tuple[PoolState, ...]:
        """Return the pools for a seed; ``start`` is the epoch second at which the story begins."""
        return tuple(self.story(Build(seed, self.pool, start, bays=self.bays)).host.pools)

    @property
    def about(self) -> str:
        """Description of the scenario: the docstring of the function that builds it."""
        return (self.story.__doc__ or "").removesuffix(".")


def finished(
    pool: PoolState, function: int, ago: float, took: float, errors: int = 0, repaired: float = 0.0
) -> SimulatedScan:
    """Give ``pool`` a scan that ended ``ago`` seconds before its story begins."""
    past = scan.begin(pool, function)
    # The scan began before the story, so its start is not an event.
    pool.events.clear()
    for queue in past.queues:
        queue.unscanned, queue.queued, queue.issued = 0.0, 0.0, queue.total
    past.state, past.errors, past.processed = FINISHED, errors, repaired
    past.start = past.pass_start = pool.now - ago - took
    past.end = pool.now - ago
    past.txg = pool.txg_at(past.start)
    past.txgs = (0, past.txg)
    if function == SCRUB:
        pool.scrubbed_txg = past.txg
    past.pass_issued = past.issued
    return past


def letters(number: int) -> str:
    """Return device letters as the kernel counts them: a to z, then aa, ab and so on."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(97 + rest) + text
    return text


def serial(draw: random.Random) -> str:
    """Return the serial number of a new disk."""
    return "".join(draw.choice(_SERIAL) for _ in range(8))
