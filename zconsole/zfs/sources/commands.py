"""Runs zpool for its output: one deadline for a whole read, an exception for each failure."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from zconsole.pool.version import parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.zfs.sources.reader import PoolGoneError, ReaderUnusableError, ReadFailedError
from zconsole.zfs.sources.samples import MOST_MEMORY, memory_of

USAGE = 2
"""Exit status of an option this zpool does not know (cmd/zpool/zpool_main.c, ``usage``)."""

POOLS = ("zpool", "list", "-H", "-o", "name")
"""Prints the names of all imported pools, or of the one that is named after it."""
MOST_POOLS = 1000
"""Pools of a machine, each read by commands of its own; what names more is no machine."""

_VERSION = re.compile(r"^(?:zfs|zfs-kmod)-v?(\d+\.\d+(?:\.\d+)?)", re.MULTILINE)


class Commands:
    """Commands that together must end ``deadline`` seconds from now."""

    def __init__(self, runner: CommandRunner, deadline: float) -> None:
        self._runner = runner
        self._until = asyncio.get_running_loop().time() + deadline

    async def output(self, *argv: str) -> str:
        """What the command printed.

        Raises DeadlineError, PoolGoneError, ReadFailedError with its last words, and
        ReaderUnusableError when the command or an option does not exist.
        """
        left = max(0.001, self._until - asyncio.get_running_loop().time())
        try:
            done = await self._runner.run(argv, left)
        except OSError as error:
            raise ReaderUnusableError(f"{argv[0]}: {error.strerror or error}") from None
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.strip().partition("\n")[0] or f"exit status {done.returncode}"
        if "no such pool" in why:
            raise PoolGoneError
        if done.returncode == USAGE:
            raise ReaderUnusableError(f"{' '.join(argv[:2])}: {why}")
        raise ReadFailedError(f"{' '.join(argv[:2])}: {why}")

    async def document(self, *argv: str) -> dict[str, Any]:
        """Its output as a JSON object; raises ReadFailedError when it is none.

        Another machine's may hold anything.
        """
        text = await self.output(*argv)
        if memory_of(text) > MOST_MEMORY:
            raise ReadFailedError(f"{' '.join(argv[:2])} printed too many values")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ReadFailedError(f"{' '.join(argv[:2])} printed no whole JSON document")
        return found


async def zpool_version(runner: CommandRunner, deadline: float) -> str | None:
    """The running OpenZFS as ``zpool version`` (0.8 and later) says, kernel before userland."""
    try:
        text = await Commands(runner, deadline).output("zpool", "version")
    except (ReaderUnusableError, ReadFailedError, PoolGoneError):
        return None
    found = _VERSION.findall(text)
    return str(found[-1]) if found else None


def has_json(version: str | None) -> bool:
    """Whether ``zpool status -j`` exists: from 2.3; unknown counts as yes, it will be seen."""
    return version is None or parse_version(version) >= (2, 3)
