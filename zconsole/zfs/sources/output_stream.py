"""The newest lines of a command that prints at an interval: ``zpool iostat``, ``zpool wait``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from zconsole.system.async_process import Spawner
from zconsole.system.pipe_io import LineProcess

RESTART_AFTER = 5.0
"""Seconds between two starts of a command that ended."""
SILENT = 30.0
"""Seconds without a line after which a command is started anew: ``zpool iostat`` goes on without a
word when its pool is exported, and says nothing of it either when it is imported again."""


class OutputStream:
    """Keeps one long-lived command running and the newest block it printed.

    ``timed``: blocks begin with a line of epoch seconds (``-T u``); else each line is a block.
    """

    def __init__(self, spawner: Spawner, argv: Sequence[str], timed: bool) -> None:
        self._spawner = spawner
        self._argv = tuple(argv)
        self._timed = timed
        self._process: LineProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = float("-inf")
        self._block: list[str] = []
        self._last: tuple[str, ...] = ()
        self._at = float("-inf")

    async def newest(self, max_age: float) -> str | None:
        """The newest whole block not older than ``max_age`` seconds, starting the command."""
        now = asyncio.get_running_loop().time()
        await self._ensure(now, max(SILENT, max_age))
        if len(self._block) >= max(1, len(self._last)):
            return "\n".join(self._block)
        return "\n".join(self._last) if self._last and now - self._at <= max_age else None

    def close(self) -> None:
        """Stop the command without waiting for it."""
        if self._task is not None:
            self._task.cancel()
        if self._process is not None:
            self._process.abandon()

    async def _ensure(self, now: float, patience: float) -> None:
        gone = self._process is None or not self._process.alive
        silent = now - max(self._at, self._started) >= patience
        if silent or (gone and now - self._started >= RESTART_AFTER):
            self.close()
            self._started = now
            with contextlib.suppress(OSError):
                self._process = await self._spawner.spawn(self._argv)
                self._task = asyncio.create_task(self._read(self._process))

    async def _read(self, process: LineProcess) -> None:
        self._block, self._last = [], ()
        while (line := await process.readline()) is not None:
            if not self._timed or line.isdigit():
                self._last = tuple(self._block) or self._last
                self._block = []
                self._at = asyncio.get_running_loop().time()
            if not (self._timed and line.isdigit()):
                self._block.append(line)
