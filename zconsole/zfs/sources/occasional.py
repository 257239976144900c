"""What zpool is asked now and then, beside the samples."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from zconsole.errors import NotUnderstoodError
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.sources.reader import (
    Commands,
    PoolGoneError,
    ReaderUnusableError,
    ReadFailedError,
)

AT_MOST_EVERY = 10.0
"""Seconds between two commands, however fast a failing disk's counters move."""

AT_LEAST_EVERY = 300.0


class OccasionalCommand(ABC):
    """A command whose newest answer goes with each sample; one is in flight at most."""

    def __init__(self, runner: CommandRunner, deadline: float) -> None:
        self._runner = runner
        self._deadline = deadline
        self.task: asyncio.Task[None] | None = None
        """The command in flight, or the last."""
        self._hung: DeadlineError | None = None
        self._asked = float("-inf")

    async def first(self, patience: float) -> None:
        """Ask for the first answer and wait for it, at most ``patience`` seconds."""
        if self.task is None:
            await asyncio.wait((self._start(),), timeout=patience)

    def _again(self, wait: float) -> bool:
        """Ask again if the last time was ``wait`` seconds ago and nothing hangs; whether it did."""
        idle = self.task is None or self.task.done()
        hanging = self._hung is not None and self._hung.alive()
        if asyncio.get_running_loop().time() - self._asked < wait or not idle or hanging:
            return False
        self._start()
        return True

    def _start(self) -> asyncio.Task[None]:
        self._asked = asyncio.get_running_loop().time()
        self.task = asyncio.create_task(self._run())
        return self.task

    async def _run(self) -> None:
        try:
            await self._ask(Commands(self._runner, self._deadline))
        except DeadlineError as error:
            self._hung = error
        except (PoolGoneError, ReadFailedError, ReaderUnusableError, NotUnderstoodError):
            self._failed()

    @abstractmethod
    async def _ask(self, commands: Commands) -> None:
        """Run the command and keep its answer; raises what Commands and decoders raise."""

    @abstractmethod
    def _failed(self) -> None:
        """Forget the last answer."""
