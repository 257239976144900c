"""The live source: every watched pool of this machine, each read the best way that works."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from zconsole.errors import NotFoundError, UnavailableError
from zconsole.system.async_process import CommandRunner, ProcessManager, ProcessRunner
from zconsole.system.daemon_thread import FileThread
from zconsole.system.host import ROOT, Clocks, boot_id, is_root
from zconsole.system.process import DeadlineError, find_command
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import NO_READER, Capabilities
from zconsole.zfs.sources.blockdev import diskstats_rows
from zconsole.zfs.sources.commands import Commands, has_json, zpool_version
from zconsole.zfs.sources.events import EventFollower
from zconsole.zfs.sources.fallback import FallbackReader, ReaderOption
from zconsole.zfs.sources.host_load import LoadMeter
from zconsole.zfs.sources.kstat import HANGING_STATES, module_version, pool_states
from zconsole.zfs.sources.libzfs.client import LibzfsReader
from zconsole.zfs.sources.lzc import PoolCore, load_lzc
from zconsole.zfs.sources.parameters import ScanParameters
from zconsole.zfs.sources.pool_poller import GONE, PoolPoller, PoolReading
from zconsole.zfs.sources.reader import PoolGoneError, ReaderUnusableError, ReadFailedError
from zconsole.zfs.sources.status_message import StatusMessageReader
from zconsole.zfs.sources.zpool import JsonReader, TextReader

DEADLINE = 5.0
"""Seconds after which a call is taken for stuck and no longer waited for."""

PATIENCE = 1.0
"""Seconds a later sample waits for a slow pool before the others are shown without it."""

CLOSE_DEADLINE = 0.3
"""Seconds that tasks, and then processes, are given to end when the source is closed."""

FILES_DEADLINE = 1.0
LOCK_HELD = "the kernel's pool lock is held: no pool answers; kstat and disk counters only"


@dataclass(frozen=True, slots=True)
class System:
    """What the live source takes from the machine; tests put their own in."""

    runner: CommandRunner
    spawner: ProcessManager
    root: Path = ROOT
    clocks: Clocks = field(default_factory=Clocks)
    deadline: float = DEADLINE


def this_system() -> System:
    """The machine the console runs on."""
    runner = ProcessRunner()
    return System(runner, runner)


class LiveSource:
    """Samples the pools named, or all imported ones, through libzfs, JSON or text."""

    def __init__(
        self,
        pools: Sequence[str] = (),
        interval: float = 1.0,
        prefer: str | None = None,
        system: System | None = None,
    ) -> None:
        self._asked_for = tuple(dict.fromkeys(pools))
        self._interval = interval
        self._prefer = prefer
        self._system = system or this_system()
        self._files = FileThread()
        self._load = LoadMeter(self._system.root)
        self._parameters = ScanParameters(self._system.root)
        self._tunables: Mapping[str, int] = {}
        self._watches: dict[str, PoolPoller] = {}
        self._probe: PoolPoller | None = None
        self._states: Mapping[str, str] = {}
        self._listed = False
        """Whether it was ever told which pools are imported."""
        self._unlisted: Sequence[str] = ()
        self._version: str | None = None
        self._boot: str | None = None
        self._began = 0.0
        """When the present sample began, on the steady clock."""
        self._chain: FallbackReader | None = None
        self._events: EventFollower | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See Source.capabilities."""
        reader = self._chain.reader if self._chain else None
        return Capabilities(
            name=reader.name if reader else NO_READER,
            reason=self._chain.reason if self._chain else "",
            may_act=is_root(),
            denied="" if is_root() else "not root",
            version=self._version,
        )

    async def sample(self) -> tuple[Raw, ...]:
        """See Source.sample."""
        self._began = self._system.clocks.steady()
        first = self._chain is None
        chain = self._chain or await self._open()
        names = await self._list(first)
        patience = None if first else max(PATIENCE, self._interval)
        watches = [self._watch(name, chain) for name in names]
        await self._read(watches, patience)
        readings = {watch.name: watch.take() for watch in watches}
        rows, host = await self._survey(watches, readings)
        return tuple(self._raw(watch, readings[watch.name], rows, host) for watch in watches)

    async def aclose(self) -> None:
        """See Source.aclose."""
        watches = (*self._watches.values(), *filter(None, (self._probe,)))
        ending = [task for watch in watches for task in watch.close()]
        if self._events is not None:
            self._events.close()
        if self._chain is not None:
            await self._chain.aclose()
        if ending:
            await asyncio.wait(ending, timeout=CLOSE_DEADLINE)
        await self._system.spawner.settle(CLOSE_DEADLINE)

    async def _open(self) -> FallbackReader:
        """Find out what this machine offers. Raises UnavailableError."""
        root, runner = self._system.root, self._system.runner
        check_zfs(root)
        self._version = module_version(root) or await zpool_version(runner, self._system.deadline)
        self._boot = boot_id(root)
        if is_root():
            self._events = EventFollower(self._system.spawner, self._system.clocks.wall())
            await self._events.start()
        self._chain = FallbackReader(self._candidates(), self._prefer)
        return self._chain

    def _candidates(self) -> tuple[ReaderOption, ...]:
        system, version = self._system, self._version
        runner, spawner = system.runner, system.spawner
        no_json = "" if has_json(version) else f"zpool {version} has no JSON"
        linux = (system.root / "proc/spl").exists()
        return (
            ReaderOption(
                "libzfs",
                lambda: LibzfsReader(spawner, device=system.root / "dev/zfs"),
                "" if linux else "libzfs is read on Linux only",
            ),
            ReaderOption(
                "json",
                lambda: JsonReader(runner, spawner, self._interval, system.clocks),
                no_json,
            ),
            ReaderOption(
                "text",
                lambda: TextReader(runner, spawner, self._interval, version, system.clocks),
            ),
        )

    async def _list(self, first: bool) -> tuple[str, ...]:
        """The pools of this sample; a name that never existed raises NotFoundError."""
        self._states = await self._imported()
        if not self._asked_for:
            for name in self._watches.keys() - self._states.keys():
                if self._watches[name].forgettable:  # as is the new pool of a zpool-split(8)
                    del self._watches[name]
            return tuple(dict.fromkeys((*sorted(self._states), *self._watches)))
        if first:
            missing = [name for name in self._asked_for if name not in self._states]
            self._unlisted = await self._confirmed(missing)
        self._states = {**dict.fromkeys(self._unlisted, ""), **self._states}
        return self._asked_for

    async def _confirmed(self, names: Sequence[str]) -> Sequence[str]:
        """The same names if all are pools all the same, as where kstats are hidden.

        Nobody is asked where kstats show other pools: a call that the pool lock holds up would
        keep this process from ending.

        Raises NotFoundError naming those that are not, UnavailableError when nobody answers.
        """
        if names and self._states:
            raise NotFoundError(f"no such pool: {', '.join(names)}")
        core = PoolCore(self._system.runner, self._system.deadline, load_lzc() if names else None)
        try:
            missing = [name for name in names if not await core.pool_exists(name)]
        except (DeadlineError, OSError) as error:
            raise UnavailableError(f"cannot tell whether {names[0]} exists: {error}") from None
        if missing:
            raise NotFoundError(f"no such pool: {', '.join(missing)}")
        return names

    async def _imported(self) -> Mapping[str, str]:
        """Imported pools and their state words, empty where the system has no kstat of them.

        The last answer where there is none in time. Raises UnavailableError where there never
        was: that no pool is imported must not be guessed.
        """
        try:
            states = await self._told()
        except (DeadlineError, ReadFailedError, PoolGoneError, ReaderUnusableError) as error:
            if not self._listed:
                raise UnavailableError(f"cannot tell which pools are imported: {error}") from None
            return self._states
        self._listed = True
        return states

    async def _told(self) -> Mapping[str, str]:
        root, patience = self._system.root, self._system.deadline
        if (root / "proc/spl").exists():
            seconds = FILES_DEADLINE if self._listed else max(FILES_DEADLINE, patience)
            return await self._files.run(lambda: pool_states(root), seconds)
        commands = Commands(self._system.runner, patience)
        text = await commands.output("zpool", "list", "-H", "-o", "name")
        return dict.fromkeys(text.split(), "")

    def _watch(self, name: str, chain: FallbackReader) -> PoolPoller:
        if name not in self._watches:
            system = self._system
            message = StatusMessageReader(system.runner, name, self._version, system.deadline)
            watch = PoolPoller(name, chain, message, system.clocks, system.deadline)
            self._watches[name] = watch
        return self._watches[name]

    async def _read(self, watches: Sequence[PoolPoller], patience: float | None) -> None:
        """Wait until every pool that may be asked has answered, at most ``patience`` seconds.

        The first sample waits as long as a read may take: each has its own deadline.
        """
        tasks = [task for watch in watches if (task := self._begin(watch)) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)

    def _begin(self, watch: PoolPoller) -> asyncio.Task[PoolReading | None] | None:
        state = self._states.get(watch.name)
        watch.gate = ""
        if state is None:
            watch.gate = GONE
        elif state in HANGING_STATES:
            watch.gate = f"the pool is {state}: zpool would hang, so it is not asked"
            return watch.glance()
        return None if watch.gate else watch.begin()

    async def _survey(
        self, watches: Sequence[PoolPoller], readings: Mapping[str, PoolReading | None]
    ) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """Disk counters and load of the machine, and the disks under leaves that changed."""
        root = self._system.root

        def read_files() -> tuple[Mapping[str, str], Mapping[str, Any]]:
            rows = diskstats_rows(root)
            for watch in watches:
                watch.resolve(readings[watch.name], rows, root)
            self._tunables = self._parameters.read(self._system.clocks.steady())
            return rows, self._load.read()

        try:
            return await self._files.run(read_files, FILES_DEADLINE)
        except DeadlineError:
            return {}, {}

    def _raw(
        self,
        watch: PoolPoller,
        reading: PoolReading | None,
        rows: Mapping[str, str],
        host: Mapping[str, Any],
    ) -> Raw:
        clocks = self._system.clocks
        names = [name for names in watch.devices.values() for name in names]
        found: dict[str, Any] = {
            "boot": self._boot,
            "version": self._version,
            "kstat": self._states.get(watch.name),
            "host": host,
            "tunables": self._tunables,
            "devices": watch.devices if rows else None,
            "diskstats": [rows[name].split() for name in names if name in rows],
            "events": self._events.take(watch.name) if self._events else None,
            **self._state_of(watch, reading),
        }
        known = {key: value for key, value in found.items() if value}
        known["t"] = reading.t if reading else clocks.wall()
        known["clock"] = reading.clock if reading else clocks.steady()
        known["began"] = reading.began if reading else self._began
        return cast("Raw", {**known, "pool": watch.name})

    def _state_of(self, watch: PoolPoller, reading: PoolReading | None) -> dict[str, Any]:
        if reading is None:
            lock_held = watch.hanging and self._lock_held()
            absent = watch.gate == GONE
            return {"problem": LOCK_HELD if lock_held else watch.problem, "absent": absent}
        message = watch.message(reading)
        return {"source": reading.source, **reading.form, "message": message}

    def _lock_held(self) -> bool:
        """Whether no pool at all answers though the kernel calls some healthy."""
        healthy = [name for name, state in self._states.items() if state not in HANGING_STATES]
        watched = [self._watches[name] for name in healthy if name in self._watches]
        if not all(watch.hanging for watch in watched):
            return False
        if len(watched) > 1 or len(healthy) < len(self._states):
            return True
        return self._probe_hangs([name for name in healthy if name not in self._watches])

    def _probe_hangs(self, others: Sequence[str]) -> bool:
        """Ask a pool nobody watches; the answer, or its lack, is known at a later sample."""
        if self._probe is None or self._probe.name not in others:
            if not others or self._chain is None:
                return False
            system = self._system
            message = StatusMessageReader(system.runner, others[0], self._version, system.deadline)
            self._probe = PoolPoller(
                others[0], self._chain, message, system.clocks, system.deadline
            )
        self._probe.take()
        self._probe.begin()
        return self._probe.hanging


def check_zfs(root: Path = ROOT) -> None:
    """Raise UnavailableError, with the reason, where no pool can be read at all."""
    device = root / "dev/zfs"
    if not device.exists():
        installed = find_command("zpool") is not None
        why = "the ZFS kernel module is not loaded" if installed else "there is no zpool command"
        raise UnavailableError(f"no ZFS on this machine: no {device}, {why}")
    if not os.access(device, os.R_OK | os.W_OK):
        raise UnavailableError(f"{device}: permission denied")
