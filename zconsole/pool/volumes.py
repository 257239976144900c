"""Volumes (zvols): data that no rebalance moves, as it moves files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from zconsole.pool.allocator import LEVEL, Space
from zconsole.pool.model import Volumes
from zconsole.units import counted, percent

NAMED = 3
"""Most vdevs to name; more are counted."""


@dataclass(frozen=True, slots=True)
class VolumeLimit(Volumes):
    """The volumes of a pool, and how even it can get while they stay where they are."""

    least_spread: float
    """Spread (0…1) that remains at best, with every file where it evens out most."""
    vdevs: tuple[str, ...]
    """The vdevs that stay too full even then, fullest first."""

    @property
    def keeps_uneven(self) -> bool:
        """Whether the pool can't get even without moving volumes."""
        return self.least_spread > LEVEL

    def in_short(self, show: Callable[[float], str]) -> str:
        """Return ``9.46T in 14 volumes``; ``show`` formats a size."""
        return f"{show(self.bytes)} in {counted(self.count, 'volume')}"


def file_bytes(volumes: Volumes | None, spaces: Sequence[Space]) -> float:
    """Return the most raw bytes on the vdevs of a pool that may belong to files.

    A volume takes at least its bytes, and more on a vdev with parity: on which, zfs does not say.
    """
    every = sum(space.alloc for space in spaces)
    if volumes is None:
        return every
    return max(0.0, every - volumes.bytes / max((space.data for space in spaces), default=1.0))


def volume_limit(volumes: Volumes | None, spaces: Sequence[Space]) -> VolumeLimit | None:
    """Derive how even a pool can get by moving files; None if its volumes are unknown.

    Where volumes lie is unknown: this assumes that all files are on the fullest vdevs, from where
    they go to the emptiest. Files that lie elsewhere even out less.
    """
    if volumes is None:
        return None
    files = file_bytes(volumes, spaces)
    rising = sorted((space for space in spaces if space.size), key=lambda space: space.fill)
    falling = rising[::-1]
    # Taking bytes from the fullest brings the first few of them to one fill, the highest that any
    # number of them would get. The emptiest rise to the lowest.
    highest, few = max(_joint_fills(falling, -files), default=(0.0, 0))
    lowest, _ = min(_joint_fills(rising, files), default=(0.0, 0))
    least = max(0.0, highest - lowest)
    names = tuple(space.name for space in falling[:few]) if least else ()
    return VolumeLimit(volumes.count, volumes.bytes, least, names)


def _joint_fills(spaces: Sequence[Space], change: float) -> Iterator[tuple[float, int]]:
    """Yield the fill that the first vdevs have in common after a change in bytes, for each count.

    Each with the count.
    """
    alloc, size = change, 0
    for count, space in enumerate(spaces, 1):
        alloc, size = alloc + space.alloc, size + space.size
        yield alloc / size, count


def volume_sentences(found: VolumeLimit | None, show: Callable[[float], str]) -> Iterator[str]:
    """Say how much lies in volumes, what that leaves of the spread, and how to move them.

    ``show`` formats a size. Nothing without volumes.
    """
    if found is None or not found.count:
        return
    holds = "holds" if found.count == 1 else "hold"
    yield f"{counted(found.count, 'volume')} {holds} {show(found.bytes)}, which no rebalance moves"
    if found.keeps_uneven:
        some = len(found.vdevs) <= NAMED
        full = ", ".join(found.vdevs) if some else counted(len(found.vdevs), "vdev")
        left = f"a spread of at least {percent(found.least_spread, 1)}"
        yield f"moving files leaves {left}: the volumes on {full}"
        yield "to move a volume: zfs send and receive, or the hypervisor's disk move"
