"""Pilots on a simulated scrub, for tests."""

from __future__ import annotations

from tests.unit.tunables.steered_kernel import ScrubSource
from zconsole.pool.model import Sample
from zconsole.tunables.pilot import Hours, Pilot, Targets, scanning
from zconsole.zfs.decode import decode

FAST, SLOW = 18, 27
"""Histogram buckets far below and far above 20 ms."""


async def pools(source: ScrubSource):
    found = [each for raw in await source.sample() for each in decode(raw)]
    return scanning(each.pool for each in found if isinstance(each, Sample))


def pilot(kernel, target=0.02, hours: tuple[Hours, ...] = (), below=False, owner="1:1") -> Pilot:
    return Pilot(kernel.console(owner), kernel.parameters, Targets(target, hours), below)


async def flown(kernel, source, rounds=60, target=0.02) -> Pilot:
    found = pilot(kernel, target)
    for i in range(rounds):
        found.take(await pools(source), 20.0 * i, 1000.0 + i)
    return found
