"""The distribution's ``libzfs_core`` module, where it does a job better than a process.

Only OpenZFS' own (``python3-pyzfs``): the package of that name on PyPI is another, abandoned one
whose calls no longer fit the C library.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType
from typing import Any

from zconsole.system.async_process import CommandRunner
from zconsole.system.daemon_thread import FileThread
from zconsole.system.process import DeadlineError


def load_lzc() -> ModuleType | None:
    """OpenZFS' module; None when it is absent or the other one."""
    try:
        module = importlib.import_module("libzfs_core")
    except (ImportError, OSError):
        return None
    return module if hasattr(module, "lzc_pool_checkpoint") else None


class PoolCore:
    """Two small jobs on a pool, through libzfs_core, else through ``zpool``."""

    def __init__(self, runner: CommandRunner, deadline: float, module: ModuleType | None) -> None:
        self._runner = runner
        self._deadline = deadline
        self._module = module
        self._thread = FileThread()

    async def pool_exists(self, pool: str) -> bool:
        """Whether a pool of that name is imported. Raises DeadlineError, OSError."""
        if any(mark in pool for mark in "/@#"):
            return False  # lzc_exists knows datasets, snapshots and bookmarks, too
        answered, found = await self._call("lzc_exists", pool)
        if answered:
            return bool(found)
        done = await self._runner.run(("zpool", "list", "-H", "-o", "name", pool), self._deadline)
        return done.returncode == 0

    async def sync_pool(self, pool: str) -> bool:
        """Wait until everything written so far is on disk; False when that was refused.

        Raises DeadlineError, OSError.
        """
        answered, _ = await self._call("lzc_sync", pool)
        if answered:
            return True
        done = await self._runner.run(("zpool", "sync", pool), self._deadline)
        return done.returncode == 0

    async def _call(self, name: str, pool: str) -> tuple[bool, Any]:
        """Whether the function answered, and what. It may block in the kernel: in a thread."""
        function = getattr(self._module, name, None)
        if function is None:
            return False, None
        try:
            encoded = pool.encode("utf-8", "surrogateescape")
            return True, await self._thread.run(lambda: function(encoded), self._deadline)
        except (DeadlineError, asyncio.CancelledError):
            raise
        except Exception:  # its exceptions have no common base: ZFSError, OSError, …
            return False, None
