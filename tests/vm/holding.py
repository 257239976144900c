"""Scans that go on while they are looked at: held still, or on disks that are slow."""

from __future__ import annotations

from tests.vm.pools import PoolFactory

MIB = 1 << 20
PARAMETERS = "/sys/module/zfs/parameters"
SLOW_BPS = MIB
SCAN_HOLD = "zfs_scan_suspend_progress"
"""Keeps scans and sequential rebuilds from moving (module/zfs/vdev_rebuild.c, 2.0)."""
FILL_MB = 50


def filled_mirror(pool: PoolFactory) -> None:
    """A mirror with enough data for a scan to take its time."""
    pool.create("mirror d0 d1")
    pool.fill(FILL_MB)
    little_in_flight(pool)


def little_in_flight(pool: PoolFactory) -> None:
    """Bound what a scan has asked of a disk: to pause it, or to sync, is to wait for all that."""
    limits = " ".join(f"{PARAMETERS}/zfs_{kind}_vdev_limit" for kind in ("scan", "rebuild"))
    pool.machine.run(f"echo {MIB} | tee {limits} >/dev/null")


def with_hold(pool: PoolFactory, hold: str, running: str, *words: str) -> None:
    """Run a zpool command whose work is held still until `zpool status` shows it running.

    On slow disks the command returns late, when its work may be done already: a txg waits for
    what is in flight.
    """
    pool.machine.run(f"echo 1 >{PARAMETERS}/{hold}")
    pool.zpool(*words)
    pool.wait_status(running)
    pool.machine.run(f"echo 0 >{PARAMETERS}/{hold}")


def start_replace(pool: PoolFactory, old: str, new: int) -> None:
    """Replace a device by a slow disk, and wait until the resilver runs."""
    pool.slow(new, bps=SLOW_BPS)
    pool.zpool("replace", "-f", "tank", old, pool.device(f"d{new}"))
    pool.wait_status("resilver in progress")


def leaf_guid(pool: PoolFactory, disk: int) -> str:
    """The guid that a disk's own label has (zdb(8) -l)."""
    label = pool.machine.run(["zdb", "-l", f"{pool.device(f'd{disk}')}-part1"]).stdout
    [guid] = [line.split()[1] for line in label.splitlines() if line.startswith("    guid: ")]
    return guid
