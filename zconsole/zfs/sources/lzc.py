"""The distribution's ``libzfs_core`` module (``python3-pyzfs``), where it is installed.

Only OpenZFS' own: the package of that name on PyPI is another, abandoned one whose calls no longer
fit the C library.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def load_lzc() -> ModuleType | None:
    """OpenZFS' module; None when it is absent or the other one."""
    try:
        module = importlib.import_module("libzfs_core")
    except (ImportError, OSError):
        return None
    return module if hasattr(module, "lzc_pool_checkpoint") else None


def pool_exists(module: ModuleType | None, pool: str) -> bool | None:
    """Whether a pool of that name is imported; None where the module cannot tell.

    It may block in the kernel: call it in a thread.
    """
    if any(mark in pool for mark in "/@#"):
        return False  # lzc_exists knows datasets, snapshots and bookmarks, too
    try:
        return bool(module.lzc_exists(pool.encode("utf-8", "surrogateescape"))) if module else None
    except Exception:  # its exceptions have no common base: ZFSError, OSError, …
        return None
