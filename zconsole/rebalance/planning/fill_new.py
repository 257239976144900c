"""Vdevs that are too full take no new writes while a job runs: ``allocating=off`` (vdevprops(7)).

What moves leaves them for good then; otherwise the allocator puts a part of it back on them.

ZFS takes the whole size of such a vdev out of the pool's space, not only what is free of it
(spa_update_dspace, module/zfs/spa_misc.c): what ``zfs list`` calls available shrinks by that, and
all data of the pool must fit on the other vdevs. ZFS itself refuses only the last vdev that takes
writes (vdev_passivate, module/zfs/vdev_removal.c); with too little space left, every write fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zconsole.pool.allocator import Space, why_unsettable
from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.settings import EVEN, Limits
from zconsole.units import size

LEAST_ROOM = 256 << 20
"""Bytes that must stay usable beyond what is kept free: a batch of the copy engine."""


class FullVdevs(NamedTuple):
    """The vdevs that can be kept from new writes, or why none can."""

    names: tuple[str, ...] = ()
    less_available: int = 0
    """Bytes by which ``zfs list`` shows less available meanwhile."""
    refused: str | None = None

    def kept(self, spaces: Sequence[Space]) -> tuple[Space, ...]:
        """Return the vdevs of a pool while these take no new writes."""
        return tuple(s._replace(weight=0.0) if s.name in self.names else s for s in spaces)


def full_vdevs(pool: PoolFacts, limits: Limits) -> FullVdevs:
    """Choose the vdevs that are fuller than the pool, the fullest first, while space allows."""
    if why := _why_not(pool):
        return FullVdevs(refused=why)
    spaces = pool.spaces
    mean = sum(space.alloc for space in spaces) / (sum(space.size for space in spaces) or 1)
    # Half the spread that counts as even: the target is reached before they are emptier than the
    # mean.
    full = [space for space in spaces if space.fill > mean + EVEN / 2]
    if not full:
        return FullVdevs(refused="no vdev is much fuller than the others")
    usable, names, less = usable_space(pool, limits), list[str](), 0
    for space in sorted(full, key=lambda space: -space.fill):
        taken = round(space.size * space.data)
        if less + taken + LEAST_ROOM <= usable:
            names.append(space.name)
            less += taken
    if not names:
        least = min(round(space.size * space.data) for space in full)
        return FullVdevs(
            refused="the other vdevs can't hold the pool's data: zfs list would show"
            f" {size(least)} less available, and only {size(max(0.0, usable))} is usable beyond"
            " what is kept free"
        )
    return FullVdevs(tuple(names), less)


def usable_space(pool: PoolFacts, limits: Limits) -> float:
    """Bytes available in a pool, reservations taken off, beyond what is kept free."""
    free = pool.number("free") / pool.raw_factor
    has = free if pool.available is None else min(free, pool.available)
    return has - limits.floor * pool.number("size") / pool.raw_factor


def _why_not(pool: PoolFacts) -> str | None:
    """Return why ``allocating`` can't be set on any vdev of this pool; None if it can."""
    if why := why_unsettable(pool.version):
        return why
    if len(pool.spaces) < 2:
        return "the pool has one vdev for data"
    if pool.condition.moving:
        return f"a {pool.condition.moving} is running"
    if idle := [space.name for space in pool.spaces if not space.weight]:
        return f"no new writes go to {', '.join(idle)} already: removed, or allocating=off"
    return None
