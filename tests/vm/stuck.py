"""Pools that do not answer: suspended, or waiting for the kernel's lock of all pools."""

from __future__ import annotations

from tests.vm.pools import PoolFactory


def suspended(pool: PoolFactory) -> None:
    """Create a pool whose only disk is gone: commands on it may hang forever."""
    pool.create("d0", options="-o failmode=wait")
    suspend(pool)


def suspend(pool: PoolFactory) -> None:
    """Remove the only disk, d0, of pool ``tank`` with failmode=wait."""
    pool.machine.pull(0)
    # Report the loss to ZFS, as zed(8) would; otherwise the kernel may retry the writes forever.
    work = "zpool reopen tank; dd if=/dev/urandom of=/tank/x bs=1M count=1; zpool sync tank"
    pool.machine.run(f"({work}) >/dev/null 2>&1 &")
    pool.wait_until("grep -q SUSPENDED /proc/spl/kstat/zfs/tank/state")


def hold_lock(pool: PoolFactory) -> None:
    """Export a pool whose disk, d0, barely writes: no pool of the machine answers meanwhile.

    The kernel exports under its single lock of all pools (spa_namespace_lock, module/zfs/spa.c).
    Removing the disk's limit ends it.
    """
    pool.create("d0", name="slow", options="-O mountpoint=none")
    pool.slow(0, bps=16)
    pool.machine.run("(zpool export slow >/dev/null 2>&1 &)")
    pool.wait_until("grep -qs spa_export $(pgrep -x zpool | sed 's|.*|/proc/&/stack|')")
