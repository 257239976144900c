"""A simulated scrub whose latencies the test names, for the process of the autopilot.

``python -m tests.unit.tunables.steered_kernel`` is ``zconsole.tunables.autopilot`` over it. Where
the environment has AT_RISK, the answers are slow, and the next failure would lose data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from zconsole.sim.source import World
from zconsole.tunables import autopilot, guard, pilot
from zconsole.zfs.raw import Raw

BUCKETS = 37


def leaves(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    children = node.get("children", [])
    for child in children:
        yield from leaves(child)
    if not children:
        yield node


class ScrubSource:
    """The scrub of a healthy pool: 1,000 more reads a sample, each in this bucket."""

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


if __name__ == "__main__":
    risky = "AT_RISK" in os.environ
    pilot.at_risk = lambda _: risky
    autopilot.LiveSource = partial(ScrubSource, 27 if risky else 18)  # type: ignore[assignment,misc]
    autopilot.INTERVAL = autopilot.LOOK = guard.LOOK = 0.05
    sys.exit(autopilot.main())
