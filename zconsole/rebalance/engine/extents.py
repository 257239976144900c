"""Detection of blocks that were reserved for a file; reading its content does not show them."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import FS_IOC_FIEMAP, Sys

_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQ16xI12x")
"""struct fiemap and struct fiemap_extent (linux/fiemap.h)."""
_AT_ONCE = 16
"""Extents requested at once: Python passes no more than 1,024 bytes to an ioctl."""
_SYNC = 1
"""FIEMAP_FLAG_SYNC: write the file out first."""
_LAST, _INLINE, _UNWRITTEN = 0x1, 0x200, 0x800
"""FIEMAP_EXTENT_LAST, DATA_INLINE and UNWRITTEN (linux/fiemap.h)."""
_END = (1 << 64) - 1
_ABSENT = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EBADR)


class FileExtent(NamedTuple):
    """One run of blocks of a file: begin and end in bytes, and FIEMAP_EXTENT_* flags."""

    start: int
    end: int
    flags: int


def preallocated(sys: Sys, fd: int, status: os.stat_result, abilities: Abilities) -> bool:
    """Whether a copy would lack blocks that somebody reserved (fallocate(2)).

    Such blocks are those beyond the end of any file, and the unwritten ones of a file that also
    has holes; without holes all of a copy is written, and so allocated. False if the filesystem
    does not tell: ZFS reserves nothing. Raises OSError.
    """
    if not abilities.extents:
        return False
    try:
        # Blocks not written out yet look reserved, too: only then ask again with a (slow) sync.
        return _reserved(sys, fd, status, 0) and _reserved(sys, fd, status, _SYNC)
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        abilities.extents = False
        return False


def _reserved(sys: Sys, fd: int, status: os.stat_result, flags: int) -> bool:
    unit, size = max(status.st_blksize, 4096), status.st_size
    end = -(-size // unit) * unit
    holes = status.st_blocks * 512 < size
    for extent in _extents(sys, fd, 0 if holes else end, flags):
        behind = extent.end > end and not extent.flags & _INLINE
        if behind or (holes and extent.flags & _UNWRITTEN):
            return True
    return False


def _extents(sys: Sys, fd: int, start: int, flags: int) -> Iterator[FileExtent]:
    """Yield the extents of a file from an offset on."""
    while True:
        wanted = _HEAD.pack(start, _END - start, flags, 0, _AT_ONCE, 0)
        found = sys.ioctl(fd, FS_IOC_FIEMAP, wanted + bytes(_AT_ONCE * _EXTENT.size))
        count = _HEAD.unpack_from(found)[3]
        for number in range(count):
            at, _, length, marks = _EXTENT.unpack_from(found, _HEAD.size + number * _EXTENT.size)
            yield FileExtent(at, at + length, marks)
            if marks & _LAST:
                return
            start = at + length
        if not count:
            return
