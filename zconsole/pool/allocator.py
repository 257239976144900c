"""Model of the allocator: where rewritten blocks will be.

The allocator gives each vdev new writes in proportion to its free bytes, up to OpenZFS 2.3
multiplied by its data disks (metaslab_group_alloc_update, module/zfs/metaslab.c). A rewritten block
leaves its vdev and is placed like a new one, so one pass never balances completely. Its raw bytes
depend on the parity of the new vdev; its data bytes stay the same.

Writes that keep the disks busy are shared by the vdevs' speed instead (``balance.balance``). Which
of the two holds depends on the load, so the functions predict either: ``busy`` selects the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zconsole.pool.model import Version

MASTER = (2, 4, 99)
"""Version of builds of master in 2026; the table of hazards has only releases.

Those from d65015938e (2026-05-07) to before 77e64d86e8 (2026-06-09) hang the pool when
``allocating`` is set: zfs_ioc_vdev_set_props holds SCL_CONFIG while spa_vdev_noalloc waits to write
it (#18637). No release does, seen in 2.2.0 to 2.4.4.
"""


def why_unsettable(version: Version) -> str | None:
    """Return why the vdev property ``allocating`` can't be set (vdevprops(7)); None if it can."""
    if version < (2, 2):
        return "setting allocating needs OpenZFS 2.2 or later"
    if version[:3] == MASTER:
        return "setting allocating hangs the pool in builds of OpenZFS from May 2026: use a release"
    return None


LEVEL = 0.05
"""Spread that counts as even."""
STEPS = 200
"""Simulation steps for the whole amount; beyond 100 the result changes by less than 0.001."""


class Space(NamedTuple):
    """One normal-class top-level vdev, in raw bytes (parity included)."""

    name: str
    size: int
    alloc: float
    weight: float = 1.0
    """Weight of a free byte: data disks up to 2.3, 1 from 2.4; 0 if it takes no new writes."""
    data: float = 1.0
    """Share of its bytes that is not parity."""
    disks: int = 1
    """Number of its devices."""
    speed: float = 0.0
    """How many disks take its raw bytes at once; 0 if unknown."""

    @property
    def fill(self) -> float:
        """Share of the space that is allocated, 0…1."""
        return self.alloc / self.size if self.size else 0.0

    @property
    def free(self) -> float:
        """Raw bytes not allocated."""
        return max(0.0, self.size - self.alloc)


def spread(spaces: Sequence[Space]) -> float:
    """Return the difference between the largest and the smallest fill, 0…1; 0 without vdevs."""
    fills = [space.fill for space in spaces]
    return max(fills) - min(fills) if fills else 0.0


def shares(spaces: Sequence[Space]) -> list[float]:
    """Return the share of the allocated bytes on each vdev."""
    total = sum(space.alloc for space in spaces)
    return [space.alloc / total if total else 0.0 for space in spaces]


def new_write_shares(spaces: Sequence[Space], busy: bool = False) -> list[float]:
    """Return the share of new writes that each vdev gets now; all 0 if nothing is free.

    By free bytes, too, if a speed is unknown.
    """
    weights = [space.free * space.weight for space in spaces]
    if busy and all(space.speed for space in spaces):
        pairs = zip(spaces, weights, strict=True)
        weights = [space.speed if weight else 0.0 for space, weight in pairs]
    total = sum(weights)
    return [weight / total if total else 0.0 for weight in weights]


def data_share(spaces: Sequence[Space], parts: Sequence[float]) -> float:
    """Return the data bytes per raw byte, for raw bytes on the vdevs in these proportions.

    1 if there are none.
    """
    data = sum(space.data * part for space, part in zip(spaces, parts, strict=True))
    return data / sum(parts) if data else 1.0


def by_age(spaces: Sequence[Space], older: float) -> list[float]:
    """Return the share on each vdev of files, ``older`` of which predate the last vdev (0…1)."""
    kept = shares([*spaces[:-1], spaces[-1]._replace(alloc=0.0)])
    recent = new_write_shares(spaces)
    # ``older`` is a share of data: convert both parts to raw bytes where they are.
    times = older / data_share(spaces, kept), (1 - older) / data_share(spaces, recent)
    raw = [times[0] * old + times[1] * new for old, new in zip(kept, recent, strict=True)]
    return [each / sum(raw) if any(raw) else 0.0 for each in raw]


def rewritten(
    spaces: Sequence[Space],
    raw: float,
    source: Sequence[float] | None = None,
    pinned: float = 0.0,
    busy: bool = False,
) -> list[Space]:
    """Return the vdevs after rewriting ``raw`` bytes, each byte once.

    ``raw`` is what the blocks take before, ``source`` their share on each vdev (default: that of
    all data), ``pinned`` the share whose old blocks stay (snapshots, clones, checkpoint).
    """
    *_, after = _rewriting(spaces, raw, source, pinned, busy)
    return after


def raw_to_target(
    spaces: Sequence[Space],
    target: float,
    limit: float,
    source: Sequence[float] | None = None,
    pinned: float = 0.0,
    busy: bool = False,
) -> float | None:
    """Return the raw bytes to rewrite until the spread is ``target``; None if over ``limit``."""
    for step, now in enumerate(_rewriting(spaces, limit, source, pinned, busy)):
        if spread(now) <= target:
            return limit * step / STEPS
    return None


def expected_move(spaces: Sequence[Space], raw: float) -> float:
    """Return the raw bytes by which vdevs grow at least after rewriting ``raw`` bytes."""
    afters = [rewritten(spaces, raw, busy=busy) for busy in (False, True)]
    return min(
        sum(max(0.0, b.alloc - a.alloc) for a, b in zip(spaces, after, strict=True))
        for after in afters
    )


def _rewriting(
    spaces: Sequence[Space],
    raw: float,
    source: Sequence[float] | None,
    pinned: float,
    busy: bool,
) -> Iterator[list[Space]]:
    """Yield the vdevs before rewriting ``raw`` bytes, then after each of STEPS equal parts.

    Every part changes the free space, which decides where the next one goes.
    """
    now, taken, part = list(spaces), shares(spaces) if source is None else source, raw / STEPS
    yield now
    for _ in range(STEPS if raw > 0 else 0):
        given = new_write_shares(now, busy)
        # The same data takes more or fewer raw bytes if the parity of its new vdev differs.
        grows = data_share(now, taken) / data_share(now, given)
        now = [
            space._replace(alloc=max(0.0, space.alloc + part * (grows * new - (1 - pinned) * old)))
            for space, new, old in zip(now, given, taken, strict=True)
        ]
        yield now
