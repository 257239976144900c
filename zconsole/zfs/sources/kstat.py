"""Lock-free facts of the ZFS kernel module: imported pools, their state word, ARC, parameters.

Files below /proc/spl/kstat/zfs (module/zfs/spa_stats.c, module/zfs/arc.c); they can be read while
every ``zpool`` command hangs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from zconsole.system.host import ROOT, bytes_in, number_in, text_in

HANGING_STATES = frozenset({"SUSPENDED", "UNAVAIL", "FAULTED"})
"""State words under which no zpool or libzfs call is made: it could hang."""


def pool_states(root: Path = ROOT) -> Mapping[str, str]:
    """Every imported pool with its state word, ``""`` where it could not be read.

    While ``zpool import`` looks at a pool, the kernel has it as ``$import-…`` (TRYIMPORT_NAME,
    include/sys/spa.h); no pool's own name begins so.
    """
    folder = root / "proc/spl/kstat/zfs"
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_dir())
    except OSError:
        return {}
    states = {name: _state(folder / name) for name in names if not name.startswith("$")}
    return {name: state for name, state in states.items() if state is not None}


def _state(pool: Path) -> str | None:
    """The state word in a directory; None where it has none, as of a pool that has just gone."""
    try:
        return bytes_in(pool / "state").decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def pool_state(pool: str, root: Path = ROOT) -> str:
    """The state word of one pool; empty where it could not be read."""
    return text_in(root / "proc/spl/kstat/zfs" / pool / "state")


def arc_bytes(root: Path = ROOT) -> int | None:
    """Bytes the ARC holds now; None without the module."""
    try:
        text = bytes_in(root / "proc/spl/kstat/zfs/arcstats")
    except OSError:
        return None
    _, found, rest = text.partition(b"\nsize ")
    return int(rest.split(None, 2)[1]) if found else None


def module_version(root: Path = ROOT) -> str | None:
    """The running OpenZFS, ``2.3.9``; None where the module is not loaded."""
    word = text_in(root / "sys/module/zfs/version")
    return word.partition("-")[0] or None


PARAMETERS = (
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
"""Those that can hold a scan back, as the kernel has them now; for everybody."""

EVERY = 5.0
"""Seconds between two reads: parameters change by hand only."""


class ScanParameters:
    """Reads them again when the last values are old."""

    def __init__(self, root: Path) -> None:
        self._directory = root / "sys/module/zfs/parameters"
        self._read_at = float("-inf")
        self._found: Mapping[str, int] = {}

    def read(self, now: float) -> Mapping[str, int]:
        """Those of PARAMETERS that this kernel has; none where the module is not loaded (zfs(4)).

        ``now`` in steady seconds.
        """
        if now - self._read_at >= EVERY:
            values = {name: number_in(self._directory / name) for name in PARAMETERS}
            self._found = {name: value for name, value in values.items() if value is not None}
            self._read_at = now
        return self._found
