"""Scans that last while they are observed: paused, or on slow disks."""

from __future__ import annotations

from tests.vm.pools import PoolFactory

MIB = 1 << 20
PARAMETERS = "/sys/module/zfs/parameters"
SLOW_BPS = MIB
SCAN_HOLD = "zfs_scan_suspend_progress"
"""Tunable that pauses scans and sequential rebuilds (module/zfs/vdev_rebuild.c, 2.0)."""
FILL_MB = 50


def filled_mirror(pool: PoolFactory) -> None:
    """Create a mirror with enough data for a scan to take a while."""
    pool.create("mirror d0 d1")
    pool.fill(FILL_MB)
    little_in_flight(pool)


def little_in_flight(pool: PoolFactory) -> None:
    """Limit a scan's requests in flight: pausing it, or syncing, waits for all of them."""
    limits = " ".join(f"{PARAMETERS}/zfs_{kind}_vdev_limit" for kind in ("scan", "rebuild"))
    pool.machine.run(f"echo {MIB} | tee {limits} >/dev/null")


def with_hold(pool: PoolFactory, hold: str, running: str, *words: str) -> None:
    """Run a zpool command whose work is paused until `zpool status` shows it running.

    On slow disks the command returns late, when its work may already be done: a txg waits for the
    I/O in flight.
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
    """Return the GUID in a disk's own label (zdb(8) -l)."""
    label = pool.machine.run(["zdb", "-l", f"{pool.device(f'd{disk}')}-part1"]).stdout
    [guid] = [line.split()[1] for line in label.splitlines() if line.startswith("    guid: ")]
    return guid
