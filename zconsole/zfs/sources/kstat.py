"""Facts of the machine that can be read while every ``zpool`` command hangs.

Of the ZFS kernel module: imported pools, their state word, ARC (files below /proc/spl/kstat/zfs:
module/zfs/spa_stats.c, module/zfs/arc.c), parameters. And CPU and memory: proc_stat(5),
proc_meminfo(5); where there are no such files, psutil's figures stand in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from zconsole.system.host import ROOT, bytes_in, number_in, text_in

HANGING_STATES = frozenset({"SUSPENDED", "UNAVAIL", "FAULTED"})
"""State words under which a call could hang: zpool is not run, and the kernel is asked for the
config once at most, with a short deadline (``PoolPoller._glance``)."""


def pool_states(root: Path = ROOT) -> Mapping[str, str]:
    """Every imported pool with its state word, ``""`` where it could not be read.

    While ``zpool import`` looks at a pool, the kernel has it as ``$import-…`` (TRYIMPORT_NAME,
    include/sys/spa.h); no pool's own name begins so.
    """
    folder = f"{root}/proc/spl/kstat/zfs"
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_dir())
    except OSError:
        return {}
    states = {name: _state(f"{folder}/{name}/state") for name in names if not name.startswith("$")}
    return {name: state for name, state in states.items() if state is not None}


def _state(file: str) -> str | None:
    """The state word in a file; None where there is none, as of a pool that has just gone."""
    try:
        return bytes_in(file).decode("utf-8", "replace").strip()
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
    "zfs_vdev_rebuild_min_active",
    "zfs_vdev_rebuild_max_active",
    "zfs_vdev_async_write_min_active",
    "zfs_vdev_async_write_max_active",
    "zfs_rebuild_vdev_limit",
    "zfs_rebuild_max_segment",
    "zfs_scrub_delay",
    "zfs_resilver_delay",
    "zfs_scan_idle",
    "zfs_top_maxinflight",
    "zfs_txg_timeout",
)
"""Those that can hold a scan back, and how long a transaction group may last, which tells slow from
stuck. Everybody may read them."""

EVERY = 5.0
"""Seconds between two reads of what changes slowly: parameters change by hand only."""


_COUNTED = 8
"""Fields of the ``cpu`` line; the time of guests, behind them, is part of user and nice."""
_IDLE, _IOWAIT = 3, 4


class CpuTime(NamedTuple):
    """What all processors did since the machine started, in any one unit."""

    idle: float
    total: float


class LoadMeter:
    """CPU and memory of the machine, and parameters of scans, in the raw form's names."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._before: CpuTime | None = None
        self._read_at = float("-inf")
        self._memory: Mapping[str, int | None] = {}
        self._tunables: Mapping[str, int] = {}

    def read(self, now: float) -> Mapping[str, Any]:
        """``host``, and ``tunables``: those of PARAMETERS that this kernel has (zfs(4)).

        CPU share since the last call, absent from the first; memory and ARC in bytes. The kernel
        writes hundreds of lines to tell the latter. ``now`` in steady seconds.
        """
        if now - self._read_at >= EVERY:
            self._memory = {**memory(self._root), "arc_bytes": arc_bytes(self._root)}
            folder = self._root / "sys/module/zfs/parameters"
            values = {name: number_in(folder / name) for name in PARAMETERS}
            self._tunables = {name: value for name, value in values.items() if value is not None}
            self._read_at = now
        spent, before = cpu_time(self._root), self._before
        self._before = spent
        cpu = None
        if spent is not None and before is not None and spent.total > before.total:
            busy = 1 - (spent.idle - before.idle) / (spent.total - before.total)
            cpu = min(1.0, max(0.0, busy))  # the kernel's idle and iowait can run back
        found = {"cpu": cpu, **self._memory}
        host = {key: value for key, value in found.items() if value is not None}
        return {"host": host, "tunables": self._tunables}


def cpu_time(root: Path = ROOT) -> CpuTime | None:
    """The first line of /proc/stat, or psutil's figures; None without either."""
    try:
        words = bytes_in(root / "proc/stat").split(b"\n", 1)[0].split()
        ticks = [int(word) for word in words[1 : 1 + _COUNTED]]
        return CpuTime(ticks[_IDLE] + ticks[_IOWAIT], sum(ticks))
    except (OSError, ValueError, IndexError):
        psutil = find_psutil()
        times = psutil.cpu_times() if psutil else None
        return None if times is None else CpuTime(times.idle, sum(times))


def memory(root: Path = ROOT) -> Mapping[str, int]:
    """``memory_total`` and ``memory_available`` in bytes; empty where nobody knows them."""
    try:
        lines = bytes_in(root / "proc/meminfo").splitlines()
        kilobytes = {words[0]: int(words[1]) for line in lines if len(words := line.split()) > 1}
        total, available = kilobytes[b"MemTotal:"], kilobytes[b"MemAvailable:"]
    except (OSError, ValueError, KeyError):
        psutil = find_psutil()
        found = psutil.virtual_memory() if psutil else None
        if found is None:
            return {}
        return {"memory_total": found.total, "memory_available": found.available}
    return {"memory_total": total * 1024, "memory_available": available * 1024}


def find_psutil() -> ModuleType | None:
    """The module whose figures stand in; a program of one file has no compiled modules."""
    try:
        import psutil
    except ImportError:
        return None
    return psutil
