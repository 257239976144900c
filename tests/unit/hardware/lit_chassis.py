"""A machine whose disks are in enclosures: /sys and the boot id, made of files."""

from __future__ import annotations

from pathlib import Path

from zconsole.hardware.light import Leds, LedSlot, LocateLights, slot_of
from zconsole.system.audit import MemoryLog

ID = "0x50050cc10c4010aa"
NOW = 1_795_000_000.0


class Chassis:
    """Enclosures of one machine, and a console's view of their lights."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.now = NOW
        self.log = MemoryLog()
        self.boot("boot-1")
        for place in ("sys/class/enclosure", "sys/block"):
            (root / place).mkdir(parents=True)

    def boot(self, boot_id: str) -> None:
        place = self.root / "proc/sys/kernel/random"
        place.mkdir(parents=True, exist_ok=True)
        (place / "boot_id").write_text(f"{boot_id}\n")

    def enclosure(self, address: str = "0:0:8:0", box_id: str = ID, slots: int = 2) -> None:
        box = self.root / "sys/class/enclosure" / address
        for number in range(1, slots + 1):
            slot = box / f"Slot {number:02}"
            slot.mkdir(parents=True)
            for name in ("locate", "fault"):
                (slot / name).write_text("0")
        (box / "id").write_text(box_id and f"{box_id}\n")

    def moved(self, before: str, after: str) -> None:
        boxes = self.root / "sys/class/enclosure"
        (boxes / before).rename(boxes / after)

    def disk(self, name: str, serial: str, address: str, number: int) -> None:
        device = self.root / "sys/block" / name / "device"
        device.mkdir(parents=True)
        (device.parent / "size").write_text("1000\n")
        (device / "serial").write_text(f"{serial}\n")
        (device / "wwid").write_text(f"naa.{serial}\n")
        slot = self.root / "sys/class/enclosure" / address / f"Slot {number:02}"
        (device / f"enclosure_device:Slot {number:02}").symlink_to(slot)

    def led(self, address: str = "0:0:8:0", number: int = 1) -> Path:
        return self.root / "sys/class/enclosure" / address / f"Slot {number:02}" / "locate"

    def slot(self, address: str = "0:0:8:0", number: int = 1) -> LedSlot:
        return slot_of(str(self.led(address, number)))

    def lights(self) -> LocateLights:
        """Return the lights as another console sees them."""
        return LocateLights(self.state, Leds(self.root), lambda: self.now, self.log)
