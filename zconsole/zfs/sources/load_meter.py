"""CPU and memory of the machine.

Formats: proc_stat(5), proc_meminfo(5). Where there are no such files, psutil's figures stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.system.host import ROOT, bytes_in
from zconsole.zfs.sources.kstat import arc_bytes

COUNTED = 8
"""Fields of the ``cpu`` line; the time of guests, behind them, is part of user and nice."""
IDLE, IOWAIT = 3, 4


class CpuTime(NamedTuple):
    """What all processors did since the machine started, in any one unit."""

    idle: float
    total: float


class LoadMeter:
    """CPU and memory of the machine, in the raw form's names."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._before: CpuTime | None = None

    def read(self) -> Mapping[str, Any]:
        """CPU share since the last call, absent from the first; memory and ARC in bytes."""
        found = {
            "cpu": self._cpu_share(),
            **memory(self._root),
            "arc_bytes": arc_bytes(self._root),
        }
        return {key: value for key, value in found.items() if value is not None}

    def _cpu_share(self) -> float | None:
        now, before = cpu_time(self._root), self._before
        self._before = now
        if now is None or before is None or now.total <= before.total:
            return None
        busy = 1 - (now.idle - before.idle) / (now.total - before.total)
        return min(1.0, max(0.0, busy))  # the kernel's idle and iowait can run back


def cpu_time(root: Path = ROOT) -> CpuTime | None:
    """The first line of /proc/stat, or psutil's figures; None without either."""
    try:
        words = bytes_in(root / "proc/stat").split(b"\n", 1)[0].split()
        ticks = [int(word) for word in words[1 : 1 + COUNTED]]
        return CpuTime(ticks[IDLE] + ticks[IOWAIT], sum(ticks))
    except (OSError, ValueError, IndexError):
        return _psutil_cpu_time()


def memory(root: Path = ROOT) -> Mapping[str, int]:
    """``memory_total`` and ``memory_available`` in bytes; empty where nobody knows them."""
    try:
        lines = bytes_in(root / "proc/meminfo").splitlines()
        kilobytes = {words[0]: int(words[1]) for line in lines if len(words := line.split()) > 1}
        total, available = kilobytes[b"MemTotal:"], kilobytes[b"MemAvailable:"]
    except (OSError, ValueError, KeyError):
        return _psutil_memory()
    return {"memory_total": total * 1024, "memory_available": available * 1024}


def _psutil_cpu_time() -> CpuTime | None:
    try:
        import psutil
    except ImportError:
        return None
    times = psutil.cpu_times()
    return CpuTime(times.idle, sum(times))


def _psutil_memory() -> Mapping[str, int]:
    try:
        import psutil
    except ImportError:
        return {}
    found = psutil.virtual_memory()
    return {"memory_total": found.total, "memory_available": found.available}
