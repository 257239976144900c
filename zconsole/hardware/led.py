"""The locate LED of an enclosure's slot, in sysfs (drivers/misc/enclosure.c, drivers/scsi/ses.c).

Nothing here has a deadline: reading or writing asks the enclosure, which may take seconds or hang.
The fault LED beside it is the kernel's and ZED's, and never written.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from zconsole.errors import UsageError
from zconsole.hardware.device import Contents
from zconsole.hardware.machine import disks
from zconsole.system.host import ROOT, bytes_in, text_in

ON, OFF = "1", "0"


@dataclass(frozen=True, slots=True)
class LedSlot:
    """A slot of an enclosure, so that it is found again after a reboot."""

    enclosure: str
    """The enclosure's own id (``0x5000…``), the same after a reboot; empty: the kernel has none."""
    component: str
    """The kernel's name of the slot: ``Slot 01``."""
    address: str
    """The enclosure's name in /sys (``0:0:8:0``), which a reboot may change."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the slot, whatever its address is now."""
        return self.enclosure or self.address, self.component

    @property
    def name(self) -> str:
        """What people call it where nothing better is known."""
        return f"{self.component} of enclosure {self.enclosure or self.address}"


def slot_of(locate: str) -> LedSlot:
    """The slot whose locate file this is (``Device.locate``).

    Raises UsageError for a path that is not one.
    """
    path = Path(locate)
    if path.name != "locate" or len(path.parts) < 4:
        raise UsageError(f"{locate} is not the LED of an enclosure's slot")
    box = path.parent.parent
    return LedSlot(text_in(box / "id"), path.parent.name, box.name)


def led_of(slot: LedSlot, serial: str, root: Path = ROOT) -> Path | None:
    """The locate file of a slot as /sys has it now; None when it is not there, or not certain.

    Two expanders of one chassis share its id, and chassis with a made-up id share it with others.
    Of several, the one counts that has the disk with this serial number, else the one that has the
    address of then: to light another bay would be worse than none.
    """
    name = slot.component
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        return None  # a name from a record must stay in its directory
    found = {}
    for box in _enclosures(root):
        same = text_in(box / "id") == slot.enclosure
        led = box / name / "locate"
        if same and (slot.enclosure or box.name == slot.address) and led.exists():
            found[box.name] = led.resolve()
    if len(found) > 1:
        holding = {disk.locate for disk in disks(root, _unread) if serial and disk.serial == serial}
        with_disk = {address: led for address, led in found.items() if str(led) in holding}
        first = next(iter(with_disk.values()), None)
        return (with_disk or found).get(slot.address, first)
    return next(iter(found.values()), None)


def read_led(path: Path) -> str:
    """What the enclosure says of the LED: ON or OFF. Raises OSError."""
    return bytes_in(path).decode("ascii", "replace").strip()


def write_led(path: Path, value: str) -> None:
    """Switch the LED. Raises OSError; the kernel tells nothing of an enclosure that refuses."""
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # makes no file
    try:
        os.write(handle, value.encode("ascii"))
    finally:
        os.close(handle)


def _enclosures(root: Path) -> list[Path]:
    place = root / "sys/class/enclosure"
    with contextlib.suppress(OSError):
        return sorted(place.iterdir())
    return []


def _unread(_: Path) -> Contents:
    return Contents(unread=True)
