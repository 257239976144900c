"""A simulated scrub whose latencies the test sets.

``python -m tests.unit.tunables.steered_kernel`` runs the keeper on it, with short waits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from zconsole.cli import keeper
from zconsole.pool.model import Pool
from zconsole.sim.source import World
from zconsole.tunables import autopilot, guard
from zconsole.zfs.raw import Raw

BUCKETS = 37


def leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    children = node.get("children", [])
    for child in children:
        yield from leaves(child)
    if not children:
        yield node


class ScrubSource:
    """The scrub of a healthy pool: 1,000 more reads per sample, all in one histogram bucket."""

    def __init__(self, bucket: int = 18, scenario: str = "mirror-scrub") -> None:
        self.bucket = bucket
        self._world = World(scenario, 1)
        self._counts = [0] * BUCKETS

    async def sample(self) -> tuple[Raw, ...]:
        self._counts[self.bucket] += 1000
        raws = self._world.raws()
        for raw in raws:
            for leaf in leaves(raw["libzfs"]["vdev_tree"]):  # type: ignore[index]
                more = {"vdev_sync_r_lat_histo": [0, *self._counts[1:]]}
                more["vdev_disk_r_lat_histo"] = self._counts[:]
                leaf.setdefault("vdev_stats_ex", {}).update(more)
        return raws

    async def aclose(self) -> None:
        return None


async def no_pools() -> tuple[tuple[Pool, ...], bool]:
    """Return the pools of a machine that has none."""
    return (), True


if __name__ == "__main__":
    keeper.LiveSource = ScrubSource  # type: ignore[assignment,misc]
    keeper.live_pools = no_pools
    autopilot.INTERVAL = autopilot.CHECK_SECONDS = keeper.PAUSE = guard.CONSOLES = 0.05
    sys.exit(keeper.main())
