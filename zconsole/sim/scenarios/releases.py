"""What only newer releases of OpenZFS do."""

from __future__ import annotations

from zconsole.sim.build import BULK, DAY, HOUR, Build, Scenario, finished
from zconsole.sim.disk import FAULTED
from zconsole.sim.models import RED_4T
from zconsole.sim.state import SCRUB, PoolState, Relocation, defaults


def sit_out(seed: int, start: float) -> tuple[PoolState, ...]:
    """OpenZFS 2.4: a slow disk of a raidz2 sits out."""
    make = Build(seed, "tank", start, bays=True)
    disks = make.leaves(6, RED_4T)
    disks[3].slow, disks[3].sitting_out, disks[3].slow_ios = 0.15, True, 1.0
    pool = make.pool(
        [make.raidz(2, disks, fill=0.44)],
        load=make.load(read=3e6, write=1.5e6, bursty=0.6, sequential=4.0),
        layout=BULK,
    )
    pool.tops[0].autosit = True
    pool.version, pool.tunables = "2.4.4", defaults("2.4.4")
    finished(pool, SCRUB, 9 * DAY, 8.1 * HOUR)
    return (pool,)


def stuck(seed: int, start: float) -> tuple[PoolState, ...]:
    """A raidz1 expansion is stuck after a disk failed."""
    make = Build(seed, "nas", start)
    disks = make.leaves(5, RED_4T)
    disks[2] = make.lost(disks[2], state=FAULTED, aux=11)
    top = make.raidz(1, disks, fill=0.48)
    top.members.append(make.leaf(RED_4T))
    pool = make.pool([top], load=make.load(read=400e3, write=200e3), layout=BULK)
    pool.expansion = Relocation(
        0, pool.now - 5 * HOUR, top.alloc, moved=top.alloc * 0.37, held=True
    )
    return (pool,)


SCENARIOS = (
    Scenario("sit-out", sit_out, 60.0),
    Scenario("stuck", stuck, 600.0),
)
