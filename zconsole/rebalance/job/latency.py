"""How long the disks keep everybody waiting, from /proc/diskstats (iostats.rst)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

DISKSTATS = Path("/proc/diskstats")


@dataclass(slots=True)
class DiskWait:
    """Mean wait of the requests some block devices completed since the last call, seconds."""

    names: frozenset[str]
    read: Callable[[], str] = DISKSTATS.read_text
    _last: tuple[int, int] | None = None

    def __call__(self) -> float | None:
        """None on the first call and when nothing was completed."""
        requests = milliseconds = 0
        for line in self.read().splitlines():
            words = line.split()
            if words[2] in self.names:
                requests += int(words[3]) + int(words[7])
                milliseconds += int(words[6]) + int(words[10])
        last, self._last = self._last, (requests, milliseconds)
        if last is None or requests <= last[0]:
            return None
        return (milliseconds - last[1]) / (requests - last[0]) / 1000


def device_names(paths: Iterable[str]) -> frozenset[str]:
    """The kernel's names of block device paths, links followed."""
    return frozenset(Path(path).resolve().name for path in paths)


def device_of(major: int, minor: int) -> frozenset[str]:
    """The name of a block device by its number; empty when there is none in /sys."""
    link = Path(f"/sys/dev/block/{major}:{minor}")
    return frozenset({link.resolve().name}) if link.exists() else frozenset()
