"""libzfs and libnvpair through ctypes: what is called, and the doubts that rule it out.

Prototypes: include/libzfs.h and include/libnvpair.h, OpenZFS 2.1 to 2.4.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from zconsole.zfs.sources.libzfs.nvlist import ConfigReader, Form, NvlistError, Values
from zconsole.zfs.sources.libzfs.stats import KernelStats

SONAMES = ("libzfs.so.7", "libzfs.so.6", "libzfs.so.4")
"""OpenZFS 2.4, 2.3, and 2.1 with 2.2. Any other soname is an untested library."""

NVPAIR = "libnvpair.so.3"

NATIVE = 0
"""``NV_ENCODE_NATIVE`` of include/sys/nvpair.h."""
ROOM = 4096
"""Bytes beyond a packed config, for what is added between measuring and packing it."""

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
