"""A pool's config as the kernel packs it: the one call behind ``zpool_refresh_stats``.

libzfs unpacks that config at once, and it would have to be packed again to be read in one piece
(see ``nvlist``): both together cost more than the call. Whatever is not a plain success is asked of
libzfs instead, which knows what an error means.

Sources: ``zfs_cmd_t`` (include/sys/zfs_ioctl.h: Linux, the same up to its cookie from 2.0 to 2.4),
``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c), request numbers never change
(include/sys/fs/zfs.h).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from struct import Struct

POOL_STATS = 0x5A05
COMMAND_ROOM = 1 << 14
"""Bytes; the kernel takes as much of it as its own ``zfs_cmd_t`` has, 13,744."""
NAME_ROOM = 4096
DESTINATION = Struct("=QQ")
"""``zc_nvlist_dst``, ``zc_nvlist_dst_size``: where the config goes, and the bytes it may take."""
DESTINATION_AT, COOKIE_AT = 4112, 12616
COOKIE = Struct("=Q")
"""``zc_cookie``: the error of a pool whose config is there all the same."""
ROOM = 4096
"""Bytes beyond a config, for what is added to it until it is asked for again."""

LARGEST = 1 << 28
"""Bytes beyond which it is no config: a leaf takes several thousand."""

Ioctl = Callable[[int, int, bytearray], int]


def kernel_stats(pool: str, device: Path = Path("/dev/zfs")) -> KernelStats | None:
    """For this pool, None where the kernel cannot be asked directly."""
    try:
        return KernelStats(pool.encode("utf-8", "surrogateescape"), device)
    except (OSError, ValueError):
        return None


class KernelStats:
    """Asks for one pool's config again and again, into a buffer that is kept."""

    def __init__(self, pool: bytes, device: Path, ioctl: Ioctl = fcntl.ioctl) -> None:
        """Raises OSError where the device cannot be opened, and ValueError for no pool's name."""
        if not 0 < len(pool) < NAME_ROOM:
            raise ValueError(f"a name of {len(pool)} bytes")
        self._ioctl = ioctl
        self._command = bytearray(COMMAND_ROOM)
        self._command[: len(pool)] = pool
        self._use(1 << 16)
        self._device = os.open(device, os.O_RDWR | os.O_CLOEXEC)

    def packed(self) -> memoryview | None:
        """The config in libnvpair's native encoding; what comes after its end means nothing.

        Good until the next call; None for anything but a plain success. May block for as long as
        the kernel likes.
        """
        for _ in range(2):
            DESTINATION.pack_into(self._command, DESTINATION_AT, self._address, len(self._view))
            COOKIE.pack_into(self._command, COOKIE_AT, 0)
            try:
                self._ioctl(self._device, POOL_STATS, self._command)
            except OSError as error:
                if error.errno != errno.ENOMEM:
                    return None
                _, wanted = DESTINATION.unpack_from(self._command, DESTINATION_AT)
                if wanted > LARGEST:
                    return None
                self._use(wanted + ROOM)
            else:
                return None if any(COOKIE.unpack_from(self._command, COOKIE_AT)) else self._view
        return None

    def _use(self, size: int) -> None:
        self._buffer = ctypes.create_string_buffer(size)
        self._address = ctypes.addressof(self._buffer)
        self._view = memoryview(self._buffer).cast("B")
