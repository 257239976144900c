"""Faked trees of /sys and /dev: three real chassis layouts, in the kernel's own format."""

from __future__ import annotations

import os
from pathlib import Path
from string import ascii_lowercase

PCI = "sys/devices/pci0000:00/0000:00:01.0"


class Machine:
    """A machine without disks, below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("sys/block", "sys/class/block", "sys/class/enclosure", "dev/disk/by-path"):
            (root / folder).mkdir(parents=True)
        for folder in ("run/udev/data", "dev/disk/by-id", "dev/mapper", "proc/self", "etc/zfs"):
            (root / folder).mkdir(parents=True)
        (root / "proc/swaps").write_text("Filename Type Size Used Priority\n")
        (root / "proc/self/mountinfo").write_text("")
        self.minor = 0

    def write(self, folder: Path, **files: str | int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n")

    def link(self, place: str, target: Path) -> None:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(target, path.parent))

    def disk(self, name: str, device: Path, serial: str, by_path: str = "") -> None:
        """Add a whole disk whose SCSI device or NVMe controller is the directory ``device``."""
        self.minor += 1
        block = device / "block" / name if name.startswith("sd") else device / name
        self.write(block, size=2**32, dev=f"8:{self.minor}", ro=0)
        self.write(block / "queue", logical_block_size=512, physical_block_size=4096)
        (block / "holders").mkdir()
        (block / "slaves").mkdir()
        (block / "device").symlink_to(os.path.relpath(device, block))
        self.link(f"sys/block/{name}", block)
        self.link(f"sys/class/block/{name}", block)
        (self.root / "dev" / name).write_bytes(bytes(4096))
        udev = f"E:ID_SERIAL_SHORT={serial}\n"
        (self.root / f"run/udev/data/b8:{self.minor}").write_text(udev)
        if by_path:
            self.link(f"dev/disk/by-path/{by_path}", self.root / "dev" / name)

    def sas(self, name: str, host: int, target: int, serial: str, by_path: str = "") -> Path:
        """Add a SAS disk; returns its SCSI device."""
        address = f"{host}:0:{target}:0"
        device = self.root / PCI / f"0000:0{host + 1}:00.0/host{host}/{address}"
        self.write(device, vendor="LAB", model="DISK 2T", wwid=f"naa.{serial}", state="running")
        self.disk(name, device, serial, by_path)
        return device

    def enclosure(
        self,
        address: str,
        key: str,
        slots: dict[int, Path | None],
        name: str = "Slot {:02}",
        model: str = "SAS3x40",
    ) -> Path:
        """Add a path to an enclosure; ``slots``: number to SCSI device, None for an empty slot."""
        scsi = self.root / PCI / f"0000:0{int(address[0]) + 1}:00.0/host{address[0]}" / address
        place = scsi / "enclosure" / address
        self.write(scsi, vendor="LSI", model=model)
        self.write(place, id=key, components=len(slots))
        (place / "device").symlink_to("../..")
        (place / "power").mkdir()
        for number, device in slots.items():
            self.slot(place, name.format(number), number, device)
        self.link(f"sys/class/enclosure/{address}", place)
        return place

    def slot(self, place: Path, name: str, number: int, device: Path | None) -> Path:
        slot = place / name
        status = "OK" if device else "not installed"
        self.write(slot, type="array device", slot=number, fault=0, locate=0, status=status)
        if device is not None:
            (slot / "device").symlink_to(os.path.relpath(device, slot))
            link = device / f"enclosure_device:{name}"
            link.symlink_to(os.path.relpath(slot, device))
        return slot

    def multipath(self, dm: str, name: str, *members: str) -> None:
        """Combine several paths to one disk as multipathd does."""
        block = self.root / "sys/devices/virtual/block" / dm
        self.minor += 1
        self.write(block, size=2**32, dev=f"253:{self.minor}", ro=0)
        self.write(block / "dm", name=name, uuid=f"mpath-{name}")
        self.write(block / "queue", logical_block_size=512, physical_block_size=4096)
        (block / "holders").mkdir()
        for member in members:
            self.link(f"sys/devices/virtual/block/{dm}/slaves/{member}", self.block(member))
            (self.block(member) / "holders" / dm).symlink_to(block)
        self.link(f"sys/block/{dm}", block)
        self.link(f"sys/class/block/{dm}", block)
        (self.root / "dev" / dm).write_bytes(bytes(4096))
        self.link(f"dev/mapper/{name}", self.root / "dev" / dm)

    def block(self, name: str) -> Path:
        return Path(os.path.realpath(self.root / "sys/class/block" / name))

    def nvme(self, number: int, address: str, slot: str = "") -> None:
        """Add an NVMe disk at a PCI address, in a slot if the firmware names it."""
        function = self.root / PCI / "0000:64:00.0" / address
        device = function / f"nvme/nvme{number}"
        self.write(device, model="LAB NVME", serial=f"N{number}")
        self.disk(f"nvme{number}n1", device, f"N{number}", f"pci-{address}-nvme-1")
        if slot:
            place = self.root / "sys/bus/pci/slots" / slot
            self.write(place, address=address.partition(".")[0])

    def alias(self, name: str, disk: str) -> None:
        self.link(f"dev/disk/by-vdev/{name}", self.root / "dev" / disk)


def sd(index: int) -> str:
    """Return ``sda``, …, ``sdz``, ``sdaa``, …."""
    letters = ascii_lowercase
    return "sd" + ("" if index < 26 else letters[index // 26 - 1]) + letters[index % 26]


def expander_24(root: Path) -> Machine:
    """Create a server with 24 bays behind one expander; bays 3, 11 and 23 are empty."""
    machine = Machine(root)
    slots: dict[int, Path | None] = {}
    for bay in range(24):
        port = f"pci-0000:01:00.0-sas-exp0x500304801ee3ee7f-phy{bay}-lun-0"
        empty = bay in (3, 11, 23)
        slots[bay] = None if empty else machine.sas(sd(bay), 0, bay, f"5000c50{bay:09x}", port)
    machine.enclosure("0:0:24:0", "0x500304801ee3ee7f", slots)
    return machine


def jbod_60(root: Path, second_id: str = "0x5000ccab0512ab00") -> Machine:
    """Create a shelf of 60 bays with two paths; each disk is two sd under one multipath device."""
    machine = Machine(root)
    paths: list[dict[int, Path | None]] = [{}, {}]
    for bay in range(60):
        if bay in (17, 59):
            paths[0][bay] = paths[1][bay] = None
            continue
        names = sd(bay), sd(60 + bay)
        for host, name in enumerate(names):
            port = f"pci-0000:0{host + 1}:00.0-sas-exp0x5000ccab0512ab{host:02x}-phy{bay}-lun-0"
            paths[host][bay] = machine.sas(name, host, bay, f"5000cca{bay:09x}", port)
        machine.multipath(f"dm-{bay}", f"mpath{bay:02}", *names)
    machine.enclosure("0:0:60:0", "0x5000ccab0512ab00", paths[0], "SLOT {:02} A", "H4060-J")
    machine.enclosure("1:0:60:0", second_id, paths[1], "SLOT {:02} B", "H4060-J")
    return machine


def nvme_12(root: Path) -> Machine:
    """Create a server with NVMe slots 1 to 12, one of them empty, and a boot disk in none."""
    machine = Machine(root)
    for number in range(1, 13):
        if number != 7:
            machine.nvme(number, f"0000:{0x64 + number:02x}:00.0", str(number))
    machine.write(root / "sys/bus/pci/slots/7", address="0000:6b:00")
    machine.nvme(0, "0000:04:00.0")
    return machine
