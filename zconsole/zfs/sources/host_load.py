"""How busy the machine is: processors, memory, and what ZFS caches in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zconsole.system.host import ROOT
from zconsole.zfs.sources.kstat import arc_bytes


class LoadMeter:
    """CPU and memory of the machine, in the raw form's names."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._measured = False

    def read(self) -> Mapping[str, Any]:
        """CPU share since the last call, absent from the first; memory and ARC in bytes."""
        import psutil

        memory, cpu = psutil.virtual_memory(), psutil.cpu_percent(None) / 100
        found = {
            "cpu": cpu if self._measured else None,
            "memory_total": memory.total,
            "memory_available": memory.available,
            "arc_bytes": arc_bytes(self._root),
        }
        self._measured = True
        return {key: value for key, value in found.items() if value is not None}
