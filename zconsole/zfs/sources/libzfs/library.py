"""libzfs, libnvpair and the kernel through ctypes: what is called, and what rules it out.

Prototypes: include/libzfs.h and include/libnvpair.h, OpenZFS 2.1 to 2.4.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from zconsole.zfs.sources.libzfs.nvlist import ConfigReader, Form, NvlistError, Values

ROOM = 4096
"""Bytes beyond a packed config, for what is added to it until it is packed or asked for again."""
POOL_STATS = 0x5A05
COMMAND_ROOM = 1 << 14
"""Bytes; the kernel takes as much of it as its own ``zfs_cmd_t`` has, 13,744."""
NAME_ROOM = 4096
DESTINATION = Struct("=QQ")
"""``zc_nvlist_dst``, ``zc_nvlist_dst_size``: where the config goes, and the bytes it may take."""
DESTINATION_AT, COOKIE_AT = 4112, 12616
COOKIE = Struct("=Q")
"""``zc_cookie``: the error of a pool whose config is there all the same."""
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
    """Asks for one pool's config again and again, as the kernel packs it, into a kept buffer.

    It is the one call behind ``zpool_refresh_stats``. libzfs unpacks that config at once, and it
    would have to be packed again to be read in one piece (see ``nvlist``): both together cost more
    than the call. Whatever is not a plain success is asked of libzfs instead, which knows what an
    error means.

    Sources: ``zfs_cmd_t`` (include/sys/zfs_ioctl.h: Linux, the same up to its cookie from 2.0 to
    2.4), ``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c), request numbers never
    change (include/sys/fs/zfs.h).
    """

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


SONAMES = ("libzfs.so.7", "libzfs.so.6", "libzfs.so.4")
"""OpenZFS 2.4, 2.3, and 2.1 with 2.2. Any other soname is an untested library."""

NVPAIR = "libnvpair.so.3"

NATIVE = 0
"""``NV_ENCODE_NATIVE`` of include/sys/nvpair.h."""

_POINTER, _INT, _CHARS = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_LIBZFS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "libzfs_init": (_POINTER, ()),
    "zpool_open_canfail": (_POINTER, (_POINTER, _CHARS)),
    "zpool_close": (None, (_POINTER,)),
    "zpool_refresh_stats": (_INT, (_POINTER, _POINTER)),
    "zpool_get_config": (_POINTER, (_POINTER, _POINTER)),
}
_LIBNVPAIR: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "nvlist_size": (_INT, (_POINTER, _POINTER, _INT)),
    "nvlist_pack": (_INT, (_POINTER, _POINTER, _POINTER, _INT, _INT)),
}


class LibraryUnusableError(Exception):
    """libzfs cannot be used on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Library:
    """The loaded functions, and the soname libzfs came from."""

    soname: str
    functions: Mapping[str, Callable[..., Any]]


def load_library() -> Library:
    """Load libzfs and libnvpair, with every symbol called here. Raises LibraryUnusableError."""
    soname, libzfs = _open_first(SONAMES)
    _, libnvpair = _open_first((NVPAIR,))
    return Library(soname, {**_functions(libzfs, _LIBZFS), **_functions(libnvpair, _LIBNVPAIR)})


def _open_first(sonames: tuple[str, ...]) -> tuple[str, ctypes.CDLL]:
    for soname in sonames:
        try:
            return soname, ctypes.CDLL(soname, use_errno=True)
        except OSError:
            continue
    raise LibraryUnusableError(f"no {' or '.join(sonames)} on this machine")


def _functions(
    library: ctypes.CDLL, prototypes: Mapping[str, tuple[Any, tuple[Any, ...]]]
) -> dict[str, Any]:
    functions = {}
    for name, (result, arguments) in prototypes.items():
        try:
            function = functions[name] = getattr(library, name)
        except AttributeError:
            raise LibraryUnusableError(f"{name} is missing from the ZFS libraries") from None
        function.restype, function.argtypes = result, arguments
    return functions


class LibzfsPool:
    """One pool through a libzfs handle of its own, as libzfs is not safe between threads.

    Once libzfs knows the pool, ``kernel`` is asked first; what it does not answer, or not as
    expected, libzfs does.
    """

    def __init__(self, library: Library, name: str, kernel: KernelStats | None = None) -> None:
        self._call = library.functions
        self._name = name.encode("utf-8", "surrogateescape")
        self._kernel = kernel
        self._packer = _Packer(library.functions)
        self._configs = ConfigReader()
        self._library: int | None = None
        self._pool: int | None = None

    def read(self) -> tuple[Form | None, list[Values]] | None:
        """The pool's config now (see ConfigReader.read), None when it is not imported.

        May block for as long as the kernel likes. Raises NvlistError, LibraryUnusableError.
        """
        if self._pool is None and not self._open():
            return None
        return self._directly() or self._refreshed()

    def _directly(self) -> tuple[Form | None, list[Values]] | None:
        packed = self._kernel.packed() if self._kernel else None
        if packed is None:
            return None
        try:
            return self._configs.read(packed)
        except NvlistError:
            self._kernel = None
            return None

    def _refreshed(self) -> tuple[Form | None, list[Values]] | None:
        missing = ctypes.c_int(0)
        status = self._call["zpool_refresh_stats"](self._pool, ctypes.byref(missing))
        if status != 0 or missing.value:
            self._close()
            return None
        config = self._call["zpool_get_config"](self._pool, None)
        return self._configs.read(self._packer.packed(config)) if config else None

    def _open(self) -> bool:
        if self._library is None:
            self._library = self._call["libzfs_init"]()
        if not self._library:
            self._library = None
            raise LibraryUnusableError(f"libzfs_init: {os.strerror(ctypes.get_errno())}")
        self._pool = self._call["zpool_open_canfail"](self._library, self._name)
        return bool(self._pool)

    def _close(self) -> None:
        self._call["zpool_close"](self._pool)
        self._pool = None


class _Packer:
    """Packs nvlists into a buffer that is kept."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._size, self._pack = functions["nvlist_size"], functions["nvlist_pack"]
        self._use(0)

    def packed(self, nvlist: int) -> memoryview:
        """The nvlist in libnvpair's native encoding; what comes after its end means nothing.

        Good until the next call. Raises NvlistError.
        """
        if self._try(nvlist) == 0:
            return self._view
        size = ctypes.c_size_t(0)
        self._size(nvlist, ctypes.byref(size), NATIVE)
        self._use(size.value + ROOM)
        if status := self._try(nvlist):
            raise NvlistError(f"nvlist_pack answered {status}")
        return self._view

    def _use(self, size: int) -> None:
        self._buffer = ctypes.create_string_buffer(size)
        self._view = memoryview(self._buffer).cast("B")

    def _try(self, nvlist: int) -> int:
        """0, or why it does not fit or cannot be packed (nvs_native_create: EINVAL)."""
        where = ctypes.c_void_p(ctypes.addressof(self._buffer))
        length = ctypes.c_size_t(len(self._view))
        status: int = self._pack(nvlist, ctypes.byref(where), ctypes.byref(length), NATIVE, 0)
        return status
