"""One scenario for each limit of a scan."""

from __future__ import annotations

from zconsole.sim import scan
from zconsole.sim.build import BULK, HOUR, Build, Scenario
from zconsole.sim.disk import (
    EXOS_16T,
    MIB,
    NVME_2T,
    RED_4T,
    RED_8T,
    REMOTE_4T,
    SHINGLED_8T,
    ULTRASTAR_18T,
)
from zconsole.sim.state import (
    RESILVER,
    SCRUB,
    DataLayout,
    Host,
    Incident,
    PoolState,
    SimulatedDataset,
)


def memory_limited(make: Build) -> PoolState:
    """A scrub with too little memory to sort everything at once."""
    pool = make.pool(
        [make.raidz(2, make.leaves(8, RED_8T), fill=0.6)],
        layout=DataLayout(block=float(MIB), run=48.0 * MIB, span=24.0 * MIB),
        host=Host(memory=16 << 30),
    )
    scan.begin(pool, SCRUB)
    return pool


def foreground_load(make: Build) -> PoolState:
    """A resilver slowed down by busy applications."""
    disks = make.leaves(7, RED_8T)
    old, new = make.leaf(RED_8T), make.leaf(RED_8T)
    load = make.load(
        read=5e6, write=9e6, size=131072.0, daily=0.25, peak=3 * HOUR, sync=0.6, bursty=0.2
    )
    pool = make.pool(
        [make.raidz(2, [*disks, make.replacing(old, new)], fill=0.22)], load=load, layout=BULK
    )
    pool.datasets = [
        SimulatedDataset("prod/vm-101-disk-0", reads=0.7, writes=0.25),
        SimulatedDataset("prod/home", reads=0.05, writes=0.05),
        SimulatedDataset("prod/postgres", reads=0.25, writes=0.7),
    ]
    scan.begin(pool, RESILVER)
    return pool


def straggler(make: Build) -> PoolState:
    """A resilver held back by one slow source disk."""
    disks = make.leaves(9, EXOS_16T)
    disks[3].slow, disks[3].error_rate = 0.16, (0.0, 0.0, 0.0, 6.0)
    pool = make.pool(
        [make.raidz(2, make.replaced(disks, 8), fill=0.34)],
        load=make.load(read=400e3, write=200e3, bursty=0.5),
        layout=BULK,
    )
    scan.begin(pool, RESILVER)
    return pool


def shingled(make: Build) -> PoolState:
    """A new shingled disk slows the resilver once its cache is full."""
    members = make.replaced(make.leaves(5, RED_8T), 4, SHINGLED_8T)
    pool = make.pool([make.raidz(1, members, fill=0.42)], layout=BULK)
    pool.host.shelf = [make.leaf(SHINGLED_8T), make.leaf(RED_8T)]
    scan.begin(pool, RESILVER)
    return pool


def random_reads(make: Build) -> PoolState:
    """A scrub of old, small, fragmented blocks: the disks mostly seek."""
    pool = make.pool(
        [make.raidz(2, make.leaves(6, RED_4T), fill=0.3, frag=0.62)],
        layout=DataLayout(block=24576.0, run=1.0 * MIB, span=1.5 * MIB),
    )
    pool.tunables["zfs_scan_mem_lim_fact"] = 4
    scan.begin(pool, SCRUB)
    return pool


def few_requests(make: Build) -> PoolState:
    """A resilver onto a remote disk that gets too few writes at a time."""
    pool = make.pool(
        [make.raidz(1, make.replaced(make.leaves(6, REMOTE_4T), 5), fill=0.5)],
        layout=DataLayout(block=262144.0, run=1.0 * MIB, span=16.0 * MIB),
    )
    pool.tunables["zfs_vdev_scrub_max_active"] = 8
    pool.tunables["zfs_vdev_async_write_min_active"] = 1
    scan.begin(pool, RESILVER)
    return pool


def shared_bus(make: Build) -> PoolState:
    """Eighteen disks behind one link: a resilver ends, a scrub begins."""
    disks = make.leaves(18, ULTRASTAR_18T, bus="expander")
    members = make.replaced(disks, 0)
    pool = make.pool(
        [make.raidz(2, members[first : first + 6], fill=0.4) for first in (0, 6, 12)],
        layout=BULK,
        host=Host(buses={"expander": 1.6e9}),
    )
    scan.walked(scan.begin(pool, RESILVER), left=36e9)
    pool.incidents = [Incident(60.0 + make.random.uniform(0.0, 5.0), _scrub_walked)]
    return pool


def _scrub_walked(pool: PoolState) -> None:
    scan.walked(scan.begin(pool, SCRUB))


def processor(make: Build) -> PoolState:
    """A scrub of fast flash limited by checksums on the processor."""
    pool = make.pool(
        [make.raidz(3, make.leaves(8, NVME_2T), fill=0.5)],
        layout=DataLayout(block=float(MIB), span=128.0 * MIB),
        host=Host(throughput=2.6e9),
    )
    scan.begin(pool, SCRUB)
    return pool


SCENARIOS = (
    Scenario("memory-limited", "archive", memory_limited, 1.2 * HOUR),
    Scenario("foreground", "prod", foreground_load, 3 * HOUR),
    Scenario("straggler", "media", straggler, 5 * HOUR),
    Scenario("shingled", "home", shingled, 0.61 * HOUR),
    Scenario("random", "mail", random_reads, 9 * HOUR),
    Scenario("few-requests", "remote", few_requests, HOUR),
    Scenario("shared-bus", "shelf", shared_bus),
    Scenario("cpu", "fast", processor, 1100.0),
)
