"""The default scenario: a resilver with content in every pane."""

from __future__ import annotations

from zconsole.sim import scan
from zconsole.sim.build import HOUR, Build, Scenario
from zconsole.sim.disk import OPTANE_100G, RED_4T, RED_8T, SSD_1T, SSD_400G
from zconsole.sim.state import RESILVER, DataLayout, Host, PoolState


def resilver(make: Build) -> PoolState:
    """A raidz2 resilver onto a bigger disk while another disk is slow."""
    disks = make.leaves(8, RED_4T)
    disks[5].slow = 0.62
    disks[5].error_rate = (0.0, 0.0, 0.0, 2.5)
    members = make.replaced(disks, 2, RED_8T)
    make.lost(disks[2], state=5, aux=11)
    disks[2].reads.errors, disks[2].writes.errors = 14.0, 212.0
    spare = make.leaf(RED_4T)
    pool = make.pool(
        [
            make.raidz(2, members, fill=0.68, frag=0.18),
            make.mirror(make.leaves(2, OPTANE_100G), 0.0, vclass="log", frag=0.0),
        ],
        load=make.load(read=5e6, write=4e6, size=262144.0, bursty=0.7, sync=0.1, sequential=4.0),
        layout=DataLayout(block=1048576.0, run=64 * 1048576.0, span=24 * 1048576.0),
        host=Host(memory=128 << 30),
        spares=[spare],
        cache=[make.leaf(SSD_400G), make.leaf(SSD_1T)],
    )
    scan.begin(pool, RESILVER)
    return pool


SCENARIOS = (Scenario("resilver", "tank", resilver, 7.2 * HOUR, bays=True),)
