"""libzfs and libnvpair through ctypes: what is called, and the doubts that rule it out.

Prototypes: include/libzfs.h and include/libnvpair.h, OpenZFS 2.1 to 2.4.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from zconsole.sources.libzfs.nvlist import ConfigReader

SONAMES = ("libzfs.so.7", "libzfs.so.6", "libzfs.so.4")
"""OpenZFS 2.4, 2.3, and 2.1 with 2.2. Any other soname is a library nobody tried."""

NVPAIR = "libnvpair.so.3"

_POINTER, _INT, _CHARS = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
PROTOTYPES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "libzfs_init": (_POINTER, ()),
    "libzfs_fini": (None, (_POINTER,)),
    "libzfs_error_description": (_CHARS, (_POINTER,)),
    "zpool_open_canfail": (_POINTER, (_POINTER, _CHARS)),
    "zpool_close": (None, (_POINTER,)),
    "zpool_refresh_stats": (_INT, (_POINTER, _POINTER)),
    "zpool_get_config": (_POINTER, (_POINTER, _POINTER)),
}


class LibraryUnusableError(Exception):
    """libzfs cannot be used on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Library:
    """The loaded functions, and the soname they came from."""

    soname: str
    functions: Mapping[str, Callable[..., Any]]
    lookup_pairs: Callable[..., int]


def load_library() -> Library:
    """libzfs with every symbol this reader calls. Raises LibraryUnusableError."""
    soname, libzfs = _open_first(SONAMES)
    _, libnvpair = _open_first((NVPAIR,))
    functions = {name: _function(libzfs, name) for name in PROTOTYPES}
    for name, (result, arguments) in PROTOTYPES.items():
        functions[name].restype, functions[name].argtypes = result, arguments
    # As one that never blocks: letting go of the interpreter takes longer than a look-up.
    lookup_pairs = _function(ctypes.PyDLL(None, handle=libnvpair._handle), "nvlist_lookup_pairs")
    lookup_pairs.restype = ctypes.c_int
    return Library(soname, functions, lookup_pairs)


def _open_first(sonames: tuple[str, ...]) -> tuple[str, ctypes.CDLL]:
    for soname in sonames:
        try:
            return soname, ctypes.CDLL(soname, use_errno=True)
        except OSError:
            continue
    raise LibraryUnusableError(f"no {' or '.join(sonames)} on this machine")


def _function(library: ctypes.CDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError:
        raise LibraryUnusableError(f"{name} is missing from the ZFS libraries") from None


class PoolReader(Protocol):
    """Reads one pool; used by one thread at a time."""

    def read(self) -> dict[str, Any] | None:
        """The pool's config now, None when it is not imported.

        May block for as long as the kernel likes. Raises NvlistError, LibraryUnusableError.
        """


class LibzfsPool:
    """One pool through a libzfs handle of its own, as libzfs is not safe between threads."""

    def __init__(self, library: Library, name: str) -> None:
        self._call = library.functions
        self._name = name.encode("utf-8", "surrogateescape")
        self._configs = ConfigReader(library.lookup_pairs)
        self._library: int | None = None
        self._pool: int | None = None

    def read(self) -> dict[str, Any] | None:
        """See PoolReader.read."""
        if self._pool is None and not self._open():
            return None
        missing = ctypes.c_int(0)
        status = self._call["zpool_refresh_stats"](self._pool, ctypes.byref(missing))
        if status != 0 or missing.value:
            self._close()
            return None
        config = self._call["zpool_get_config"](self._pool, None)
        return self._configs.read(config) if config else None

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
