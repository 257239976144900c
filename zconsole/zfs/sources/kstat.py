"""Facts about the machine that can be read even while every ``zpool`` command hangs.

From the ZFS kernel module: imported pools, their state word, I/O of their datasets, ARC (files
below /proc/spl/kstat/zfs: module/zfs/spa_stats.c, module/zfs/dataset_kstats.c, module/zfs/arc.c)
and module parameters. CPU and memory come from proc_stat(5) and proc_meminfo(5), or from psutil
where these files do not exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from zconsole.system.host import ROOT, bytes_in, names_in, number_in, text_in

HANGING_STATES = frozenset({"SUSPENDED", "UNAVAIL", "FAULTED"})
"""State words under which a call could hang: zpool is not run, and the kernel is asked for the
config only if it has never answered, once, with a short deadline (``PoolPoller.begin``)."""


def pool_states(root: Path = ROOT) -> Mapping[str, str]:
    """Return every imported pool with its state word, ``""`` where it could not be read.

    While ``zpool import`` examines a pool, the kernel lists it as ``$import-…`` (TRYIMPORT_NAME,
    include/sys/spa.h); no real pool name begins with ``$``.
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
    """Return the state word in a file; None without one, as for a pool just exported."""
    try:
        return bytes_in(file).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def pool_state(pool: str, root: Path = ROOT) -> str:
    """Return the state word of one pool; empty if it could not be read."""
    return text_in(root / "proc/spl/kstat/zfs" / pool / "state")


def arc_bytes(root: Path = ROOT) -> int | None:
    """Return the current size of the ARC in bytes; None without the module."""
    try:
        text = bytes_in(root / "proc/spl/kstat/zfs/arcstats")
    except OSError:
        return None
    _, found, rest = text.partition(b"\nsize ")
    return int(rest.split(None, 2)[1]) if found else None


def module_version(root: Path = ROOT) -> str | None:
    """Return the version of the loaded OpenZFS module (``2.3.9``); None if it is not loaded."""
    word = text_in(root / "sys/module/zfs/version")
    return word.partition("-")[0] or None


def zed_runs(root: Path = ROOT) -> bool | None:
    """Return whether ZED, the ZFS event daemon, runs, by the names of all processes.

    None if not all of them can be seen: in a container, or where /proc is mounted with hidepid, the
    kernel's own thread with PID 2 is hidden, too.
    """
    proc = root / "proc"
    if text_in(proc / "2/comm") != "kthreadd":
        return None
    return any(text_in(proc / name / "comm") == "zed" for name in names_in(proc) if name.isdigit())


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
"""Parameters that can slow a scan down, and ``zfs_txg_timeout``, the longest duration of a
transaction group, which tells slow from stuck. Any user may read them."""

EVERY = 5.0
"""Seconds between two reads of what changes slowly, or takes the kernel long to tell: memory and
ARC are hundreds of lines."""


_COUNTED = 8
"""Fields of the ``cpu`` line that are summed; guest time, which follows, is part of user and
nice."""
_IDLE, _IOWAIT = 3, 4
"""Indices of idle and iowait in the ``cpu`` line (proc_stat(5))."""


class CpuTime(NamedTuple):
    """CPU time of all processors since the machine started; the unit depends on its source."""

    idle: float
    total: float


class LoadMeter:
    """Reads the machine's load and the parameters of scans, with the keys of ``zfs/raw.py``."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._before: CpuTime | None = None
        self._read_at = float("-inf")
        self._memory: Mapping[str, int | None] = {}
        self._tunables: Mapping[str, int] = {}

    def read(self, now: float) -> Mapping[str, Any]:
        """Return ``host`` (load) and ``tunables`` (the PARAMETERS that this kernel has, zfs(4)).

        CPU is the busy share since the last call, absent on the first; memory and ARC, in bytes,
        and parameters are read every EVERY seconds. ``now`` is in steady seconds.
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
            cpu = min(1.0, max(0.0, busy))  # the kernel's idle and iowait counters can go backwards
        found = {"cpu": cpu, **self._memory}
        host = {key: value for key, value in found.items() if value is not None}
        return {"host": host, "tunables": self._tunables}


_OBJSET = re.compile(
    r".* (?P<crtime>\d+) (?P<snaptime>\d+)\n.*\ndataset_name +\d+ ++(?P<dataset_name>.*)\n"
    + "".join(rf"{key} +\d+ +(?P<{key}>\d+)\n" for key in ("writes", "nwritten", "reads", "nread")),
    re.ASCII,
)
"""Beginning of the kstat of a dataset or volume: nanoseconds when it was created and when it was
read, its name, and its I/O in between (module/zfs/dataset_kstats.c; kstat_seq_show_headers and
kstat_seq_show_named in module/os/linux/spl/spl-kstat.c)."""
_OBJSET_BYTES = 1024
"""More than that takes, with a name of 255 bytes; many counters of the intent log follow."""


def _objset(file: str) -> dict[str, str] | None:
    """Return the fields of a kstat by name; None if it is gone, as of a dataset just unmounted."""
    try:
        text = bytes_in(file, _OBJSET_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    match = _OBJSET.match(text)
    return match and match.groupdict()


BUSY_SHARE = 0.005
"""Share of the time that may be spent on a pool's datasets: there may be thousands, each a file."""


class DatasetMeter:
    """Reads the logical I/O of datasets and volumes, less often where there are many."""

    def __init__(self, root: Path, steady: Callable[[], float]) -> None:
        self._root = root
        self._steady = steady
        self._next: dict[str, float] = {}
        """When each pool is due, in steady seconds."""

    def due(self, pool: str) -> bool:
        """Return whether it is time to read a pool."""
        return self._steady() >= self._next.get(pool, float("-inf"))

    def read(self, pool: str) -> list[dict[str, str]]:
        """Return ``objsets`` of ``zfs/raw.py``; empty where the kernel has none."""
        began, folder = self._steady(), self._root / "proc/spl/kstat/zfs" / pool
        files = (f"{folder}/{name}" for name in names_in(folder) if name.startswith("objset-"))
        found = [fields for fields in map(_objset, files) if fields is not None]
        self._next[pool] = began + max(EVERY, (self._steady() - began) / BUSY_SHARE)
        return found


def cpu_time(root: Path = ROOT) -> CpuTime | None:
    """Return CPU time from the first line of /proc/stat, else from psutil; None without either."""
    try:
        words = bytes_in(root / "proc/stat").split(b"\n", 1)[0].split()
        ticks = [int(word) for word in words[1 : 1 + _COUNTED]]
        return CpuTime(ticks[_IDLE] + ticks[_IOWAIT], sum(ticks))
    except (OSError, ValueError, IndexError):
        psutil = find_psutil()
        times = psutil.cpu_times() if psutil else None
        return None if times is None else CpuTime(times.idle, sum(times))


def memory(root: Path = ROOT) -> Mapping[str, int]:
    """Return ``memory_total`` and ``memory_available`` in bytes; empty if they are unknown."""
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
    """Return the psutil module, or None: a single-file (zipapp) program has no compiled modules."""
    try:
        import psutil
    except ImportError:
        return None
    return psutil
