"""Sequential rebuild, dRAID, other work, many devices, several pools, what newer releases do."""

from __future__ import annotations

from zconsole.pool.model import Event
from zconsole.sim import commands, scan
from zconsole.sim.build import BULK, DAY, HOUR, Build, Scenario, finished
from zconsole.sim.disk import (
    EXOS_16T,
    FAULTED,
    NVME_2T,
    OPTANE_100G,
    RED_4T,
    RED_8T,
    SSD_1T,
    ULTRASTAR_18T,
)
from zconsole.sim.state import CANCELED, RESILVER, SCRUB, PoolState, Relocation
from zconsole.sim.topology import Top


def sequential(make: Build) -> PoolState:
    """Two sequential rebuilds (replace -s) at once, then their scrub."""
    old, new = make.leaves(2, RED_4T), make.leaves(2, RED_4T)
    tops = [
        make.mirror([make.leaf(RED_4T), make.replacing(old[0], new[0])], fill=0.42),
        make.mirror([make.leaf(RED_4T), make.replacing(old[1], new[1])], fill=0.31),
        make.mirror(make.leaves(2, RED_4T), fill=0.35),
    ]
    pool = make.pool(tops, load=make.load(read=1e6, write=1e6, sequential=4.0), layout=BULK)
    for top, leaf in zip(tops, new, strict=False):
        scan.begin_rebuild(pool, top, [leaf])
    return pool


def draid(make: Build) -> PoolState:
    """A dRAID rebuilds a failed disk onto distributed spare space."""
    disks = make.leaves(24, ULTRASTAR_18T)
    failed = make.lost(disks[9], state=FAULTED, aux=11)
    spares = make.leaves(2, ULTRASTAR_18T)
    for number, spare in enumerate(spares):
        spare.kind, spare.path, spare.name = "dspare", f"draid2-0-{number}", f"draid2-0-{number}"
    group = make.replacing(failed, spares[0], kind="spare")
    top = make.top("draid", [*disks[:9], group, *disks[10:]], fill=0.4, nparity=2)
    top.data_disks, top.spares = 8, 2
    top.space *= 22 / 24
    pool = make.pool([top], layout=BULK, spares=spares)
    pool.host.throughput = 20e9
    scan.begin_rebuild(pool, top, [spares[0]])
    return pool


def removal(make: Build) -> PoolState:
    """A mirror is being evacuated so that it can be removed."""
    tops = [make.mirror(make.leaves(2, RED_4T), fill=fill) for fill in (0.38, 0.41, 0.22)]
    tops[2].removing, tops[2].allocating = True, False
    pool = make.pool(tops, load=make.load(read=1e6, write=1e6), layout=BULK)
    pool.removal = Relocation(2, pool.now, tops[2].alloc)
    return pool


def expansion(make: Build) -> PoolState:
    """A raidz1 expansion: a sixth disk was attached."""
    top = make.raidz(1, make.leaves(5, RED_4T), fill=0.61)
    top.members.append(make.leaf(RED_4T))
    pool = make.pool([top], load=make.load(read=1e6, write=500e3), layout=BULK)
    pool.expansion = Relocation(0, pool.now, top.alloc)
    return pool


def trimming(make: Build) -> PoolState:
    """Flash mirrors being trimmed, and one disk being initialized."""
    tops = [make.mirror(make.leaves(2, SSD_1T), fill=0.4) for _ in range(3)]
    tops.append(make.mirror(make.leaves(2, NVME_2T), fill=0.2))
    pool = make.pool(tops, load=make.load(read=40e6, write=20e6, size=16384.0, sync=0.7))
    commands.change(pool, "trim")
    for leaf in pool.leaves():
        leaf.jobs["trim"].rate = make.random.uniform(4e8, 9e8)
    commands.change(pool, "initialize", device=str(next(tops[3].leaves()).guid))
    return pool


def paused(make: Build) -> PoolState:
    """A scrub that was paused two hours ago."""
    pool = make.pool(
        [make.raidz(2, make.leaves(6, RED_8T), fill=0.5)],
        load=make.load(read=2e6, write=1e6, sequential=4.0),
        layout=BULK,
    )
    current = scan.begin(pool, SCRUB)
    for queue in current.queues:
        queue.issued, queue.queued = 0.37 * queue.total, 0.63 * queue.total
        queue.unscanned = 0.0
    current.clearing = True
    current.pass_issued = current.issued
    current.start = current.pass_start = make.start - 7 * HOUR
    current.paused_since = make.start - 2 * HOUR
    pool.events = [
        Event(make.start - 7 * HOUR, "scrub_start", "scrub started"),
        Event(make.start - 2 * HOUR, "scrub_paused", "scrub paused", "notice"),
    ]
    return pool


def thousand(make: Build) -> PoolState:
    """A scrub of 1,000 disks in a hundred raidz2 vdevs."""
    tops: list[Top] = [
        make.raidz(2, make.leaves(10, EXOS_16T), fill=make.random.uniform(0.35, 0.7))
        for _ in range(100)
    ]
    pool = make.pool(tops, load=make.load(read=300e6, write=200e6, sequential=8.0), layout=BULK)
    pool.host.memory, pool.host.throughput = 4 << 40, 250e9
    scan.begin(pool, SCRUB)
    return pool


def two_pools(make: Build) -> PoolState:
    """Two pools: one resilvers, the other is idle."""
    members = make.replaced(make.leaves(6, RED_8T), 5)
    tank = make.pool([make.raidz(2, members, fill=0.33)], layout=BULK)
    scan.begin(tank, RESILVER)
    other = Build(make.seed, "scratch", make.start)
    other.count, other.flash, other.models = make.count, make.flash, dict(make.models)
    scratch = other.pool(
        [other.mirror(other.leaves(2, SSD_1T), fill=0.7) for _ in range(2)],
        load=other.load(read=20e6, write=5e6),
        host=tank.host,
    )
    finished(scratch, SCRUB, 2 * DAY, 0.4 * HOUR)
    return tank


def every_class(make: Build) -> PoolState:
    """An idle, healthy pool with every class of vdev."""
    pool = make.pool(
        [
            make.raidz(2, make.leaves(6, EXOS_16T), fill=0.46),
            make.raidz(2, make.leaves(6, EXOS_16T), fill=0.44),
            make.mirror(make.leaves(2, NVME_2T), 0.31, vclass="special", frag=0.22),
            make.mirror(make.leaves(2, SSD_1T), 0.12, vclass="dedup", frag=0.3),
            make.mirror(make.leaves(2, OPTANE_100G), 0.0, vclass="log", frag=0.0),
        ],
        load=make.load(read=3e6, write=2e6, bursty=0.9, sync=0.2, sequential=8.0, kept=0.2),
        layout=BULK,
        spares=[make.leaf(EXOS_16T), make.leaf(EXOS_16T)],
        cache=[make.leaf(SSD_1T)],
    )
    finished(pool, SCRUB, 4 * DAY, 12.1 * HOUR)
    return pool


def overdue(make: Build) -> PoolState:
    """A scrub was canceled; the last full one ended 41 days ago."""
    pool = make.pool(
        [make.raidz(2, make.leaves(8, RED_8T), fill=0.71)],
        load=make.load(read=1e6, write=500e3, sequential=4.0),
        layout=BULK,
    )
    pool.scrubbed = make.start - 41 * DAY
    stopped = finished(pool, SCRUB, 6 * DAY, 3.4 * HOUR)
    stopped.state = CANCELED
    for queue in stopped.queues:
        queue.issued, queue.queued = 0.23 * queue.total, 0.77 * queue.total
    return pool


def sit_out(make: Build) -> PoolState:
    """OpenZFS 2.4: a slow disk of a raidz2 sits out."""
    disks = make.leaves(6, RED_4T)
    disks[3].slow, disks[3].sitting_out, disks[3].slow_ios = 0.15, True, 1.0
    pool = make.pool(
        [make.raidz(2, disks, fill=0.44)],
        load=make.load(read=3e6, write=1.5e6, bursty=0.6, sequential=4.0),
        layout=BULK,
        version="2.4.4",
    )
    pool.tops[0].autosit = True
    finished(pool, SCRUB, 9 * DAY, 8.1 * HOUR)
    return pool


def stuck(make: Build) -> PoolState:
    """A raidz1 expansion is stuck after a disk failed."""
    disks = make.leaves(5, RED_4T)
    disks[2] = make.lost(disks[2], state=FAULTED, aux=11)
    top = make.raidz(1, disks, fill=0.48)
    top.members.append(make.leaf(RED_4T))
    pool = make.pool([top], load=make.load(read=400e3, write=200e3), layout=BULK)
    pool.expansion = Relocation(
        0, pool.now - 5 * HOUR, top.alloc, moved=top.alloc * 0.37, held=True
    )
    return pool


SCENARIOS = (
    Scenario("sequential", "vm", sequential, 1.5 * HOUR),
    Scenario("draid", "lustre", draid, 0.5 * HOUR),
    Scenario("removal", "pond", removal, HOUR),
    Scenario("expansion", "nas", expansion, 4 * HOUR),
    Scenario("trim", "db", trimming, 60.0),
    Scenario("paused", "tank", paused, 60.0),
    Scenario("thousand", "exa", thousand, 2 * HOUR),
    Scenario("two-pools", "tank", two_pools, 3 * HOUR),
    Scenario("healthy", "vault", every_class, 600.0, bays=True),
    Scenario("overdue", "attic", overdue, 600.0, bays=True),
    Scenario("sit-out", "tank", sit_out, 60.0, bays=True),
    Scenario("stuck", "nas", stuck, 600.0),
)
