"""Devices that fail, come back, are replaced or pulled; pools that stop."""

from __future__ import annotations

import contextlib
from functools import partial

from zconsole.sim import commands, lifecycle, scan
from zconsole.sim.build import BULK, DAY, HOUR, Build, Scenario, finished
from zconsole.sim.disk import EXOS_16T, FAULTED, GREEN_3T, RED_4T, RED_8T, REMOVED, SSD_400G, Leaf
from zconsole.sim.state import RESILVER, SCRUB, Checkpoint, Incident, PoolState
from zconsole.sim.topology import Member


def failed_disk(make: Build) -> PoolState:
    """A raidz2 disk has just failed; a spare and new disks are there."""
    disks = make.leaves(8, RED_4T)
    failed = make.lost(disks[4], state=FAULTED, aux=11)
    failed.reads.errors, failed.writes.errors, failed.cksum_errors = 31.0, 604.0, 2.0
    pool = make.pool(
        [
            make.raidz(2, disks, fill=0.58, frag=0.21),
            make.mirror(make.leaves(2, SSD_400G), 0.0, vclass="log", frag=0.0),
        ],
        load=make.load(read=2e6, write=1.5e6, bursty=0.8, sync=0.2, sequential=4.0),
        layout=BULK,
        spares=[make.leaf(RED_4T)],
    )
    pool.host.shelf = [make.leaf(RED_4T), make.leaf(RED_8T), make.leaf(SSD_400G)]
    pool.host.zed = False
    finished(pool, SCRUB, 6 * DAY, 9.3 * HOUR)
    return pool


def second_replace(make: Build) -> PoolState:
    """A second disk is replaced during a resilver and has to wait."""
    disks = make.leaves(8, RED_4T)
    new = make.leaf(RED_4T)
    second = make.leaf(RED_4T)
    members: list[Member] = [make.replacing(disks[0], new), *disks[1:]]
    pool = make.pool([make.raidz(2, members, fill=0.4)], layout=BULK)
    pool.host.shelf = [second]
    scan.begin(pool, RESILVER)
    later = partial(_replace, old=disks[5], new=second)
    pool.incidents = [Incident(2 * HOUR + 20.0, later)]
    return pool


def _replace(pool: PoolState, old: Leaf, new: Leaf) -> None:
    with contextlib.suppress(commands.CommandError):  # the user may have replaced or used either
        commands.replace(pool, str(old.guid), new.path)


def flaky(make: Build) -> PoolState:
    """A disk with a bad cable disconnects, and the resilver restarts."""
    disks = make.leaves(6, RED_4T)
    disks[2].error_rate = (3.0, 1.0, 40.0, 0.0)
    pool = make.pool([make.raidz(2, make.replaced(disks, 5), fill=0.45)], layout=BULK)
    pool.resilver_defer = False  # an old pool, never upgraded: with it, the disk would wait
    scan.begin(pool, RESILVER)
    incidents = []
    for after in (15.0, 25 * 60.0, 70 * 60.0):
        begins = 2.5 * HOUR + after + make.random.uniform(0.0, 10.0)
        incidents.append(Incident(begins, partial(lifecycle.lose, leaf=disks[2])))
        back = partial(lifecycle.come_back, leaf=disks[2], missed=0.002)
        incidents.append(Incident(begins + make.random.uniform(35.0, 60.0), back))
    pool.incidents = incidents
    return pool


def suspended(make: Build) -> PoolState:
    """A raidz1 loses a second disk and suspends; later it returns."""
    disks = make.leaves(5, RED_4T)
    make.lost(disks[1], state=REMOVED, aux=0)
    pool = make.pool(
        [make.raidz(1, make.replaced(disks, 1), fill=0.37)],
        load=make.load(read=200e3, write=300e3),
        layout=BULK,
    )
    scan.begin(pool, RESILVER)
    lost = partial(lifecycle.lose, leaf=disks[3])
    plugged = partial(_plug, leaf=disks[3])
    pool.incidents = [Incident(2 * HOUR + 12.0, lost), Incident(2 * HOUR + 120.0, plugged)]
    return pool


def _plug(pool: PoolState, leaf: Leaf) -> None:
    leaf.present = True
    pool.note("vdev_check", f"{leaf.name} is plugged in again", "notice", leaf.path)


def not_restored(make: Build) -> PoolState:
    """A checkpoint keeps a resilver from restoring redundancy."""
    members = make.replaced(make.leaves(6, RED_4T), 5)
    pool = make.pool([make.raidz(2, members, fill=0.12)], load=make.load(write=300e3), layout=BULK)
    scan.begin(pool, RESILVER)
    # Taken meanwhile: ZFS refuses to replace a disk while a checkpoint exists.
    pool.checkpoint = Checkpoint(make.start + 0.1 * HOUR, 5e9)
    return pool


def damaged(make: Build) -> PoolState:
    """A scrub found files it could not repair; two disks have errors."""
    disks = make.leaves(4, RED_8T)
    disks[1].cksum_errors, disks[1].reads.errors = 47.0, 12.0
    disks[2].cksum_errors = 6.0
    disks[1].error_rate = (1.0, 0.0, 4.0, 0.0)
    pool = make.pool([make.raidz(1, disks, fill=0.66)], load=make.load(read=2e6), layout=BULK)
    pool.data_errors = 3.0
    pool.damaged = (
        "/photos/2019/summer/IMG_2041.CR2",
        "photos/scans@monthly-2026-10:/box 7/page 12.tif",
        "<0x21b>:<0x8f3>",
    )
    pool.destroyed = {"0x21b": "photos/scans@monthly-2025-10"}
    finished(pool, SCRUB, 5 * HOUR, 17.4 * HOUR, errors=3, repaired=6.2e6)
    return pool


def hot_spare(make: Build) -> PoolState:
    """A hot spare takes over from a failed disk."""
    disks, spares = make.leaves(7, EXOS_16T), make.leaves(2, EXOS_16T)
    failed = make.lost(disks[2], state=FAULTED, aux=11)
    failed.reads.errors, failed.writes.errors = 8.0, 77.0
    group = make.replacing(failed, spares[0], kind="spare")
    members: list[Member] = [*disks[:2], group, *disks[3:]]
    pool = make.pool([make.raidz(2, members, fill=0.3)], layout=BULK, spares=spares)
    scan.begin(pool, RESILVER)
    return pool


def swap(make: Build) -> PoolState:
    """A disk of a 12-bay shelf is failing; swap it for a new one."""
    disks = make.leaves(10, RED_4T)
    failing = disks[6]
    failing.reads.errors, failing.cksum_errors, failing.slow_ios = 41.0, 3.0, 12.0
    failing.error_rate = (240.0, 0.0, 12.0, 40.0)
    pool = make.pool(
        [make.raidz(2, disks, fill=0.0006)], load=make.load(read=2e6, write=1e6), layout=BULK
    )
    pool.host.slots, pool.host.shelf = 12, []
    pool.host.drawer = [make.leaf(RED_4T), make.leaf(GREEN_3T)]
    for leaf in pool.host.drawer:
        leaf.slot = 0
    finished(pool, SCRUB, 6 * DAY, 90.0)
    return pool


def loose_cable(make: Build) -> PoolState:
    """Three disks behind one expander disconnect in a minute, and return."""
    disks = make.leaves(12, RED_4T)
    pool = make.pool(
        [make.raidz(2, disks[:6], fill=0.41), make.raidz(2, disks[6:], fill=0.38)],
        load=make.load(read=3e6, write=1e6, bursty=0.5, sequential=4.0),
        layout=BULK,
    )
    finished(pool, SCRUB, 4 * DAY, 8.4 * HOUR)
    for number, after in ((2, 8.0), (8, 21.0), (3, 46.0)):
        begins = 60.0 + after
        pool.incidents.append(Incident(begins, partial(lifecycle.lose, leaf=disks[number])))
        back = partial(lifecycle.come_back, leaf=disks[number], missed=0.0002)
        pool.incidents.append(Incident(begins + 90.0, back))
    return pool


SCENARIOS = (
    Scenario("failed-disk", "tank", failed_disk, 60.0, bays=True),
    Scenario("second-replace", "tank", second_replace, 2 * HOUR),
    Scenario("flaky", "tank", flaky, 2.5 * HOUR),
    Scenario("suspended", "backup", suspended, 2 * HOUR),
    Scenario("not-restored", "tank", not_restored, 0.8 * HOUR),
    Scenario("damaged", "photos", damaged, 60.0),
    Scenario("hot-spare", "tank", hot_spare, 3 * HOUR),
    Scenario("swap", "tank", swap, 60.0),
    Scenario("loose-cable", "tank", loose_cable, 60.0, bays=True),
)
