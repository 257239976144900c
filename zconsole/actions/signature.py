"""What is on a device, from its first bytes, read-only.

Magic numbers as libblkid knows them (util-linux, libblkid/src/superblocks), for what zpool would
refuse to overwrite; ZFS by its uberblocks (uberblock_impl.h, UBERBLOCK_MAGIC).
"""

from __future__ import annotations

import os
from pathlib import Path

LOOK = 256 * 1024
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
_UBERBLOCKS = range(128 * 1024, 256 * 1024, 1024)
_UBERBLOCK = (b"\x0c\xb1\xba\x00\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\xba\xb1\x0c")


def signature_of(path: Path) -> tuple[tuple[str, ...], bool]:
    """Names of what is found, and whether it could not be read at all.

    An MBR partition table counts, since zpool refuses those (``check_disk`` in zpool_vdev_os.c);
    a GPT does not: its partitions are looked at one by one.
    """
    try:
        head = _head(path)
    except OSError:
        return (), True
    found = [name for offset, magic, name in _MAGICS if head.startswith(magic, offset)]
    if any(head.startswith(_UBERBLOCK, offset) for offset in _UBERBLOCKS):
        found.append("zfs_member")
    if not found and _is_mbr(head):
        found.append("an MBR partition table")
    return tuple(found), False


def _head(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, LOOK)
    finally:
        os.close(handle)


def _is_mbr(head: bytes) -> bool:
    """A boot signature with a partition that is not the GPT's protective one (type 0xee)."""
    if len(head) < 512 or head[510:512] != b"\x55\xaa":
        return False
    kinds = [head[446 + 16 * i + 4] for i in range(4)]
    return any(kinds) and 0xEE not in kinds
