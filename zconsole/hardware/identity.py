"""Identity of disks (serial number, World Wide Name, model) and other facts of a device.

All of it is in the kernel's memory or in udev's database; no request goes to a disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from zconsole.hardware.location import disks_below
from zconsole.pool.chassis import LeafDisk
from zconsole.system.host import PAGE, ROOT, bytes_in, number_in, tidy, word
from zconsole.zfs.sources.blockdev import SECTOR, node_name, udev_properties

_SERIAL_PAGE = 0x80
"""Unit Serial Number page (SPC-4, 7.8.15): a header of four bytes, then text."""


def identity(disk: Path, root: Path = ROOT) -> LeafDisk:
    """Return serial number, World Wide Name and model of a disk, by its folder in /sys/block.

    Unknown fields are empty. The kernel's values take precedence over udev's, which may be old.
    """
    udev = udev_properties(disk, root)

    def _first(*names: str) -> str:
        return next(filter(None, (word(disk / name) for name in names)), "")

    serial = tidy(_first("serial", "device/serial") or udev.get("ID_SERIAL_SHORT", ""))
    return LeafDisk(
        serial=serial or _page_serial(disk / "device/vpd_pg80"),
        wwn=_first("wwid", "device/wwid") or tidy(udev.get("ID_WWN", "")),
        model=_first("device/model") or tidy(udev.get("ID_MODEL", "")),
    )


def _page_serial(page: Path) -> str:
    try:
        found = bytes_in(page, PAGE)
    except OSError:
        return ""
    if found[1:2] != bytes((_SERIAL_PAGE,)):
        return ""
    length = int.from_bytes(found[2:4], "big")
    return tidy(found[4 : 4 + length].decode("ascii", "replace"))


def device_facts(path: str, root: Path = ROOT) -> Mapping[str, str]:
    """Return facts of the disks under a leaf, without starting a process or accessing a disk.

    Keys, where known: device, disks, serial, model, size (bytes), rotational (0, 1),
    logical_sector, physical_sector (bytes).
    """
    name = node_name(path, root)
    if name is None:
        return {}
    disks = [path for names in disks_below(path, root) for path in names[1:] or names]
    columns: dict[str, list[str]] = {"disks": disks if disks != [name] else []}
    for folder in (root / "sys/block" / disk for disk in disks):
        who, vendor = identity(folder, root), word(folder / "device/vendor")
        # libata reports the vendor ATA for every disk, and NVMe a PCI id: neither belongs to the
        # model.
        known = vendor and not vendor.startswith("0x") and vendor != "ATA" and who.model
        for key, value in (
            ("serial", who.serial),
            ("model", f"{vendor} {who.model}" if known else who.model),
            ("rotational", word(folder / "queue/rotational")),
            ("logical_sector", word(folder / "queue/logical_block_size")),
            ("physical_sector", word(folder / "queue/physical_block_size")),
        ):
            columns.setdefault(key, []).append(value)
    sectors = number_in(root / "sys/class/block" / name.replace("/", "!") / "size")
    facts = {"device": name, "size": str(sectors * SECTOR) if sectors else ""}
    facts |= {key: " ".join(dict.fromkeys(filter(None, row))) for key, row in columns.items()}
    return {key: value for key, value in facts.items() if value}
