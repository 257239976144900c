"""One watched pool: at most one read in flight, its result, and the disks under its leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any, cast

from zconsole.errors import UnavailableError
from zconsole.system.async_process import CommandRunner
from zconsole.system.host import Clocks
from zconsole.system.process import DeadlineError
from zconsole.zfs.raw import Raw, config_vdevs
from zconsole.zfs.sources.kstat import HANGING_STATES
from zconsole.zfs.sources.occasional import (
    HistoryReader,
    OccasionalCommand,
    SitOutReader,
    StatusMessageReader,
    VolumeReader,
)
from zconsole.zfs.sources.output_reader import OutputReader
from zconsole.zfs.sources.reader import (
    FallbackReader,
    PoolGoneError,
    PoolReader,
    ReaderUnusableError,
    ReadFailedError,
)
from zconsole.zfs.zpool_output import ZpoolOutput

RESOLVE_EVERY = 30.0
"""Seconds after which the disks under the leaves are looked up again, as links can move."""

READ_ONCE_DEADLINE = 1.0
"""Deadline in seconds of the single read of a pool that must not be queried; others wait for it."""

GONE = "no longer imported"


class PoolPoller:
    """Reads one pool, never twice at the same time."""

    def __init__(
        self,
        name: str,
        readers: FallbackReader,
        occasional: Sequence[OccasionalCommand],
        clocks: Clocks,
        deadline: float,
    ) -> None:
        """``occasional`` are the commands that run occasionally between readings."""
        self.name = name
        self.gate = ""
        """Why the pool must not be queried at present."""
        self.devices: Mapping[str, tuple[str, ...]] = {}
        self.seen = False
        """True once the pool gave a reading."""
        self._readers = readers
        self._occasional = occasional
        self._clocks = clocks
        self._deadline = deadline
        self._problem = ""
        """Why the last finished read failed, until a round has told it and no call is stuck."""
        self._tried = False
        """True once a read was tried while the pool must not be queried."""
        self._task: asyncio.Task[Raw | None] | None = None
        self._late: Raw | None = None
        """A reading that came after its round; shown if the next one is late, too."""
        self._began = 0.0
        self._hung: DeadlineError | None = None
        self._paths: tuple[str, ...] = ()
        self._resolved_at = float("-inf")

    @property
    def problem(self) -> str:
        """Why there is no reading."""
        silent = f"no answer for {self._clocks.steady() - self._began:.0f} s"
        return self.gate or self._problem or silent

    @property
    def forgettable(self) -> bool:
        """True if nothing is known of the pool and no read is running."""
        return not (self.seen or self._task or self.hanging)

    @property
    def hanging(self) -> bool:
        """True if a call passed its deadline and is still stuck in the kernel."""
        return self._hung is not None and self._hung.alive()

    def begin(self, state: str | None) -> asyncio.Task[Raw | None] | None:
        """Return the read in flight, starting one if needed.

        None while the pool must not be queried, or an old call is stuck. One in a state in which
        calls may hang is read once, ever. ``state`` is the kernel's state word of the pool, empty
        if it is hidden, None if there is no such pool.
        """
        self.gate = ""
        if self._task is not None and self._task.done():
            self._late = self.collect()
        elif not self.hanging:
            self._problem = ""  # the last round told it
        if state is None:
            self.gate = GONE
            return None
        if state in HANGING_STATES:
            self.gate = f"the pool is {state}: zpool would hang, so it is not asked"
            deadline = min(READ_ONCE_DEADLINE, self._deadline)
            is_asked = self.seen or self._tried or self._task is not None
            return None if is_asked else self._start(deadline)
        return self._start(self._deadline)

    def _start(self, deadline: float) -> asyncio.Task[Raw | None] | None:
        if self.hanging:
            return None
        if self._task is None:
            self._hung = None
            self._tried = self._tried or bool(self.gate)
            self._began = self._clocks.steady()
            self._task = asyncio.create_task(self._read(deadline))
        return self._task

    def collect(self) -> Raw | None:
        """Return the result of the finished read; None, with ``problem`` set, if it has none.

        Else the previous reading, if it was not yet shown, with its ``age``.
        """
        late, self._late = self._late, None
        if self._task is not None and self._task.done():
            reading = self._task.result()
            self._task = None
            self.seen = self.seen or reading is not None
            return reading
        if late is not None:
            late["age"] = max(0.0, self._clocks.steady() - late["clock"])
        return late

    def unresolved(self, reading: Raw | None, rows: Container[str]) -> list[str]:
        """Return the leaves whose disks must be looked up: they changed, or it is time to check.

        A leaf whose disk is gone is always included, as the disk may be back under another name;
        links can move, so all are looked up again after RESOLVE_EVERY seconds. ``rows`` are the
        disks that exist.
        """
        if reading is not None:
            paths = tuple(leaf_paths(reading))
            if paths != self._paths or reading["clock"] - self._resolved_at >= RESOLVE_EVERY:
                self.devices = {}
                self._paths, self._resolved_at = paths, reading["clock"]
        return [
            path
            for path in self._paths
            if path not in self.devices or not all(name in rows for name in self.devices[path])
        ]

    def resolve(self, found: Mapping[str, tuple[str, ...]], is_read: bool) -> None:
        """Store the disks that were looked up, by leaf path.

        For a pool without a reading, missing disks are kept, so that they can be reported.
        """
        kept = {path: names for path, names in self.devices.items() if path not in found}
        there = {path: names for path, names in found.items() if names}
        self.devices = {**(kept if is_read else self.devices), **there}

    def close(self) -> tuple[asyncio.Task[Any], ...]:
        """Cancel whatever is in flight; return the tasks that are now ending."""
        every = (self._task, *(each.task for each in self._occasional))
        tasks = tuple(task for task in every if task is not None)
        for task in tasks:
            task.cancel()
        return tasks

    async def _read(self, deadline: float) -> Raw | None:
        self._readers.try_again()
        # Look up the reader each time: another pool's read may have given it up in the meantime.
        while (reader := self._readers.reader) is not None:
            # The gate, too: the pool may have been suspended since the read began. Only libzfs may
            # read such a pool, as its helper process can be abandoned, and as the config is usually
            # available (spa_get_stats, module/zfs/spa.c, takes no lock that waits for I/O);
            # ``zpool status`` would wait for the pool's error log.
            if self.gate and reader.name != "libzfs":
                return None
            try:
                return await self._read_with(reader, deadline)
            except ReaderUnusableError as error:
                self._readers.give_up(reader, str(error))
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
        self._problem = f"cannot read the pool: {self._readers.reason}"
        return None

    async def _read_with(self, reader: PoolReader, deadline: float) -> Raw:
        beside = [each for each in self._occasional if reader.name in each.readers]
        # Only the first reading waits for them; later ones run in the background.
        waited_for = [] if self.seen or self.gate else beside
        first = [asyncio.create_task(each.first(each.patience)) for each in waited_for]
        try:
            form = await reader.read(self.name, deadline)
            times = {"t": self._clocks.wall(), "clock": self._clocks.steady(), "began": self._began}
            reading = {"source": reader.name, "pool": self.name, **times, **form}
            for asking in first:
                await asking
            if not self.gate:
                for each in beside:
                    reading |= each.newest(reading)
            return cast("Raw", reading)
        finally:
            for asking in first:
                asking.cancel()


class PoolPollers:
    """The pollers of one machine's pools, each created when first needed."""

    def __init__(
        self,
        runner: CommandRunner,
        readers: FallbackReader,
        version: str | None,
        clocks: Clocks,
        deadline: float,
        history: CommandRunner | None = None,
    ) -> None:
        """``version`` is that of the running OpenZFS, ``deadline`` the seconds a read may take.

        ``history`` runs ``zpool history``; None if this user may not.
        """
        self.readers = readers
        self._runner = runner
        self._version = version
        self._clocks = clocks
        self._deadline = deadline
        self._history = history
        self._outputs = OutputReader(runner)
        self._pollers: dict[str, PoolPoller] = {}
        self._made: list[PoolPoller] = []

    @property
    def names(self) -> Collection[str]:
        """Names of the pools with a poller."""
        return self._pollers.keys()

    def of(self, name: str) -> PoolPoller:
        """Return the poller of one pool."""
        if name not in self._pollers:
            self._pollers[name] = self.make(name)
        return self._pollers[name]

    def make(self, name: str) -> PoolPoller:
        """Return a new poller that is not kept by name but is closed with the others."""
        about = self._runner, name, self._version, self._deadline
        occasional: list[OccasionalCommand] = [StatusMessageReader(*about), SitOutReader(*about)]
        occasional.append(VolumeReader(self._runner, name))
        if self._history is not None:
            occasional.append(HistoryReader(self._history, name))
        poller = PoolPoller(name, self.readers, occasional, self._clocks, self._deadline)
        self._made.append(poller)
        return poller

    def forget(self, imported: Container[str]) -> None:
        """Drop pools that vanished before a first reading, like the new one of zpool-split(8)."""
        for name in [n for n, p in self._pollers.items() if n not in imported and p.forgettable]:
            self._made.remove(self._pollers.pop(name))

    async def read(self, states: Mapping[PoolPoller, str | None], patience: float | None) -> None:
        """Wait for every pool that may be queried, at most ``patience`` seconds.

        ``states`` are the kernel's state words, as for PoolPoller.begin.
        """
        tasks = [task for each, state in states.items() if (task := each.begin(state)) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)

    async def zpool_outputs(self, name: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool itself says about a pool now.

        Raises UnavailableError for a pool that must not be queried, or on which a call is stuck.
        """
        poller = self.of(name)
        if poller.gate or poller.hanging:
            raise UnavailableError(poller.problem)
        return await self._outputs.read(name)

    async def aclose(self, patience: float) -> None:
        """Abandon whatever is in flight; wait at most ``patience`` seconds for its tasks to end."""
        ending: list[asyncio.Task[Any]] = [*self._outputs.close()]
        ending += [task for poller in self._made for task in poller.close()]
        await self.readers.aclose()
        if ending:
            await asyncio.wait(ending, timeout=patience)


def leaf_paths(form: Mapping[str, Any]) -> Iterator[str]:
    """Yield the path of every device in a raw form: from libzfs or JSON vdevs, or from ``names``.

    Files are left out: they have no disk, and it would be looked up with every sample. Text does
    not tell files and devices apart.
    """
    if "libzfs" in form:
        for vdev in config_vdevs(form):
            path = vdev.get("path")
            if isinstance(path, str) and path.startswith("/") and vdev.get("type") != "file":
                yield path
    elif "status" in form:
        yield from _paths(form["status"])
    else:
        yield from form.get("names", {})


def _paths(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        path = node.get("path")
        if isinstance(path, str) and path.startswith("/") and node.get("vdev_type") != "file":
            yield path
        below = node.values()
    else:
        below = node
    for value in below:
        if isinstance(value, dict) or (
            isinstance(value, list) and value and isinstance(value[0], dict)
        ):
            yield from _paths(value)
