"""Pools with nothing wrong."""

from __future__ import annotations

from zconsole.sim.build import DAY, HOUR, Build, Scenario, finished
from zconsole.sim.models import EXOS_16T, NVME_2T, OPTANE_100G, SSD_1T
from zconsole.sim.state import SCRUB, PoolState


def every_class(seed: int, start: float) -> tuple[PoolState, ...]:
    """An idle pool with every class of vdev."""
    make = Build(seed, "vault", start, bays=True)
    pool = make.pool(
        [
            make.raidz(2, make.leaves(6, EXOS_16T), fill=0.46),
            make.raidz(2, make.leaves(6, EXOS_16T), fill=0.44),
            make.mirror(make.leaves(2, NVME_2T), 0.31, vclass="special", frag=0.22),
            make.mirror(make.leaves(2, SSD_1T), 0.12, vclass="dedup", frag=0.3),
            make.mirror(make.leaves(2, OPTANE_100G), 0.0, vclass="log", frag=0.0),
        ],
        load=make.load(read=3e6, write=2e6, bursty=0.9, sync=0.2, sequential=8.0, kept=0.2),
        spares=[make.leaf(EXOS_16T), make.leaf(EXOS_16T)],
        cache=[make.leaf(SSD_1T)],
    )
    finished(pool, SCRUB, 4 * DAY, 14.2 * HOUR)
    return (pool,)


SCENARIOS = (Scenario("healthy", every_class, 600.0),)
