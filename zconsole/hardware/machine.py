"""Block devices of the machine, read from /sys, /run/udev, /dev and /proc; never writes.

Formats: Documentation/ABI/stable/sysfs-block, udev's database (systemd, src/libsystemd/sd-device),
proc(5) for swaps. Contents are recognized by the first bytes of a device: by magic numbers as in
libblkid (util-linux, libblkid/src/superblocks) if zpool would refuse to overwrite them; ZFS by the
state in its label (zpool_in_use, libzfs_import.c); a partition table by the GPT (UEFI, 5.3).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from zconsole.hardware.device import Contents, Device
from zconsole.hardware.location import (
    DiskLinks,
    Locations,
    disks_below,
    identity,
    is_multipath,
    links,
    locations,
)
from zconsole.hardware.shingled import shingled
from zconsole.system import mounts
from zconsole.system.host import ROOT, names_in, number_in, real, text_in
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.zfs.sources.blockdev import SECTOR, node_name, slaves, udev_properties

STACKED = ("loop", "nbd", "dm-", "md")
"""Kernel names of stacked or network devices, which are read only if given as a path."""
SKIPPED = (*STACKED, "ram", "zram", "sr", "fd", "zd")
"""Kernel names that are not disks to give to a pool."""

HEADS = 3.0
"""Seconds that all disks together may take to answer.

A dying disk may take minutes, and it is often the disk to replace, or the one that a suspended pool
waits for.
"""
HEAD = 0.2
"""Seconds for each disk once HEADS is used up."""

FIRST = 256 * 1024
"""Bytes of a vdev label (vdev_label_t in vdev_impl.h).

The first ones of a device have everything that is recognized, except the other labels.
"""

_MAGICS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"XFSB", "xfs"),
    (0, b"LUKS\xba\xbe", "crypto_LUKS"),
    (0x218, b"LVM2 001", "LVM2_member"),
    (0x438, b"\x53\xef", "ext2, 3 or 4"),
    (4086, b"SWAPSPACE2", "swap"),
    (0x10040, b"_BHRfS_M", "btrfs"),
    (3, b"NTFS    ", "ntfs"),
    (3, b"EXFAT   ", "exfat"),
    (54, b"FAT12   ", "vfat"),
    (54, b"FAT16   ", "vfat"),
    (82, b"FAT32   ", "vfat"),
    (4096, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
    (0x8001, b"CD001", "iso9660"),
)
LABEL_NVLIST = 16 * 1024
"""Offset of the label's nvlist, XDR-encoded."""
LABEL_END = 128 * 1024
"""End of the nvlist."""
XDR = b"\x01"
"""First byte of an XDR-encoded nvlist (NV_ENCODE_XDR)."""

DESTROYED, SPARE, L2CACHE = 2, 3, 4
"""Of pool_state_t: devices of a destroyed pool are free; spares and caches have no txg."""

LINKS = (
    "disk/by-vdev",
    "disk/by-id",
    "disk/by-path",
    "disk/by-partuuid",
    "disk/by-partlabel",
    "mapper",
)
"""Folders of /dev whose links may name a disk or a partition."""

_Lists = Mapping[str, list[str]]
_Read = Callable[[Path], Contents]


@dataclass(frozen=True, slots=True)
class _Machine:
    """Tables that are read once for all disks."""

    root: Path
    links: DiskLinks
    mounted: _Lists
    """Node to its mount points."""
    swaps: frozenset[str]
    """Nodes used as swap."""
    places: Locations
    read: _Read


def contents_of(path: Path) -> Contents:
    """Return the contents recognized from the first bytes of a device.

    An MBR partition table counts, since zpool refuses it (``check_disk`` in zpool_vdev_os.c); a GPT
    does not, as its partitions are checked one by one.
    """
    try:
        head, others = _head_and_labels(path)
    except OSError:
        return Contents(unread=True)
    pools = (_label_pool(label) for label in (head, *others))
    pool = next((name for name in pools if name is not None), None)
    found = [name for offset, magic, name in _MAGICS if head.startswith(magic, offset)]
    kinds = _mbr_kinds(head)
    if not found and pool is None and any(kinds) and 0xEE not in kinds:  # 0xEE is a GPT's
        found.append("an MBR partition table")
    return Contents(tuple(found), pool, table=tuple(_partition_table(head)))


def _label_pool(head: bytes) -> str | None:
    """Return the pool in the label's nvlist; None if it was destroyed or the device detached.

    A detached device's label has txg 0 (``zpool_read_label``, zutil_import.c).
    """
    nvlist = head[LABEL_NVLIST:LABEL_END]
    if not nvlist.startswith(XDR):
        return None
    state, txg = _label_number(nvlist, b"state"), _label_number(nvlist, b"txg")
    if state in (None, DESTROYED) or (not txg and state not in (SPARE, L2CACHE)):
        return None
    name = _pair(nvlist, b"name", 9)
    if name is None:
        return ""
    length = int.from_bytes(nvlist[name : name + 4], "big")
    return nvlist[name + 4 : name + 4 + min(length, 255)].decode("utf-8", "surrogateescape")


def _label_number(nvlist: bytes, name: bytes) -> int | None:
    value = _pair(nvlist, name, 8)
    return None if value is None else int.from_bytes(nvlist[value : value + 8], "big")


def _pair(nvlist: bytes, name: bytes, kind: int) -> int | None:
    """Return the offset of the value of the first pair with this name and type (libnvpair, XDR).

    A pair is the name as an XDR string, then the type (8 uint64, 9 string) and one element.
    """
    padded = name + bytes(-len(name) % 4)
    mark = len(name).to_bytes(4, "big") + padded + kind.to_bytes(4, "big") + b"\0\0\0\x01"
    found = nvlist.find(mark)
    return None if found < 0 else found + len(mark)


def _head_and_labels(path: Path) -> tuple[bytes, list[bytes]]:
    """Return the first bytes, and the other three labels if the first is empty (vdev_label.c).

    Behind a GPT, zpool looks for labels only in the partitions (check_disk, zpool_vdev_os.c).
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        head, others = os.pread(handle, FIRST, 0), []
        if not head.startswith(XDR, LABEL_NVLIST) and _gpt_sector(head) is None:
            end = os.lseek(handle, 0, os.SEEK_END) // FIRST * FIRST
            for place in (FIRST, end - 2 * FIRST, end - FIRST):
                with contextlib.suppress(OSError):  # before the first byte, or a bad sector
                    others.append(os.pread(handle, LABEL_END, place))
        return head, others
    finally:
        os.close(handle)


def _gpt_sector(head: bytes) -> int | None:
    """Return the sector size in bytes, from the place of the GPT header; None without one."""
    return next((size for size in (512, 4096) if head.startswith(b"EFI PART", size)), None)


def _partition_table(head: bytes) -> Iterator[tuple[int, int]]:
    """Yield number and start in bytes of each partition in a GPT.

    Without a protective MBR the kernel ignores the GPT (is_gpt_valid, block/partitions/efi.c).
    """
    sector = _gpt_sector(head)
    if sector is None or 0xEE not in _mbr_kinds(head):
        return

    def _number(place: int, length: int) -> int:
        return int.from_bytes(head[place : place + length], "little")

    first, step = _number(sector + 72, 8) * sector, _number(sector + 84, 4)
    for index in range(min(_number(sector + 80, 4), (len(head) - first) // max(step, 128))):
        entry = first + index * step
        if any(head[entry : entry + 16]):  # its type; zero for an unused entry
            yield index + 1, _number(entry + 32, 8) * sector


def _mbr_kinds(head: bytes) -> bytes:
    """Return the types of the four MBR partitions; empty without a boot signature."""
    return head[450:514:16] if head[510:512] == b"\x55\xaa" else b""


def devices(root: Path = ROOT, files: Iterable[str] = ()) -> tuple[Device, ...]:
    """Return the machine's disks, and the files and block devices in ``files``.

    May take seconds.
    """
    machine = _machine(root, _in_time())
    found = list(_disks(machine))
    for path in files:
        if (file := file_device(path, machine.read)) is not None:
            found.append(file)
        elif (name := node_name(path, root)) is not None:
            node = str(root / "dev" / name)
            if not any(node in device.aliases for device in found):
                found += _stacked(machine, name)
            found = [_linked(device, node, path) for device in found]
    return tuple(found)


def _stacked(machine: _Machine, name: str) -> Iterator[Device]:
    """Yield the stacked device of this name, or the one with this partition; nothing for disks."""
    entry = real(machine.root / "sys/class/block" / name)
    whole = entry.parent if (entry / "partition").exists() else entry
    # A multipath device without paths is a disk that was pulled.
    if not whole.name.startswith(STACKED) or is_multipath(whole.name, machine.root):
        return
    if number_in(whole / "size"):
        under = disks_below(f"/dev/{name}", machine.root)
        below = tuple(str(machine.root / "dev" / names[0]) for names in under)
        found = _disk(machine, whole.name, ())
        # It keeps the name that was typed, even if udev has links still to make.
        parts = tuple(replace(part, below=below, unnamed=False) for part in found.parts)
        yield replace(found, kind="stacked", below=below, unnamed=False, parts=parts)


def _linked(device: Device, node: str, path: str) -> Device:
    """Return the device with the alias ``path`` added, if ``node`` is its own or a partition's."""
    if node not in device.aliases or path in device.aliases:
        return device
    parts = tuple(_linked(part, node, path) for part in device.parts)
    return replace(device, aliases=(*device.aliases, path), parts=parts)


def _in_time() -> _Read:
    """Return a ``contents_of`` that gives up on slow devices, within a shared budget of time."""
    left = HEADS

    def _read(path: Path) -> Contents:
        nonlocal left
        # Each device that times out takes from the common budget.
        patience = max(left, HEAD)
        try:
            return Patient().call(partial(contents_of, path), patience)
        except NoAnswerError:
            left -= patience
            return Contents(unread=True)

    return _read


def disks(root: Path = ROOT, read: _Read = contents_of) -> tuple[Device, ...]:
    """Return every whole disk of the machine in kernel name order; unreadable parts are unknown.

    A disk with several paths appears once, under the name of the device that joins them.
    """
    return _disks(_machine(root, read))


def _machine(root: Path, read: _Read) -> _Machine:
    swaps = frozenset(line.split()[0] for line in text_in(root / "proc/swaps").splitlines()[1:])
    return _Machine(root, links(root, *LINKS), _mounted(root), swaps, locations(root), read)


def _disks(machine: _Machine) -> tuple[Device, ...]:
    root = machine.root
    names = names_in(root / "sys/block")
    joined = {name: slaves(name, root) for name in names if is_multipath(name, root)}
    members = {member for each in joined.values() for member in each}
    return _without_shared_serials(
        _disk(machine, name, joined.get(name, ()))
        for name in names
        # The multipath device of a pulled disk stays as long as it is open.
        if (joined[name] if name in joined else not name.startswith(SKIPPED))
        and name not in members
        and number_in(root / "sys/block" / name / "size")
    )


def _without_shared_serials(found: Iterable[Device]) -> tuple[Device, ...]:
    """Return the disks, dropping serial numbers that several disks without a WWN share.

    Some USB adapters report the same one for every disk, so it identifies none of them.
    """
    disks = tuple(found)
    counts = Counter(each.serial for each in disks if each.serial and not each.wwn)
    return tuple(
        replace(each, serial="", parts=tuple(replace(part, serial="") for part in each.parts))
        if not each.wwn and counts[each.serial] > 1
        else each
        for each in disks
    )


def file_device(path: str, read: _Read = contents_of) -> Device | None:
    """Return a regular file as a device, as pools on files use it; None if it is not a file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Device(path, kind="file", size=status.st_size, contents=read(Path(path)))


def _node(machine: _Machine, entry: Path) -> Device:
    """Return one node without its partitions (a disk or a partition), by its folder in /sys.

    If the contents can't be read, they are taken from udev.
    """
    name, dev = entry.name, machine.root / "dev"
    links = (str(dev / name), *machine.links.get(name, ()))
    # /proc/mounts uses this name even if udev has made no link of it.
    called = dict.fromkeys((*links, str(dev / "mapper" / text_in(entry / "dm/name"))))
    sectors = number_in(entry / "size")
    udev = udev_properties(entry, machine.root)
    contents = machine.read(dev / name)
    part = re.match(r"part(\d+)-", text_in(entry / "dm/uuid"))
    return Device(
        path=_best(links),
        node=links[0],
        aliases=links,
        size=sectors and sectors * SECTOR,
        contents=_by_udev(udev) if contents.unread else contents,
        mounted=tuple(where for path in called for where in machine.mounted.get(path, ())),
        swap=not machine.swaps.isdisjoint(called),
        holders=tuple(names_in(entry / "holders")),
        read_only=text_in(entry / "ro") == "1",
        unnamed=_is_unnamed(udev, machine.root),
        number=part[1] if part else text_in(entry / "partition"),
    )


def _disk(machine: _Machine, name: str, members: tuple[str, ...]) -> Device:
    """Return one disk; ``members`` are its paths if there are several."""
    block = machine.root / "sys/block"
    entry, first = block / name, block / (members[0] if members else name)
    parts = _partitions(entry)
    own = _node(machine, entry)
    # /sys/block has partitions inside their disk's folder, but device-mapper devices side by side.
    folder = block if name.startswith("dm-") else entry
    inside = [_node(machine, folder / part) for part in parts]
    nodes = (own, *inside)
    who = identity(first, machine.root)
    where = machine.places.of((name, *members))
    whole = replace(
        own,
        aliases=tuple(link for node in nodes for link in node.aliases),
        model=who.model,
        serial=who.serial,
        wwn=who.wwn,
        logical=number_in(entry / "queue/logical_block_size"),
        physical=number_in(entry / "queue/physical_block_size"),
        shingled=shingled(text_in(first / "queue/zoned"), who.model),
        contents=_together(own, inside),
        unlisted=_unlisted(own, inside, folder),
        mounted=tuple(place for node in nodes for place in node.mounted),
        swap=any(node.swap for node in nodes),
        holders=tuple(each for node in nodes for each in node.holders if each not in parts),
        locate=next(filter(None, (_led(block / path) for path in members or (name,))), None),
        enclosure=where.enclosure,
        slot=where.slot,
        bay=where.bay,
        port=where.port,
    )
    return replace(whole, parts=tuple(_partition(whole, own, parts, part) for part in inside))


def _partition(whole: Device, disk: Device, parts: Sequence[str], own: Device) -> Device:
    """Return one partition as a device; it is in use if its whole disk is."""
    # A ZFS label on the whole disk counts for each of its partitions.
    pool = disk.contents.zfs_pool if own.contents.zfs_pool is None else own.contents.zfs_pool
    return replace(
        whole,
        path=own.path,
        node=own.node,
        aliases=own.aliases,
        kind="partition",
        number=own.number,
        size=own.size,
        contents=replace(own.contents, zfs_pool=pool),
        mounted=(*disk.mounted, *own.mounted),
        swap=disk.swap or own.swap,
        holders=(*(each for each in disk.holders if each not in parts), *own.holders),
        read_only=disk.read_only or own.read_only,
        unnamed=disk.unnamed or own.unnamed,
    )


def _is_unnamed(known: Mapping[str, str], root: Path) -> bool:
    """Return whether udev runs and has not finished with a disk.

    udev writes its record after making the links; from systemd 256 on also before, marked as still
    in progress (src/udev/udev-event.c).
    """
    if not (root / "run/udev/data").is_dir():
        return False
    return not known or known.get("ID_PROCESSING") == "1"


def _partitions(entry: Path) -> list[str]:
    """Return the partitions of a disk; names start with the disk's (``disk_name``, block/genhd.c).

    Partitions of a device-mapper device are devices of their own, built on it (kpartx(8)).
    """
    if entry.name.startswith("dm-"):
        built = names_in(entry / "holders")
        return [n for n in built if text_in(entry.parent / n / "dm/uuid").startswith("part")]
    inside = (n for n in names_in(entry) if n.startswith(entry.name))
    return [n for n in inside if (entry / n / "partition").exists()]


def _unlisted(disk: Device, inside: Iterable[Device], folder: Path) -> tuple[int, ...]:
    """Return the numbers in the partition table without a kernel partition in that place."""
    starts = {part.number: number_in(folder / Path(part.node).name / "start") for part in inside}
    return tuple(
        number
        for number, begin in disk.contents.table
        if str(number) not in starts or starts[str(number)] not in (None, begin / SECTOR)
    )


def _together(disk: Device, inside: Sequence[Device]) -> Contents:
    """Return the combined contents of a disk and its partitions."""
    found = [disk.contents, *(part.contents for part in inside)]
    names = [f"{name} on {Path(part.node).name}" for part in inside for name in part.contents.names]
    pools = [each.zfs_pool for each in found if each.zfs_pool is not None]
    return Contents(
        tuple(dict.fromkeys((*disk.contents.names, *names))),
        pools[-1] if pools else None,
        any(each.unread for each in found),
        disk.contents.table,
    )


def _by_udev(props: Mapping[str, str]) -> Contents:
    """Return the contents according to udev; unread if udev has no record."""
    kind = props.get("ID_FS_TYPE")
    if kind == "zfs_member":
        return Contents(zfs_pool=props.get("ID_FS_LABEL", ""))
    return Contents((kind,) if kind else (), unread=not props)


def _best(links: Sequence[str]) -> str:
    """Return the path for zpool: by-vdev, a multipath device's name, or by-id with the model.

    The fallback is the node, which comes first in ``links``.
    """

    def _rank(link: str) -> tuple[int, str]:
        name = os.path.basename(link)  # noqa: PTH119 (a string, not a path to open)
        if "/by-vdev/" in link:
            return (0, link)
        if "/mapper/" in link:
            return (1, link)
        if "/by-id/" in link:
            # These by-id names do not show the model, so names that do are preferred.
            return (3 if name.startswith(("wwn-", "nvme-eui.", "scsi-3")) else 2, link)
        if "/by-path/" in link:
            return (4, link)
        # by-partlabel, by-label and by-uuid are copied along with a disk's contents.
        return (5, link) if link == links[0] else (6, link)

    return min(links, key=_rank)


def _mounted(root: Path) -> _Lists:
    """Return a mapping of node to mount points."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(OSError):
        for mount in mounts.rows(mounts.table_of(root / "proc/self")):
            found.setdefault(os.fsdecode(mount.source), []).append(os.fsdecode(mount.point))
    return found


def _led(entry: Path) -> str | None:
    """Return the ``locate`` file of the enclosure slot (drivers/misc/enclosure.c), or None."""
    for slot in sorted((entry / "device").glob("enclosure_device*")):
        if (slot / "locate").exists():
            return str((slot / "locate").resolve())
    return None
