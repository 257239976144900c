"""The module parameters that can hold a scan back, as the kernel has them now; for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from zconsole.system.kernel_files import number_in

NAMES = (
    "zfs_resilver_min_time_ms",
    "zfs_scrub_min_time_ms",
    "zfs_scan_vdev_limit",
    "zfs_scan_mem_lim_fact",
    "zfs_scan_legacy",
    "zfs_scan_suspend_progress",
    "zfs_vdev_max_active",
    "zfs_vdev_scrub_min_active",
    "zfs_vdev_scrub_max_active",
    "zfs_vdev_rebuild_max_active",
    "zfs_vdev_async_write_min_active",
    "zfs_vdev_async_write_max_active",
    "zfs_rebuild_vdev_limit",
    "zfs_rebuild_max_segment",
    "zfs_scrub_delay",
    "zfs_resilver_delay",
    "zfs_scan_idle",
    "zfs_top_maxinflight",
)


EVERY = 5.0
"""Seconds between two reads: parameters change by hand only."""


class ScanParameters:
    """Reads them again when the last values are old; ``now`` in steady seconds."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read_at = float("-inf")
        self._found: Mapping[str, int] = {}

    def read(self, now: float) -> Mapping[str, int]:
        """See ``scan_parameters``."""
        if now - self._read_at >= EVERY:
            self._read_at, self._found = now, scan_parameters(self._root)
        return self._found


def scan_parameters(root: Path) -> dict[str, int]:
    """Those of NAMES that this kernel has; none where the module is not loaded (zfs(4))."""
    directory = root / "sys/module/zfs/parameters"
    values = {name: number_in(directory / name) for name in NAMES}
    return {name: value for name, value in values.items() if value is not None}
