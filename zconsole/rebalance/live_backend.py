"""Rebalance backend for the pools of this machine, with the jobs and plans of the command line.

Work that may hang on a pool that does not answer is done in a separate process, which can be
abandoned; journals are read in a thread that can be abandoned, too. Jobs are processes that outlive
this one.
"""

from __future__ import annotations

import asyncio
import json
import sys as python
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from zconsole.errors import NotFoundError, UnavailableError, ZconsoleError
from zconsole.rebalance.backend import (
    Counted,
    DirectoryListing,
    Explorer,
    JobView,
    Measured,
    plan_words,
    quoted,
    run_words,
)
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.job_output import last_line
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.system.async_process import LineProcess, ProcessRunner, Spawner
from zconsole.system.audit import Log, audit_log
from zconsole.system.daemon_thread import FileThread
from zconsole.system.mounts import SELF
from zconsole.system.process import PACKAGE_ROOT, DeadlineError, own
from zconsole.system.records import from_json
from zconsole.system.state_dir import StateError, read_end

if TYPE_CHECKING:
    from zconsole.rebalance.job.control import JobReader
    from zconsole.rebalance.planning.settings import Settings

DEADLINE = 10.0
"""Seconds for reading or writing the journals."""
STARTING = 30.0
"""Seconds to wait for the start of a job; ``control.start`` gives up before."""

_T = TypeVar("_T")


@dataclass(slots=True)
class LiveExplorer:
    """An explorer that asks a separate process."""

    process: LineProcess

    def open(self, path: str) -> None:
        """Ask for a directory's listing, and then the sizes of its subdirectories."""
        self.process.write(json.dumps({"open": path}))

    def used(self, path: str) -> None:
        """Ask for the bytes used on a whole filesystem."""
        self.process.write(json.dumps({"used": path}))

    async def next(self) -> DirectoryListing | Measured | None:
        """Return the next answer; None at the end."""
        line = await self.process.readline()
        if line is None:
            return None
        data = json.loads(line)
        if listing := data.get("listing"):
            return from_json(DirectoryListing, listing)
        return from_json(Measured, data["measured"])

    def close(self) -> None:
        """End the process without waiting for it."""
        self.process.abandon()


@dataclass(slots=True)
class LiveRebalance:
    """Rebalance backend for this machine; RebalanceBackend documents the methods."""

    spawner: Spawner = field(default_factory=ProcessRunner)
    command: str = field(default_factory=lambda: own_command(python.argv[0]))
    process: Path = SELF
    log: Log = field(default_factory=audit_log)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reading: FileThread = field(default_factory=FileThread)
    _writing: FileThread = field(default_factory=FileThread)
    _reader: JobReader | None = None
    _logs: dict[str, Path] = field(default_factory=dict)

    async def jobs(self, pool: str | None) -> tuple[JobView, ...]:
        """Return the jobs on a pool, or on any filesystem for None."""
        async with self._turn:
            return await self._in_thread(self._reading, lambda: self._read(pool), DEADLINE)

    def _read(self, pool: str | None) -> tuple[JobView, ...]:
        if self._reader is None:
            if not job_store.files():
                return ()
            # Lazy import: it loads sqlite, and most machines never had a job.
            from zconsole.rebalance.job.control import JobReader

            self._reader = JobReader(time.monotonic)
        return self._reader.read(pool)

    def roots(self, pool: str) -> Mapping[str, str]:
        """Map mount points to the datasets of a pool."""
        from zconsole.rebalance.planning.facts import mountpoints_of

        return mountpoints_of(pool, self.process)

    async def explore(self) -> Explorer:
        """Start an explorer in a separate process."""
        argv = own("zconsole.rebalance.planning.sizes")
        return LiveExplorer(await self._spawn(argv))

    async def plan(self, settings: Settings) -> AsyncIterator[Counted | PlanDocument]:
        """Make a plan in a separate process, which is abandoned when this generator is closed."""
        words = ("rebalance", "plan", "--json", "--progress", *plan_words(settings))
        process = await self._spawn(own("zconsole", *words))
        try:
            while (line := await process.readline()) is not None:
                data = json.loads(line)
                if "progress" not in data:
                    yield PlanDocument.from_json(data)
                    return
                yield Counted(**data["progress"])
            last_words = await process.last_words(DEADLINE)
            raise ZconsoleError(last_line(last_words) or "no plan could be made")
        finally:
            process.abandon()

    async def start(self, settings: Settings) -> str:
        """Start a job that outlives this process; return its id."""
        from zconsole.rebalance.job import control

        record = await self._write(lambda: control.begin(run_words(settings)), STARTING)
        self._logs[record.job] = record.log
        return record.job

    async def order(
        self, job: str, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """Tell a running job to pause or stop, or to change its limits."""
        from zconsole.rebalance.job import control

        await self._write(lambda: control.steer(self.log, job_store.find(job), order, limits))

    async def resume(self, job: str) -> None:
        """Resume a paused, stopped or dead job."""
        from zconsole.rebalance.job import control

        await self._write(lambda: control.resume(self.log, job_store.find(job)), STARTING)

    def last_words(self, job: str) -> str:
        """Return the last line in the log of a job that was started by this object."""
        from zconsole.rebalance.job.control import TAIL

        if (log := self._logs.get(job)) is None:
            return ""
        try:
            return last_line(read_end(log, TAIL).decode(errors="surrogateescape"))
        except OSError as error:
            return f"{log}: {error.strerror}"
        except StateError as error:
            return str(error)

    async def _spawn(self, argv: tuple[str, ...]) -> LineProcess:
        try:
            # Not in the current directory: root must not import modules that lie there.
            return await self.spawner.spawn(argv, PACKAGE_ROOT)
        except OSError as error:
            raise UnavailableError(f"{argv[0]}: {error.strerror}") from error

    async def _write(self, work: Callable[[], _T], deadline: float = DEADLINE) -> _T:
        """Do work on journals, one call after another. Raises ZconsoleError."""
        import sqlite3

        try:
            return await self._in_thread(self._writing, work, deadline)
        except sqlite3.Error as error:
            raise UnavailableError(f"the job's journal: {error}") from error

    async def _in_thread(self, thread: FileThread, work: Callable[[], _T], deadline: float) -> _T:
        """Do work in a thread that can be abandoned. Raises ZconsoleError."""
        try:
            return await thread.run(work, deadline)
        except DeadlineError as error:
            raise UnavailableError("the journals of the jobs cannot be read now") from error
        except OSError as error:
            raise NotFoundError(f"{error.filename or 'journal'}: {error.strerror}") from error


def own_command(program: str) -> str:
    """Return the command that runs this program, to show to the operator.

    With its path if it was started as a .pyz or script; otherwise just ``zconsole``.
    """
    if program.endswith(".pyz"):  # perhaps not executable, as on a stick
        return f"python3 {quoted(program)}"
    return quoted(program) if program.endswith("/zconsole") else "zconsole"
