"""The directories of simulated pools, and what they hold."""

from __future__ import annotations

import asyncio

from zconsole.rebalance.backend import DirectoryListing, Measured
from zconsole.sim.directories import SimulatedDirectory
from zconsole.sim.state import PoolState


class SimulatedExplorer:
    """Directories of the simulated pools, and what they hold."""

    def __init__(self, pools: tuple[PoolState, ...]) -> None:
        self._pools = pools
        self._answers: asyncio.Queue[DirectoryListing | Measured | None] = asyncio.Queue()

    def open(self, path: str) -> None:
        """See Explorer.open."""
        names = children(self._pools, path)
        self._answers.put_nowait(DirectoryListing(path, names))
        for name in names:
            self._answers.put_nowait(measured(self._pools, f"{path}/{name}"))

    def used(self, path: str) -> None:
        """See Explorer.used."""
        self._answers.put_nowait(measured(self._pools, path))

    async def next(self) -> DirectoryListing | Measured | None:
        """See Explorer.next."""
        return await self._answers.get()

    def close(self) -> None:
        """See Explorer.close."""
        self._answers.put_nowait(None)


def factor_of(pool: PoolState) -> float:
    """Allocated bytes a byte of a file takes."""
    tops = pool.normal_tops()
    return sum(t.alloc for t in tops) / (sum(t.alloc / t.inflation for t in tops) or 1.0)


def children(pools: tuple[PoolState, ...], path: str) -> tuple[str, ...]:
    """Names of the directories in one, sorted."""
    paths = [each.path for pool in pools for each in below(pool, path) if each.path != path]
    return tuple(sorted({name[len(path) + 1 :].split("/")[0] for name in paths}))


def measured(pools: tuple[PoolState, ...], path: str) -> Measured:
    """What a directory holds, with everything below it, in bytes of its files."""
    found = [(factor_of(pool), below(pool, path)) for pool in pools]
    size = sum(d.size / factor for factor, held in found for d in held)
    return Measured(path, round(size), sum(d.files for _, held in found for d in held))


def below(pool: PoolState, *roots: str) -> list[SimulatedDirectory]:
    """The directories that are one of these or inside one."""
    inside = tuple(f"{root}/" for root in roots)
    return [each for each in pool.directories if f"{each.path}/".startswith(inside)]
