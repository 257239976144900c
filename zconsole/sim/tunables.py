"""Module parameters the simulated pool obeys, with the defaults of OpenZFS 2.3."""

from __future__ import annotations

MIB = 1 << 20

DEFAULTS: dict[str, int] = {
    "zfs_scrub_min_time_ms": 1000,
    "zfs_resilver_min_time_ms": 3000,
    "zfs_vdev_max_active": 1000,
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 3,
    "zfs_vdev_rebuild_min_active": 1,
    "zfs_vdev_rebuild_max_active": 3,
    "zfs_vdev_async_write_min_active": 2,
    "zfs_vdev_async_write_max_active": 10,
    "zfs_vdev_async_read_min_active": 1,
    "zfs_vdev_async_read_max_active": 3,
    "zfs_vdev_nia_delay": 5,
    "zfs_vdev_nia_credit": 5,
    "zfs_scan_vdev_limit": 16 * MIB,
    "zfs_scan_legacy": 0,
    "zfs_scan_mem_lim_fact": 20,
    "zfs_scan_mem_lim_soft_fact": 20,
    "zfs_scan_checkpoint_intval": 7200,
    "zfs_scan_suspend_progress": 0,
    "zfs_scan_report_txgs": 0,
    "zfs_no_scrub_prefetch": 0,
    "zfs_resilver_disable_defer": 0,
    "zfs_resilver_defer_percent": 10,
    "zfs_rebuild_max_segment": MIB,
    "zfs_rebuild_vdev_limit": 64 * MIB,
    "zfs_rebuild_scrub_enabled": 1,
    "zfs_scrub_after_expand": 1,
    "zfs_txg_timeout": 5,
}
"""Name to default (module/zfs/dsl_scan.c, vdev_queue.c, vdev_rebuild.c @2.3.9)."""

BEFORE_0_8: dict[str, int] = {
    "zfs_scrub_delay": 4,
    "zfs_resilver_delay": 2,
    "zfs_scan_idle": 50,
    "zfs_top_maxinflight": 32,
    "zfs_scan_min_time_ms": 1000,
    "zfs_resilver_min_time_ms": 3000,
    "zfs_vdev_max_active": 1000,
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 2,
    "zfs_vdev_async_write_min_active": 2,
    "zfs_vdev_async_write_max_active": 10,
    "zfs_vdev_async_read_min_active": 1,
    "zfs_vdev_async_read_max_active": 3,
    "zfs_no_scrub_prefetch": 0,
    "zfs_txg_timeout": 5,
}
"""The same before 0.8, when scans were throttled by delays (dsl_scan.c @0.7.13)."""


class Tunables(dict[str, int]):
    """The parameters of one simulated kernel: name to live value."""

    def __missing__(self, name: str) -> int:
        """0, for a parameter that this version does not have."""
        return 0

    def write(self, name: str, text: str) -> str:
        """Sets a parameter as a write to its file would; returns "" or the kernel's refusal."""
        if name not in self:
            return "No such file or directory"
        if not text.strip().isdigit():
            return "Invalid argument"
        self[name] = int(text)
        return ""
