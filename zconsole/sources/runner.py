"""The one seam that spawns processes: an argument vector, a deadline, never a shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

SCRUBBED_PREFIXES = ("ZFS_COLOR", "ZPOOL_VDEV_NAME_", "ZPOOL_SCRIPTS_", "ZPOOL_STATUS_")
"""Variables that change what zpool prints (zpool(8), Environment Variables)."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command: its output as text (surrogate-escaped) and its exit status."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


class DeadlineError(Exception):
    """A command did not end in time; it was told to stop and is no longer waited for."""


class Runner(Protocol):
    """Runs one command to its end."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """The finished command. Raises DeadlineError (``deadline`` in seconds), OSError if absent."""


def zfs_environment(base: Mapping[str, str]) -> dict[str, str]:
    """An environment in which zpool prints plain, parseable text in UTF-8 and no colour."""
    kept = {k: v for k, v in base.items() if not k.startswith(SCRUBBED_PREFIXES)}
    kept.update(LC_ALL="C.UTF-8", NO_COLOR="1")
    return kept


class ProcessRunner:
    """Runs real commands in a session of their own; one that hangs in the kernel is abandoned."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See Runner.run."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=zfs_environment(os.environ),
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), deadline)
        except TimeoutError:
            self._abandon(process)
            raise DeadlineError(f"{argv[0]} gave no answer in {deadline:g} s") from None
        except asyncio.CancelledError:
            self._abandon(process)
            raise
        decode = (out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))
        return Completed(tuple(argv), process.returncode or 0, *decode)

    def _abandon(self, process: asyncio.subprocess.Process) -> None:
        """Kill without waiting: a process inside the kernel's wait cannot be reaped."""
        with contextlib.suppress(ProcessLookupError):
            process.kill()
