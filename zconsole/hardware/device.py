"""A block device or file of the machine, as far as it matters for giving it to a pool."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Contents:
    """What is on a device."""

    names: tuple[str, ...] = ()
    """Filesystems and the like, as libblkid calls them: ``ext4``, ``LVM2_member``."""
    zfs_pool: str | None = None
    """Name of the pool that a ZFS label says it belongs to, empty where the label does not tell;
    None without a label in use."""
    unread: bool = False
    """Whether it could not be looked at (no permission, no answer)."""
    table: tuple[tuple[int, int], ...] = ()
    """The numbers of the partitions in its GPT, and where they begin, in bytes."""


@dataclass(frozen=True, slots=True)
class Device:
    """One whole disk, a partition, a file, or what is made of these.

    ``path`` is the name to give to zpool.
    A partition has the identity and place of its disk, and all else of its own.
    """

    path: str
    """The by-id link where there is one, else the node: names that survive a reboot first."""
    node: str = ""
    """``/dev/sdb``."""
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
    """What is on it and on its partitions."""
    unlisted: tuple[int, ...] = ()
    """Numbers in its GPT of partitions that the kernel does not have, or has elsewhere: another
    host may have made them since the kernel read the table, and what is in them is unseen."""
    mounted: tuple[str, ...] = ()
    swap: bool = False
    holders: tuple[str, ...] = ()
    """Device-mapper or md devices built on it."""
    read_only: bool = False
    temperature: float | None = None
    """Degrees Celsius, where smartctl gave it."""
    locate: str | None = None
    """The enclosure's LED file in /sys, where there is one."""
    enclosure: str = ""
    """What tells the enclosure it sits in from others; empty where none is known."""
    slot: str = ""
    """The enclosure's own name of the slot."""
    bay: str = ""
    """The place as people call it: an alias by place, else enclosure and slot; empty: unknown."""
    unnamed: bool = False
    """Whether udev has yet to name it: its links, and with them ``path``, are still to come."""
    port: str = ""
    """The by-path name of where it is plugged in: the next disk in that place has it too."""
    number: str = ""
    """The number of a partition."""
    below: tuple[str, ...] = ()
    """The nodes of the disks that a stacked device is made of."""
    parts: tuple[Device, ...] = ()
    """The partitions of a disk, each as a device that may be given to a pool by itself."""
