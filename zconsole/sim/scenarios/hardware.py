"""A small machine whose disks are pulled and changed."""

from __future__ import annotations

from zconsole.sim.build import BULK, DAY, Build, Scenario, finished
from zconsole.sim.models import GREEN_3T, RED_4T
from zconsole.sim.state import SCRUB, PoolState

BAYS = 12


def swap(seed: int, start: float) -> tuple[PoolState, ...]:
    """A disk of a 12-bay shelf is failing; swap it for a new one."""
    make = Build(seed, "tank", start)
    disks = make.leaves(10, RED_4T)
    failing = disks[6]
    failing.reads.errors, failing.cksum_errors, failing.slow_ios = 41.0, 3.0, 12.0
    failing.error_rate = (240.0, 0.0, 12.0, 40.0)
    pool = make.pool(
        [make.raidz(2, disks, fill=0.0006)], load=make.load(read=2e6, write=1e6), layout=BULK
    )
    pool.host.slots, pool.host.shelf = BAYS, []
    pool.host.drawer = [make.leaf(RED_4T), make.leaf(GREEN_3T)]
    for leaf in pool.host.drawer:
        leaf.slot = 0
    finished(pool, SCRUB, 6 * DAY, 90.0)
    return (pool,)


SCENARIOS = (Scenario("swap", swap, 60.0),)
