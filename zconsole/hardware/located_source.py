"""A source whose samples also say where the disks below the leaves are."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from zconsole.hardware.location import Locations, disks_below, hubs, identity, locations
from zconsole.pool.chassis import Enclosure, LeafDisk
from zconsole.pool.model import NOTHING
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT, real, steady_clock, word
from zconsole.zfs.decode.builders import disk_form, enclosure_form
from zconsole.zfs.raw import Raw, config_vdevs
from zconsole.zfs.sources.base import Capabilities, Source
from zconsole.zfs.sources.kernel.nvlist import ENCLOSURE
from zconsole.zfs.sources.pool_poller import leaf_paths

_T = TypeVar("_T")

FIRST_PATIENCE = 1.0
"""Seconds that each sample waits for the first answer on locations; no later one is waited for."""
LOOK_EVERY = 10.0
"""Seconds between checks whether a disk came or went."""
READ_EVERY = 300.0
"""Seconds after which locations are read again even if no disk came or went."""
TEMPERATURES_EVERY = 60.0


class Surroundings(NamedTuple):
    """The known disks of the machine below a set of leaves."""

    paths: frozenset[str] = frozenset()
    """Leaf paths for which it was read."""
    devices: object = None
    """Fingerprint of the devices that existed."""
    read_at: float = float("-inf")
    """Steady clock in seconds."""
    disks: Mapping[str, LeafDisk] = {}
    """Disk by leaf path."""
    names: Mapping[str, tuple[str, ...]] = {}
    """Leaf path to the kernel names of the disks below it, one name for each."""
    enclosures: tuple[Enclosure, ...] = ()


class LocatedSource:
    """A source that adds ``disks`` and ``enclosures`` to the samples of this machine's pools."""

    def __init__(
        self, source: Source, root: Path = ROOT, steady: Callable[[], float] = steady_clock
    ) -> None:
        self._source = source
        self._root = root
        self._steady = steady
        self._places: _Background[Surroundings] = _Background()
        self._degrees: _Background[Mapping[str, float]] = _Background()
        self._thermometer = Thermometer(root, steady)
        self._known = Surroundings()
        self._temperatures: Mapping[str, float] = {}
        self._looked = self._measured = float("-inf")
        self._below: Sequence[object] = ()
        """Devices below the leaves in the samples for which locations were last requested."""
        self._asked: frozenset[str] = frozenset()
        """Leaf paths for which locations were requested."""
        self._forms: tuple[dict[str, Any], tuple[Any, ...]] = ({}, ())

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the underlying source."""
        return self._source.capabilities

    async def sample(self) -> tuple[Raw, ...] | None:
        """Return the source's raw forms with ``disks`` and ``enclosures``; None at its end."""
        raws = await self._source.sample()
        if raws is None:
            return None
        paths = [tuple(leaf_paths(raw)) for raw in raws]
        self._begin(raws, frozenset(chain.from_iterable(paths)))
        # Samples wait only for the first read of locations, never for later ones.
        if self._known.devices is None:
            await self._places.wait(FIRST_PATIENCE)
        self._take()
        return tuple(map(self._placed, raws, paths))

    async def aclose(self) -> None:
        """Close the source; a hanging read is left behind."""
        self._places.cancel()
        self._degrees.cancel()
        await self._source.aclose()

    def _begin(self, raws: Sequence[Raw], paths: frozenset[str]) -> None:
        """Start the reads that are due in threads, at most one of each kind at a time."""
        now = self._steady()
        below = [raw.get("devices") for raw in raws]
        due = not paths <= self._asked or now - self._looked >= LOOK_EVERY or below != self._below
        if not self._places.busy and due:
            self._looked, self._below = now, below
            self._asked |= paths
            hints = {path: slot for raw in raws for path, slot in recorded_slots(raw)}
            self._places.begin(surroundings, self._asked, self._known, now, self._root, hints)
        names = {name for path in paths for name in self._known.names.get(path, ())}
        if not self._degrees.busy and names and now - self._measured >= TEMPERATURES_EVERY:
            self._measured = now
            self._degrees.begin(self._thermometer.read, sorted(names))

    def _take(self) -> None:
        """Take over the results of finished reads."""
        places, degrees = self._places.take(), self._degrees.take()
        if places is not None:
            self._known = places
        if degrees is not None:
            self._temperatures = degrees
        if places is None and degrees is None:
            return
        warm, disks = self._temperatures, {}
        for path, disk in self._known.disks.items():
            found = [warm[n] for n in self._known.names.get(path, ()) if n in warm]
            disks[path] = disk_form(disk._replace(temperature=max(found, default=None)))
        self._forms = disks, tuple(enclosure_form(each) for each in self._known.enclosures)

    def _placed(self, raw: Raw, paths: Sequence[str]) -> Raw:
        disks, shelves = self._forms
        mine = {path: disks[path] for path in paths if path in disks}
        more = {"disks": mine, "enclosures": shelves}
        return cast("Raw", {**raw, **{key: value for key, value in more.items() if value}})


def recorded_slots(raw: Raw) -> Iterator[tuple[str, str]]:
    """Yield path and /sys slot of each leaf that has both in the pool's own configuration."""
    for vdev in config_vdevs(raw):
        path, slot = vdev.get("path"), vdev.get(ENCLOSURE)
        if isinstance(path, str) and isinstance(slot, str):
            yield path, slot


def surroundings(
    paths: frozenset[str],
    before: Surroundings,
    now: float,
    root: Path = ROOT,
    hints: Mapping[str, str] = NOTHING,
) -> Surroundings:
    """Return what is known of the disks below these leaves.

    A leaf whose disk is gone keeps its last known identity and location, so that it can be found
    and pulled. For a disk that was already gone before, its path or ``hints`` (leaf path to slot in
    /sys) may tell the location.
    """
    devices = _devices(root)
    stale = now - before.read_at >= READ_EVERY
    if devices == before.devices and paths == before.paths and not stale:
        return before
    places = locations(root)
    below = {path: disks_below(path, root) for path in paths}
    disks = {}
    for path, each in below.items():
        disk = leaf_disk(each, places, root) if each else before.disks.get(path)
        disk = disk or places.of_leaf(path, hints.get(path, ""))
        if any(disk):
            disks[path] = disk
    names = {path: tuple(disk[-1] for disk in each) for path, each in below.items()}
    return Surroundings(paths, devices, now, disks, names, places.enclosures)


def leaf_disk(disks: Sequence[tuple[str, ...]], places: Locations, root: Path = ROOT) -> LeafDisk:
    """Return the disks below a leaf as one; ``disks`` are as returned by ``disks_below``."""
    found = []
    for names in disks:
        who = identity(root / "sys/class/block" / names[-1], root)
        where = places.of(names)
        found.append((*where[:4], who.serial, who.wwn, who.model, hubs(names, root)))
    columns = zip(*found, strict=True)
    words: list[Any] = [", ".join(dict.fromkeys(filter(None, each))) for each in columns]
    return LeafDisk(*words[:-1])._replace(hubs=words[-1])


def _devices(root: Path) -> object:
    """Return a fingerprint that changes when a disk or slot comes or goes (name, inode)."""
    found: list[tuple[str, int]] = []
    for folder in ("sys/class/block", "sys/class/enclosure", "dev/disk/by-vdev"):
        with contextlib.suppress(OSError), os.scandir(root / folder) as entries:
            found += sorted((each.name, each.inode()) for each in entries)
    return found


class _Background(Generic[_T]):
    """One read at a time in a daemon thread; its result is taken once available."""

    def __init__(self) -> None:
        self._task: asyncio.Task[_T] | None = None

    @property
    def busy(self) -> bool:
        """Whether a read runs, or its result was not taken yet."""
        return self._task is not None

    def begin(self, job: Callable[..., _T], *args: Any) -> None:
        """Start a read; none may be running."""
        self._task = asyncio.create_task(in_daemon_thread(job, *args))

    async def wait(self, patience: float) -> None:
        """Wait for the running read, at most ``patience`` seconds."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=patience)

    def take(self) -> _T | None:
        """Return the result of a finished read; None without one, or if it failed."""
        if self._task is None or not self._task.done():
            return None
        task, self._task = self._task, None
        failed = task.cancelled() or task.exception() is not None
        return None if failed else task.result()

    def cancel(self) -> None:
        """Stop waiting for the read."""
        if self._task is not None:
            self._task.cancel()


# Temperatures come from the kernel's hardware monitors, drivetemp and NVMe's own
# (drivers/hwmon/drivetemp.c, drivers/nvme/host/hwmon.c), which ask the disk. Whether that keeps a
# rotating disk from falling asleep depends on the disk (Documentation/hwmon/drivetemp.rst), so a
# disk is asked only after it did I/O.

MONITORS = ("drivetemp", "nvme")
COLDEST, HOTTEST = -50.0, 150.0
"""Degrees Celsius; readings outside are faults."""
AWAKE = 180.0
"""Seconds after I/O for which a rotating disk is taken to be awake; usual timers are longer."""


class Thermometer:
    """A reader of temperatures that leaves sleeping disks alone."""

    def __init__(self, root: Path = ROOT, steady: Callable[[], float] = steady_clock) -> None:
        self._block = root / "sys/class/block"
        self._steady = steady
        self._known: dict[str, float] = {}
        self._counters: dict[str, str] = {}
        """I/O counters of each disk at the last call."""
        self._called = float("-inf")
        """Time of the last call (steady seconds)."""

    def read(self, disks: Iterable[str]) -> Mapping[str, float]:
        """Return degrees Celsius by kernel name; may take long.

        A rotating disk is asked only if it did I/O since the last call, and that was at most AWAKE
        seconds ago: otherwise it may sleep, and its last known temperature is returned, if any.
        """
        now, known, before = self._steady(), self._known, self._counters
        recent = now - self._called <= AWAKE
        self._called, self._known, self._counters = now, {}, {}
        for disk in disks:
            place = self._block / disk
            did = self._counters[disk] = word(place / "stat")
            rotates = word(place / "queue/rotational") != "0"
            may_sleep = rotates and not (recent and disk in before and did != before[disk])
            degrees = known.get(disk) if may_sleep else temperature(place)
            if degrees is not None:
                self._known[disk] = degrees
        return self._known


def temperature(disk: Path) -> float | None:
    """Return degrees Celsius of a disk by its folder in /sys/block; None if unknown."""
    device = disk / "device"
    for monitor in (
        *_folders(device / "hwmon"),
        *_folders(device),
        *_folders(device / "device/hwmon"),
    ):
        if word(monitor / "name") in MONITORS:
            with contextlib.suppress(ValueError):
                degrees = int(word(monitor / "temp1_input")) / 1000
                return degrees if COLDEST < degrees < HOTTEST else None
            return None
    return None


def _folders(place: Path) -> list[Path]:
    return sorted(real(place).glob("hwmon[0-9]*"))
