"""Temperatures of disks, from the kernel's hardware monitors.

``drivetemp`` and NVMe's own (drivers/hwmon/drivetemp.c, drivers/nvme/host/hwmon.c) ask the disk.
Whether that keeps a rotating disk from falling asleep depends on the disk
(Documentation/hwmon/drivetemp.rst), so one is asked only after it did I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from zconsole.hardware.sysfs import real, word
from zconsole.system.host import ROOT

MONITORS = ("drivetemp", "nvme")
COLDEST, HOTTEST = -50.0, 150.0
"""Degrees Celsius beyond which a reading is a fault."""


class Thermometer:
    """Reads temperatures; remembers which rotating disks were awake."""

    def __init__(self, root: Path = ROOT) -> None:
        self._block = root / "sys/class/block"
        self._known: dict[str, float] = {}
        self._did: dict[str, str] = {}
        """The counters of each rotating disk when it was last asked."""

    def read(self, disks: Iterable[str]) -> Mapping[str, float]:
        """Degrees Celsius by kernel name, those of sleeping disks as they were; may take long."""
        for disk in disks:
            if not self._awake(disk):
                continue
            degrees = temperature(self._block / disk)
            if degrees is None:
                self._known.pop(disk, None)
            else:
                self._known[disk] = degrees
        return dict(self._known)

    def _awake(self, disk: str) -> bool:
        """Whether asking it cannot disturb its sleep: it did I/O since, or it has no motor."""
        if word(self._block / disk / "queue/rotational") == "0":
            return True
        did, before = word(self._block / disk / "stat"), self._did.get(disk)
        self._did[disk] = did
        return before is not None and did != before


def temperature(disk: Path) -> float | None:
    """Degrees Celsius of the disk with this folder in /sys/block; None where nothing tells."""
    device = disk / "device"
    for monitor in (
        *_folders(device / "hwmon"),
        *_folders(device),
        *_folders(device / "device/hwmon"),
    ):
        if word(monitor / "name") in MONITORS:
            return _degrees(word(monitor / "temp1_input"))
    return None


def _folders(place: Path) -> list[Path]:
    return sorted(real(place).glob("hwmon[0-9]*"))


def _degrees(text: str) -> float | None:
    try:
        degrees = int(text) / 1000
    except ValueError:
        return None
    return degrees if COLDEST < degrees < HOTTEST else None
