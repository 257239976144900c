"""Asks zpool on request what it says about a pool."""

from __future__ import annotations

import asyncio

from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.zpool_output import SINCE_BOOT, ZpoolOutput, zpool_output

DEADLINE = 10.0
"""Seconds for each command: the names of many damaged files take zpool a while."""
_COMMANDS = (
    (("zpool", "status", "-v"), ""),
    (("zpool", "iostat", "-v"), SINCE_BOOT),
    (("zpool", "events"), ""),
)
"""Each command without the pool, with what its reader should know."""


class OutputReader:
    """Asks the zpool of one machine, one request for each pool at a time."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner
        self._requests: dict[str, asyncio.Task[tuple[ZpoolOutput, ...]]] = {}
        self._hung: dict[tuple[str, ...], DeadlineError] = {}

    async def read(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what each command prints, or why it prints nothing."""
        running = self._requests.get(pool)
        if running is None or running.done():
            running = self._requests[pool] = asyncio.create_task(self._read(pool))
        # Who waits may leave: the request then goes on, so that what hangs stays known.
        return await asyncio.shield(running)

    def close(self) -> tuple[asyncio.Task[tuple[ZpoolOutput, ...]], ...]:
        """Cancel whatever is in flight; return the tasks that are now ending."""
        for task in self._requests.values():
            task.cancel()
        return tuple(self._requests.values())

    async def _read(self, pool: str) -> tuple[ZpoolOutput, ...]:
        asked = [self._printed((*argv, pool)) for argv, _ in _COMMANDS]
        texts = await asyncio.gather(*asked)
        return tuple(
            zpool_output(" ".join((*argv, pool)), text, about)
            for (argv, about), text in zip(_COMMANDS, texts, strict=True)
        )

    async def _printed(self, argv: tuple[str, ...]) -> str:
        hung = self._hung.get(argv)
        if hung is not None and hung.alive():  # another one would be stuck, too
            return str(hung)
        try:
            done = await self._runner.run(argv, DEADLINE)
        except DeadlineError as error:
            self._hung[argv] = error
            return str(error)
        except OSError as error:
            return f"{argv[0]}: {error.strerror}"
        return f"{done.stdout}{done.stderr}" or f"exit status {done.returncode}"
