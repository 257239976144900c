"""What is on a device, from its first bytes, read-only.

Magic numbers as libblkid knows them (util-linux, libblkid/src/superblocks), for what zpool would
refuse to overwrite; ZFS by the state in its label (zpool_in_use, libzfs_import.c).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FIRST = 256 * 1024
"""Bytes of the first vdev label; everything looked for lies in them."""

_MAGICS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"XFSB", "xfs"),
    (0, b"LUKS\xba\xbe", "crypto_LUKS"),
    (0x218, b"LVM2 001", "LVM2_member"),
    (0x438, b"\x53\xef", "ext2, 3 or 4"),
    (4086, b"SWAPSPACE2", "swap"),
    (0x10040, b"_BHRfS_M", "btrfs"),
    (3, b"NTFS    ", "ntfs"),
    (4096, b"\xfc\x4e\x2b\xa9", "linux_raid_member"),
    (0x8001, b"CD001", "iso9660"),
)
LABEL_NVLIST = 16 * 1024
"""Where the label's nvlist begins (vdev_label_t in vdev_impl.h), XDR-encoded."""

DESTROYED, SPARE, L2CACHE = 2, 3, 4
"""Of pool_state_t: what a destroyed pool leaves is free; spares and caches have no txg."""


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


def contents_of(path: Path) -> Contents:
    """What the first bytes tell.

    An MBR partition table counts, since zpool refuses those (``check_disk`` in zpool_vdev_os.c);
    a GPT does not: its partitions are looked at one by one.
    """
    try:
        head = _head(path)
    except OSError:
        return Contents(unread=True)
    pool = _label_pool(head)
    found = [name for offset, magic, name in _MAGICS if head.startswith(magic, offset)]
    if not found and pool is None and _is_mbr(head):
        found.append("an MBR partition table")
    return Contents(tuple(found), pool)


def _label_pool(head: bytes) -> str | None:
    """The pool in the label's nvlist, unless it is destroyed or the device was detached.

    A detached device's label has txg 0 (``zpool_read_label``, zutil_import.c).
    """
    nvlist = head[LABEL_NVLIST:]
    if nvlist[:1] != b"\x01":  # NV_ENCODE_XDR
        return None
    state, txg = _number(nvlist, b"state"), _number(nvlist, b"txg")
    if state in (None, DESTROYED) or (not txg and state not in (SPARE, L2CACHE)):
        return None
    name = _pair(nvlist, b"name", 9)
    if name is None:
        return ""
    length = int.from_bytes(nvlist[name : name + 4], "big")
    return nvlist[name + 4 : name + 4 + min(length, 255)].decode("utf-8", "surrogateescape")


def _number(nvlist: bytes, name: bytes) -> int | None:
    value = _pair(nvlist, name, 8)
    return None if value is None else int.from_bytes(nvlist[value : value + 8], "big")


def _pair(nvlist: bytes, name: bytes, kind: int) -> int | None:
    """Where the value of the first pair of this name and data type begins (libnvpair, XDR).

    The name as an XDR string, then the type (8 uint64, 9 string) and one element.
    """
    padded = name + bytes(-len(name) % 4)
    mark = len(name).to_bytes(4, "big") + padded + kind.to_bytes(4, "big") + b"\0\0\0\x01"
    found = nvlist.find(mark)
    return None if found < 0 else found + len(mark)


def _head(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, FIRST)
    finally:
        os.close(handle)


def _is_mbr(head: bytes) -> bool:
    """A boot signature with a partition that is not the GPT's protective one (type 0xee)."""
    if len(head) < 512 or head[510:512] != b"\x55\xaa":
        return False
    kinds = [head[446 + 16 * i + 4] for i in range(4)]
    return any(kinds) and 0xEE not in kinds
