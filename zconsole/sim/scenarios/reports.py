"""Cases from field reports, with their disks, fill and figures."""

from __future__ import annotations

from zconsole.pool.model import Volumes
from zconsole.sim import scan
from zconsole.sim.build import DAY, HOUR, Build, Scenario, finished
from zconsole.sim.disk import DESKTOP_5T, EXOS_16T, GREEN_3T, MIB, NVME_1T5, RED_8T, TB, DiskModel
from zconsole.sim.rewrite import spread_over
from zconsole.sim.state import RESILVER, SCRUB, DataLayout, Host, PoolState

UNSORTED = "0.7.13"
"""An OpenZFS release before sorted scans (0.8): it issues I/O as it walks the pool."""

# The fourth report's disks take the old pool's blocks in the order they were written; reads are
# helped by read-ahead, writes to the new disk are not.
_DESKSTAR_1T = DiskModel("ata-Hitachi_HDS721010CLA332", TB, 132e6, 66e6, 0.0012)
_DESKSTAR_2T = DiskModel("ata-HGST_HDN724020ALE640", 2 * TB, 148e6, 72e6, 0.008)
_ISCSI_2T = DiskModel("scsi-SSUN_COMSTAR", 2 * TB, 160e6, 110e6, 0.006, 0.0008)


def six_disk_swap(make: Build) -> PoolState:
    """Six 3 TB disks of a raidz2 replaced by 5 TB ones in one resilver."""
    pairs = [make.replacing(make.leaf(GREEN_3T), make.leaf(DESKTOP_5T)) for _ in range(6)]
    pool = make.pool(
        [make.raidz(2, pairs, fill=0.79, frag=0.31)],
        layout=DataLayout(run=1.55 * MIB, span=12.5 * MIB),
        host=Host(memory=32 << 30),
    )
    pool.tunables["zfs_scan_mem_lim_fact"] = 2
    scan.begin(pool, RESILVER)
    return pool


def one_new_disk(make: Build) -> PoolState:
    """A raidz2 resilver limited by its one new 7200 rpm disk."""
    new = make.leaf(_DESKSTAR_2T)
    gone = make.lost(make.leaf(_DESKSTAR_1T))
    others = make.leaves(2, _DESKSTAR_1T)
    behind = make.leaves(2, _DESKSTAR_1T, bus="port-multiplier")
    pool = make.pool(
        [make.raidz(2, [make.replacing(gone, new), *others, *behind], fill=0.627)],
        load=make.load(read=20e3, write=60e3, bursty=0.5),
        layout=DataLayout(block=131072.0, old_run=0.29 * MIB),
        host=Host(memory=8 << 30, throughput=6e8, buses={"port-multiplier": 200e6}),
        version=UNSORTED,
    )
    scan.begin(pool, RESILVER)
    return pool


def clamped_scrub(make: Build) -> PoolState:
    """An OpenZFS 0.7 scrub held at 3 MB/s by zfs_scrub_delay."""
    mirrors = [make.mirror(make.leaves(2, _ISCSI_2T, bus="iscsi"), fill=0.76) for _ in range(2)]
    pool = make.pool(
        mirrors,
        load=make.load(read=500e3, write=300e3, size=32768.0, bursty=0.4),
        layout=DataLayout(block=131072.0, old_run=1.5 * MIB),
        host=Host(memory=64 << 30, buses={"iscsi": 200 * MIB}),
        version=UNSORTED,
    )
    scan.begin(pool, SCRUB)
    return pool


def nvme_raidz1(make: Build) -> PoolState:
    """A resilver of NVMe drives limited by the new drive's writes."""
    disks = make.leaves(9, NVME_1T5)
    new = make.leaf(NVME_1T5)
    gone = make.lost(make.leaf(NVME_1T5))
    pool = make.pool(
        [make.raidz(1, [*disks, make.replacing(gone, new)], fill=0.6)],
        layout=DataLayout(block=float(MIB), span=192.0 * MIB),
        host=Host(memory=384 << 30, throughput=26e9),
    )
    scan.begin(pool, RESILVER)
    return pool


def added_vdev(make: Build) -> PoolState:
    """A raidz1 pool, 93 % full, to which an empty vdev was added."""
    pool = make.pool(
        [
            make.raidz(1, make.leaves(7, EXOS_16T), fill=0.933, frag=0.01),
            make.raidz(1, make.leaves(5, RED_8T), fill=0.0021, frag=0.0),
        ],
        load=make.load(read=30e6, write=25e6, size=MIB, bursty=0.5, kept=0.6, sequential=16.0),
        layout=DataLayout(block=float(MIB)),
        host=Host(memory=128 << 30),
    )
    sizes = {"films": 38.2, "series": 21.6, "photos": 11.4, "backup": 15.9, "home": 4.1}
    paths = {f"/storage/{name}": size * TB for name, size in sizes.items()}
    pool.directories = spread_over(pool, paths)
    finished(pool, SCRUB, 9 * DAY, 42 * HOUR)
    return pool


def new_mirror(make: Build) -> PoolState:
    """A mirror, 62 % full, to which an empty one was added."""
    pool = make.pool(
        [
            make.mirror(make.leaves(2, RED_8T), fill=0.62, frag=0.12),
            make.mirror(make.leaves(2, RED_8T), fill=0.004, frag=0.0),
        ],
        load=make.load(read=12e6, write=8e6, size=MIB, bursty=0.5, kept=0.6, sequential=16.0),
    )
    sizes = {"/depot/images": 3.2 * TB, "/depot/backup": 1.6 * TB}
    pool.directories = spread_over(pool, sizes)
    finished(pool, SCRUB, 5 * DAY, 9 * HOUR)
    return pool


def volumes_of_machines(make: Build) -> PoolState:
    """Two mirrors with disks of virtual machines, 79 % full, to which an empty one was added."""
    pool = make.pool(
        [
            make.mirror(make.leaves(2, RED_8T), fill=0.79, frag=0.42),
            make.mirror(make.leaves(2, RED_8T), fill=0.78, frag=0.41),
            make.mirror(make.leaves(2, RED_8T), fill=0.015, frag=0.0),
        ],
        load=make.load(read=9e6, write=6e6, size=16384.0, bursty=0.5, kept=0.1),
    )
    sizes = {"/guests/dump": 1.7 * TB, "/guests/template": 0.4 * TB}
    pool.directories = spread_over(pool, sizes)
    pool.volumes = Volumes(14, round(10.4 * TB))
    finished(pool, SCRUB, 6 * DAY, 14 * HOUR)
    return pool


def mirror_ceiling(make: Build) -> PoolState:
    """A scrub of three mirrors at the full speed of their disks."""
    pool = make.pool(
        [make.mirror(make.leaves(2, RED_8T), fill=0.55) for _ in range(3)],
        layout=DataLayout(block=float(MIB), run=96.0 * MIB, span=24.0 * MIB),
    )
    pool.host.shelf.append(make.leaf(RED_8T))
    scan.begin(pool, SCRUB)
    return pool


SCENARIOS = (
    Scenario("six-disk-swap", "jackscoldsweat", six_disk_swap, 20 * HOUR),
    Scenario("new-disk", "export", one_new_disk, 4 * HOUR),
    Scenario("scrub-delay", "fs0", clamped_scrub, 6 * HOUR),
    Scenario("nvme", "flash", nvme_raidz1, 150.0),
    Scenario("added-vdev", "storage", added_vdev, 60.0),
    Scenario("new-mirror", "depot", new_mirror, 60.0),
    Scenario("volumes", "guests", volumes_of_machines, 60.0),
    Scenario("mirror-scrub", "mirrors", mirror_ceiling, 2 * HOUR),
)
