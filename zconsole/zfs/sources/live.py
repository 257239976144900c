"""The live source: every watched pool of this machine, all read by the best method that works."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from zconsole.errors import NotFoundError, UnavailableError
from zconsole.system.async_process import CommandRunner, ProcessRunner
from zconsole.system.daemon_thread import FileThread
from zconsole.system.host import ROOT, Clocks, boot_id, is_root
from zconsole.system.process import DeadlineError, find_command
from zconsole.zfs.raw import Raw, has_active_scan
from zconsole.zfs.sources.base import NO_READER, Capabilities
from zconsole.zfs.sources.blockdev import diskstats_names, diskstats_rows
from zconsole.zfs.sources.events import EventFollower
from zconsole.zfs.sources.kernel.client import KernelReader
from zconsole.zfs.sources.kstat import (
    HANGING_STATES,
    DatasetMeter,
    LoadMeter,
    module_version,
    pool_states,
    zed_runs,
)
from zconsole.zfs.sources.occasional import LINES
from zconsole.zfs.sources.pool_poller import GONE, PoolPoller, PoolPollers
from zconsole.zfs.sources.reader import (
    POOLS,
    Commands,
    FallbackReader,
    PoolGoneError,
    ReaderOption,
    ReaderUnusableError,
    ReadFailedError,
    pool_names,
    zpool_version,
)
from zconsole.zfs.sources.zpool import zpool_readers
from zconsole.zfs.zpool_output import ZpoolOutput

DEADLINE = 5.0
"""Seconds after which a call counts as stuck and is abandoned."""

PATIENCE = 1.0
"""Seconds a later sample waits for a slow pool before it is shown without that pool."""

BESIDE = 1.0
"""Seconds between two reports of ``zpool iostat``, which runs alongside the JSON or text reader."""

CLOSE_DEADLINE = 0.3
"""Seconds that tasks, and then processes, have to end when the source is closed."""

FILES_DEADLINE = 1.0
"""Seconds for reads of /proc and /sys in a thread, and for ``zpool list`` where they lack ZFS."""

ZED_EVERY = 30.0
"""Seconds between two looks whether ZED runs: there may be thousands of processes to look at."""

LOCK_HELD = "the kernel's pool lock is held: no pool answers; kstat and disk counters only"


@dataclass(frozen=True, slots=True)
class System:
    """Access to the machine that the live source needs; tests replace it."""

    runner: CommandRunner
    spawner: ProcessRunner
    root: Path = ROOT
    clocks: Clocks = field(default_factory=Clocks)
    deadline: float = DEADLINE
    history: ProcessRunner | None = None
    """Runs ``zpool history``, which only root may; None if the user is not root."""


def this_system() -> System:
    """Return the access to the machine that the console runs on."""
    runner = ProcessRunner()
    return System(runner, runner, history=ProcessRunner(LINES) if is_root() else None)


class LiveSource:
    """Samples the named pools, or all imported ones, by the kernel's config or by zpool.

    The first sample waits for every pool as long as a read may take, later ones PATIENCE.
    """

    def __init__(
        self,
        pools: Sequence[str] = (),
        prefer: str | None = None,
        system: System | None = None,
    ) -> None:
        self._asked_for = tuple(dict.fromkeys(pools))
        self._prefer = prefer
        self._system = system or this_system()
        self._files = FileThread()
        # One of its own, in which the path of a file on a dead NFS server may hang: without state
        # words, a pool that is suspended later would be asked.
        self._disks = FileThread()
        self._load = LoadMeter(self._system.root)
        # Thousands of datasets may take longer than a sample waits: a later one shows their I/O.
        self._dataset_files = FileThread()
        self._objsets: Mapping[str, Sequence[Mapping[str, str]]] = {}
        """I/O of datasets by pool that was read and not yet shown."""
        self._datasets = DatasetMeter(self._system.root, self._system.clocks.steady)
        self._zed: bool | None = None
        self._zed_at = float("-inf")
        """When ``_zed`` was looked at, on the steady clock."""
        self._pollers: PoolPollers | None = None
        """None before the first sample."""
        self._probe: PoolPoller | None = None
        self._states: Mapping[str, str] = {}
        self._listed = False
        """True once the list of imported pools has been read."""
        self._hung: DeadlineError | None = None
        """The last later attempt to read that list that got no answer in time."""
        self._unlisted: Sequence[str] = ()
        self._version: str | None = None
        self._boot: str | None = None
        self._began = 0.0
        """When the current sample began, on the steady clock."""
        self._events: EventFollower | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Name of the reader in use, and why no better one is."""
        readers = self._pollers.readers if self._pollers else None
        reader = readers.reader if readers else None
        return Capabilities(
            name=reader.name if reader else NO_READER,
            reason=readers.reason if readers else "",
            denied="" if is_root() else "not root",
            version=self._version,
        )

    async def sample(self) -> tuple[Raw, ...]:
        """Read every pool; pools that are slow or must not be queried get ``problem`` set."""
        self._began = self._system.clocks.steady()
        first = self._pollers is None
        pollers = self._pollers = self._pollers or await self._open()
        polled = [pollers.of(name) for name in await self._list(pollers, first)]
        # The first sample has no time limit of its own: each read has its deadline.
        patience = None if first else PATIENCE
        await pollers.read({each: self._states.get(each.name) for each in polled}, patience)
        readings = {each: each.collect() for each in polled}
        # After the readings, because these say which disks there are.
        rows, machine = await self._survey(readings)
        objsets = await self._read_objsets(readings)
        return tuple(self._raw(each, readings[each], rows, machine, objsets) for each in polled)

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool itself says about a pool now. Raises UnavailableError."""
        if self._pollers is None:
            raise UnavailableError("no sample yet")
        return await self._pollers.zpool_outputs(pool)

    async def aclose(self) -> None:
        """Stop events and readers, then wait up to CLOSE_DEADLINE for their processes to end."""
        if self._events is not None:
            self._events.close()
        if self._pollers is not None:
            await self._pollers.aclose(CLOSE_DEADLINE)
        # Last: pollers and events abandoned their processes above, and these must be reaped here.
        for runner in filter(None, (self._system.spawner, self._system.history)):
            await runner.settle(CLOSE_DEADLINE)

    async def _open(self) -> PoolPollers:
        """Detect what this machine offers. Raises UnavailableError."""
        system = self._system
        device = system.root / "dev/zfs"
        if not device.exists():
            installed = find_command("zpool") is not None
            why = "the ZFS kernel module is not loaded" if installed else "zpool is not installed"
            text = f"ZFS not found: {device} is missing and {why}. Try: zconsole demo"
            raise UnavailableError(text)
        if not os.access(device, os.R_OK | os.W_OK):
            raise UnavailableError(f"{device}: permission denied. Run it as root (sudo)")
        try:
            self._version = module_version(system.root) or await zpool_version(
                system.runner, system.deadline
            )
        except DeadlineError as error:
            raise UnavailableError(f"cannot tell the version of ZFS: {error}") from None
        self._boot = boot_id(system.root)
        if is_root():
            # From now on: the kernel still lists older events, too.
            self._events = EventFollower(system.spawner, system.clocks)
            self._events.start()
        readers = FallbackReader(self._options(), self._prefer)
        about = (self._version, system.clocks, system.deadline)
        return PoolPollers(system.runner, readers, *about, history=system.history)

    def _options(self) -> tuple[ReaderOption, ...]:
        system = self._system
        other = "" if (system.root / "proc/spl").exists() else "libzfs is read on Linux only"
        libzfs = ReaderOption("libzfs", lambda: KernelReader(system.spawner), other)
        runners = system.runner, system.spawner
        return (libzfs, *zpool_readers(*runners, BESIDE, self._version, system.clocks))

    async def _list(self, pollers: PoolPollers, first: bool) -> tuple[str, ...]:
        """Return the pools of this sample. Raises NotFoundError for a name that never existed."""
        self._states = await self._imported()
        if not self._asked_for:
            pollers.forget(self._states)
            return tuple(dict.fromkeys((*sorted(self._states), *pollers.names)))
        if first:
            missing = [name for name in self._asked_for if name not in self._states]
            self._unlisted = await self._confirmed(missing)
        self._states = {**dict.fromkeys(self._unlisted, ""), **self._states}
        return self._asked_for

    async def _confirmed(self, names: Sequence[str]) -> Sequence[str]:
        """Return ``names`` if all of them are pools, which kstats may hide.

        zpool is not run if kstats list other pools: a call blocked by the pool lock would keep this
        process from exiting.

        Raises NotFoundError naming those that are not pools, UnavailableError without an answer.
        """
        if names and self._states:
            raise NotFoundError(f"no such pool: {', '.join(names)}")
        missing = [name for name in names if not await self._exists(name)]
        if missing:
            raise NotFoundError(f"no such pool: {', '.join(missing)}")
        return names

    async def _exists(self, name: str) -> bool:
        """Ask libzfs_core, else ``zpool``, whether a pool exists.

        Raises UnavailableError without an answer.
        """
        deadline = self._system.deadline
        try:
            known = await self._files.run(lambda: pool_exists(load_lzc(), name), deadline)
            if known is None:
                await Commands(self._system.runner, deadline).output(*POOLS, name)
        except (PoolGoneError, ReadFailedError):
            return False
        except (DeadlineError, ReaderUnusableError) as error:
            raise UnavailableError(f"cannot tell whether {name} exists: {error}") from None
        return known is not False

    async def _imported(self) -> Mapping[str, str]:
        """Return imported pools and their state words, which are empty where there are no kstats.

        Returns the previous answer if there is no new one in time, or an earlier call still hangs.
        Raises UnavailableError if there never was one: "no pool is imported" must not be a guess.
        """
        if self._hung is not None and self._hung.alive():
            return self._states
        root, patience = self._system.root, self._system.deadline
        seconds = FILES_DEADLINE if self._listed else max(FILES_DEADLINE, patience)
        try:
            if (root / "proc/spl").exists():
                states = await self._files.run(lambda: pool_states(root), seconds)
            else:
                names = pool_names(await Commands(self._system.runner, seconds).output(*POOLS))
                states = dict.fromkeys(names, "")
        except (DeadlineError, ReadFailedError, PoolGoneError, ReaderUnusableError) as error:
            if not self._listed:
                raise UnavailableError(f"cannot tell which pools are imported: {error}") from None
            if isinstance(error, DeadlineError):
                self._hung = error
            return self._states
        self._listed = True
        return states

    async def _survey(
        self, readings: Mapping[PoolPoller, Raw | None]
    ) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """Return disk counters, and their clock with the machine's load.

        Look up disks under leaves that changed.

        The counters are read without a thread: the kernel has them in memory, so a thread would
        cost more than the read.
        """
        now, root = self._system.clocks.steady(), self._system.root
        rows = diskstats_rows(root)
        unresolved = {
            poller: paths
            for poller, reading in readings.items()
            if (paths := poller.unresolved(reading, rows))
        }
        if unresolved:
            with contextlib.suppress(DeadlineError):
                found = await self._disks.run(
                    lambda: {
                        poller: {path: diskstats_names(path, rows, root) for path in paths}
                        for poller, paths in unresolved.items()
                    },
                    FILES_DEADLINE,
                )
                for poller, names in found.items():
                    poller.resolve(names, is_read=readings[poller] is not None)
        load = self._load.read(now)
        if (zed := await self._zed_runs(now)) is not None:
            load = {**load, "host": {**load["host"], "zed": zed}}
        return rows, {"diskstats_clock": now, **load}

    async def _zed_runs(self, now: float) -> bool | None:
        """Return whether ZED runs, looked at only while a pool is not ONLINE; None if unknown."""
        if all(state == "ONLINE" for state in self._states.values()):
            return None
        if now - self._zed_at >= ZED_EVERY:
            self._zed, self._zed_at = None, now
            with contextlib.suppress(DeadlineError):
                root = self._system.root
                self._zed = await self._disks.run(lambda: zed_runs(root), FILES_DEADLINE)
        return self._zed

    async def _read_objsets(
        self, readings: Mapping[PoolPoller, Raw | None]
    ) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Read the I/O of datasets where a scan runs and it is due; return it by pool."""
        due = [
            poller.name
            for poller, reading in readings.items()
            if reading is not None
            and not poller.gate
            and self._datasets.due(poller.name)
            and has_active_scan(reading)
        ]

        def read() -> None:
            found = {name: self._datasets.read(name) for name in due}
            self._objsets = {**self._objsets, **found}

        if due:
            with contextlib.suppress(DeadlineError):
                await self._dataset_files.run(read, FILES_DEADLINE)
        found, self._objsets = self._objsets, {}
        return found

    def _raw(
        self,
        poller: PoolPoller,
        reading: Raw | None,
        rows: Mapping[str, str],
        machine: Mapping[str, Any],
        objsets: Mapping[str, Sequence[Mapping[str, str]]],
    ) -> Raw:
        clocks = self._system.clocks
        names = [name for names in poller.devices.values() for name in names]
        found: dict[str, Any] = {
            "boot": self._boot,
            "version": self._version,
            "kstat": self._states.get(poller.name),
            **machine,
            "devices": poller.devices if rows else None,
            "diskstats": [rows[name].split() for name in names if name in rows],
            "objsets": objsets.get(poller.name),
            "events": self._events.collect(poller.name) if self._events else None,
            "absent": reading is None and poller.gate == GONE,
        }
        known = {key: value for key, value in found.items() if value}
        if reading is not None:
            return cast("Raw", {**known, **reading})
        times = {"t": clocks.wall(), "clock": clocks.steady(), "began": self._began}
        why = LOCK_HELD if poller.hanging and self._lock_held() else poller.problem
        return cast("Raw", {**known, **times, "pool": poller.name, "problem": why})

    def _lock_held(self) -> bool:
        """Return whether no pool answers although the kernel reports some of them as healthy."""
        if self._pollers is None:
            return False
        healthy = [name for name, state in self._states.items() if state not in HANGING_STATES]
        polled = [name for name in healthy if name in self._pollers.names]
        if not all(self._pollers.of(name).hanging for name in polled):
            return False
        if polled and (len(polled) > 1 or len(healthy) < len(self._states)):
            return True
        # Query a pool that is not watched; whether it answers is known at a later sample.
        others = [name for name in healthy if name not in polled]
        if self._probe is None or self._probe.name not in others:
            if not others:
                return False
            self._probe = self._pollers.make(others[0])
        self._probe.collect()
        self._probe.begin(self._states.get(self._probe.name))
        return self._probe.hanging


def load_lzc() -> ModuleType | None:
    """Return the distribution's ``libzfs_core`` module (``python3-pyzfs``); None if there is none.

    Only OpenZFS's own is accepted: the package of that name on PyPI is another, abandoned one whose
    calls no longer fit the C library.
    """
    try:
        module = importlib.import_module("libzfs_core")
    except (ImportError, OSError):
        return None
    return module if hasattr(module, "lzc_pool_checkpoint") else None


def pool_exists(module: ModuleType | None, pool: str) -> bool | None:
    """Return whether a pool of that name is imported; None if the module cannot tell.

    May block in the kernel: call it in a thread.
    """
    if any(mark in pool for mark in "/@#"):
        return False  # lzc_exists also accepts datasets, snapshots and bookmarks
    try:
        return bool(module.lzc_exists(pool.encode("utf-8", "surrogateescape"))) if module else None
    except Exception:  # its exceptions have no common base: ZFSError, OSError, …
        return None
