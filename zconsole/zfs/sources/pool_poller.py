"""One watched pool: a read in flight at most, what came of it, and the disks below it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zconsole.system.host import Clocks
from zconsole.system.process import DeadlineError
from zconsole.zfs.sources.blockdev import diskstats_names
from zconsole.zfs.sources.fallback import FallbackReader
from zconsole.zfs.sources.reader import (
    PoolGoneError,
    PoolReader,
    ReaderUnusableError,
    ReadFailedError,
)
from zconsole.zfs.sources.status_message import StatusMessageReader

RESOLVE_EVERY = 30.0
"""Seconds after which the disks under the leaves are looked up again; links can move."""

MESSAGE_PATIENCE = 2.0
"""Seconds the first sample waits for what only ``zpool status`` knows."""

GLANCE = 1.0
"""Seconds the one read of a pool that may not be asked can take; others wait for it."""

GONE = "not imported any more"


@dataclass(frozen=True, slots=True)
class PoolReading:
    """What one read gave: the reader's name, when it was complete, the raw keys, when it began."""

    source: str
    t: float
    clock: float
    form: Mapping[str, Any]
    began: float
    """Seconds of the steady clock."""


class PoolPoller:
    """Reads one pool, never twice at a time."""

    def __init__(
        self,
        name: str,
        chain: FallbackReader,
        message: StatusMessageReader,
        clocks: Clocks,
        deadline: float,
    ) -> None:
        self.name = name
        self.gate = ""
        """Why the pool may not be asked at present."""
        self.devices: Mapping[str, tuple[str, ...]] = {}
        self.seen = False
        """Whether it ever gave a reading."""
        self._chain = chain
        self._message = message
        self._clocks = clocks
        self._deadline = deadline
        self._problem = ""
        self._known = False
        """Whether it was read, or it was tried to while it might not be."""
        self._task: asyncio.Task[PoolReading | None] | None = None
        self._began = 0.0
        self._hung: DeadlineError | None = None
        self._paths: tuple[str, ...] = ()
        self._resolved_at = float("-inf")

    @property
    def problem(self) -> str:
        """Why there is no reading."""
        return self.gate or self._problem

    @property
    def forgettable(self) -> bool:
        """Whether nothing is known of it, and nothing under way that could tell."""
        return not (self.seen or self._task or self.hanging)

    @property
    def hanging(self) -> bool:
        """Whether a call passed its deadline and the kernel still has not let it go."""
        return self._hung is not None and self._hung.alive()

    def begin(self, deadline: float | None = None) -> asyncio.Task[PoolReading | None] | None:
        """The read in flight, begun now if there was none; None while an old call hangs."""
        if self.hanging:
            return None
        if self._task is None:
            self._hung = None
            self._known = True
            self._began = self._clocks.steady()
            self._task = asyncio.create_task(self._read(deadline or self._deadline))
        return self._task

    def glance(self) -> asyncio.Task[PoolReading | None] | None:
        """Begin the one read of a pool that may not be asked and of which nothing is known yet.

        Only through a reader that can be let go of. What the kernel holds of a suspended pool is
        mostly to be had (spa_get_stats, module/zfs/spa.c, takes no lock that waits for I/O);
        ``zpool status`` beside it would wait for the pool's error log.
        """
        reader = self._chain.reader
        if self._known or reader is None or reader.name != "libzfs":
            return None
        return self.begin(min(GLANCE, self._deadline))

    def take(self) -> PoolReading | None:
        """What the finished read gave; None, with ``problem`` set, when it gave nothing."""
        if self._task is None:
            return None
        if not self._task.done():
            self._problem = f"no answer for {self._clocks.steady() - self._began:.0f} s"
            return None
        reading = self._task.result()
        self._task = None
        self.seen = self.seen or reading is not None
        return reading

    def message(self, reading: PoolReading) -> Mapping[str, Any] | None:
        """What only ``zpool status`` knows, for a sample that lacks it."""
        config = reading.form.get("libzfs")
        return None if config is None or self.gate else self._message.newest(config)

    def resolve(self, reading: PoolReading | None, rows: Mapping[str, str], root: Path) -> None:
        """Look up the disks under the leaves when they changed or it is time; reads files."""
        if reading is None:
            return
        paths = tuple(leaf_paths(reading.form))
        names = {name for names in self.devices.values() for name in names}
        stale = reading.clock - self._resolved_at >= RESOLVE_EVERY
        if paths != self._paths or stale or not names <= rows.keys():
            found = {path: diskstats_names(path, rows, root) for path in paths}
            self.devices = {path: each for path, each in found.items() if each}
            self._paths, self._resolved_at = paths, reading.clock

    def close(self) -> tuple[asyncio.Task[Any], ...]:
        """Cancel whatever is in flight; returns the tasks that are now ending."""
        tasks = tuple(task for task in (self._task, self._message.task) if task is not None)
        for task in tasks:
            task.cancel()
        return tasks

    async def _read(self, deadline: float) -> PoolReading | None:
        self._problem = ""
        while (reader := self._chain.reader) is not None:
            try:
                return await self._read_with(reader, deadline)
            except ReaderUnusableError as error:
                self._chain.give_up(reader, str(error))
            except PoolGoneError:
                self._problem = GONE
                return None
            except ReadFailedError as error:
                self._problem = str(error)
                return None
            except DeadlineError as error:
                self._hung = error
                self._problem = str(error)
                return None
        self._problem = f"no way to read the pool: {self._chain.reason}"
        return None

    async def _read_with(self, reader: PoolReader, deadline: float) -> PoolReading:
        first = None
        if reader.name == "libzfs" and not self.gate:
            first = asyncio.create_task(self._message.first(MESSAGE_PATIENCE))
        try:
            form = await reader.read(self.name, deadline)
            wall, steady = self._clocks.wall(), self._clocks.steady()
            reading = PoolReading(reader.name, wall, steady, form, self._began)
            if first is not None:
                await first
            return reading
        finally:
            if first is not None:
                first.cancel()


def leaf_paths(form: Mapping[str, Any]) -> Iterator[str]:
    """The path of every device in a raw form: of libzfs and JSON vdevs, or of ``names``."""
    tree = form.get("libzfs", form.get("status"))
    if tree is None:
        yield from form.get("names", {})
    else:
        yield from _paths(tree)


def _paths(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        path = node.get("path")
        if isinstance(path, str) and path.startswith("/"):
            yield path
        below = node.values()
    else:
        below = node
    for value in below:
        if isinstance(value, dict) or (isinstance(value, list) and _of_dicts(value)):
            yield from _paths(value)


def _of_dicts(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], dict)
