"""A block device or file of the machine, with all that matters for giving it to a pool."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a device."""

    names: tuple[str, ...] = ()
    """Filesystems and the like, by their libblkid names: ``ext4``, ``LVM2_member``."""
    zfs_pool: str | None = None
    """Pool name in a ZFS label, empty if the label does not tell; None without a label in use."""
    unread: bool = False
    """Whether the device could not be read (no permission, no answer)."""
    table: tuple[tuple[int, int], ...] = ()
    """Number and start in bytes of each partition in its GPT."""


@dataclass(frozen=True, slots=True)
class Device:
    """A whole disk, a partition, a file, or a device stacked on these.

    ``path`` is the name to give to zpool. A partition has the identity and location of its disk;
    all other fields are its own.
    """

    path: str
    """Path for zpool: a link that survives a reboot (by-id and the like), otherwise the node."""
    node: str = ""
    """Device node: ``/dev/sdb``."""
    aliases: tuple[str, ...] = ()
    """Every other path of the device and of its partitions."""
    kind: str = "disk"
    """disk, partition, file, or stacked: dm-crypt, LVM, md, loop and the like."""
    size: int | None = None
    model: str = ""
    serial: str = ""
    wwn: str = ""
    """World Wide Name, as sysfs or udev writes it: ``naa.5000…``, ``eui.…``, ``0x5000…``."""
    logical: int | None = None
    """Logical sector size in bytes."""
    physical: int | None = None
    contents: Contents = field(default_factory=Contents)
    """Contents of the device and of its partitions."""
    unlisted: tuple[int, ...] = ()
    """Numbers of GPT partitions that the kernel lacks or has at another place.

    Another host may have made them since the kernel read the table; their contents are unknown.
    """
    mounted: tuple[str, ...] = ()
    swap: bool = False
    holders: tuple[str, ...] = ()
    """Device-mapper or md devices built on it."""
    read_only: bool = False
    temperature: float | None = None
    """Degrees Celsius, if smartctl reported it."""
    failure: str = ""
    """``failed in tank: FAULTED``, or that its SMART says so; empty if nothing is known."""
    shingled: str = ""
    """Who says that it is shingled (``hardware.shingled``); empty if nothing is known."""
    locate: str | None = None
    """LED file of its enclosure slot in /sys, if any."""
    enclosure: str = ""
    """Key of its enclosure; empty if unknown."""
    slot: str = ""
    """Name of the slot, as the enclosure reports it."""
    bay: str = ""
    """Name of the bay for people: an alias by location, or enclosure and slot; empty if unknown."""
    unnamed: bool = False
    """Whether udev has not named it yet: its links, and with them ``path``, are still to come."""
    port: str = ""
    """by-path name of its port; the next disk in that port has the same."""
    number: str = ""
    """Number of a partition."""
    below: tuple[str, ...] = ()
    """Nodes of the disks under a stacked device."""
    parts: tuple[Device, ...] = ()
    """Partitions of a disk, each as a device that can be given to a pool on its own."""
