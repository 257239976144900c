"""Reasons for a running job to wait: the pool, new snapshots, free space."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.errors import UnavailableError
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.job.free_space_trend import Trend
from zconsole.rebalance.planning.facts import FactsReader

POOL_INTERVAL = 5.0
SNAPSHOT_INTERVAL = 30.0
SPACE_INTERVAL = 0.5
LEAST = 16 << 20
"""Bytes free above the floor with which a portion is begun: two of the smallest. With a few KB one
file after the other would be skipped as too large while somebody else fills the pool."""
AT_FLOOR = "free space is at the floor"


@dataclass(slots=True)
class PeriodicCheck:
    """Looks at something every ``interval`` seconds, beside the work: zpool takes its time, and
    meanwhile other processes may be waiting for a file of ours. Only the first is waited for."""

    look: Callable[[], None]
    interval: float
    clock: Callable[[], float]
    _looked: float | None = None
    _thread: threading.Thread | None = None

    def __call__(self) -> None:
        """Look if it is time to."""
        now = self.clock()
        if self._looked is None:
            self._looked = now
            self.look()
        elif now - self._looked >= self.interval and not self.at_it:
            self._looked = now
            self._thread = threading.Thread(target=self.look, daemon=True)
            self._thread.start()

    @property
    def at_it(self) -> bool:
        """Whether a look is under way."""
        return self._thread is not None and self._thread.is_alive()


@dataclass(slots=True)
class PoolGate:
    """Closed while the pool is not ONLINE, and while a scan runs unless that is permitted."""

    reader: FactsReader
    pool: str
    during_scan: bool
    clock: Callable[[], float]
    looks: PeriodicCheck = field(init=False)
    _reason: str | None = None

    def __post_init__(self) -> None:
        self.looks = PeriodicCheck(self._look, POOL_INTERVAL, self.clock)

    def __call__(self) -> str | None:
        """The gate; asks zpool every POOL_INTERVAL seconds."""
        self.looks()
        return self._reason

    def _look(self) -> None:
        self._reason = self._ask()

    def _ask(self) -> str | None:
        try:
            state, scanning = self.reader.condition(self.pool)
        except UnavailableError as error:
            return str(error)
        if state != "ONLINE":
            return f"pool {self.pool} is {state}"
        return f"a {scanning} is running" if scanning and not self.during_scan else None


@dataclass(slots=True)
class SpaceGate:
    """Closed while free space is at the floor. Also tells how much may be written now."""

    reserves: Mapping[bytes, int]
    """Bytes of the free space that are not for this job, by its directories: they may be on
    filesystems, or datasets with quotas, of which one is full long before another."""
    clock: Callable[[], float]
    planned: Mapping[bytes, int] = field(default_factory=dict)
    """Bytes for this job as of its plan, by its directories."""
    _looked: float | None = None
    _tight: bool = False
    _rooms: Mapping[int, int] = field(default_factory=dict)
    """By device."""
    trend: Trend = field(default_factory=Trend)

    def room(self, fresh: bool = False, device: int | None = None) -> int:
        """Bytes that may be written before the floor is reached, as of half a second ago: on one
        filesystem, or on each.

        Raises StopJobError when all of its directories are gone.
        """
        now = self.clock()
        if fresh or self._looked is None or now - self._looked >= SPACE_INTERVAL:
            self._looked = now
            self._rooms = self._look()
            self.trend.note(now, min(self._rooms.values()))
        least = min(self._rooms.values())
        return max(0, least if device is None else self._rooms.get(device, least))

    def _look(self) -> Mapping[int, int]:
        rooms: dict[int, int] = {}
        self._tight = False
        for root, reserve in self.reserves.items():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                device, status = Path(os.fsdecode(root)).stat().st_dev, os.statvfs(root)
                room = status.f_bavail * status.f_frsize - reserve
                rooms[device] = min(room, rooms.get(device, room))
                self._tight |= room <= min(LEAST, self.planned.get(root, 0) // 4)
        if not rooms:
            raise StopJobError("its directories are gone")
        return rooms

    def __call__(self) -> str | None:
        """The gate."""
        return None if self.room() > 0 else AT_FLOOR

    def before_batch(self) -> str | None:
        """A gate that is closed hardly above the floor, too, where the plan saw more room. Not for
        the midst of a portion: what is in flight may be what took the room."""
        self.room()
        return AT_FLOOR if self._tight else None


@dataclass(slots=True)
class SnapshotGate:
    """Closed when snapshots taken since the job began would pin more than there is room for."""

    reader: FactsReader
    datasets: Sequence[str]
    left: Callable[[], int]
    """Bytes still to move."""
    room: Callable[[], int]
    clock: Callable[[], float]
    note: Callable[[str], None]
    looks: PeriodicCheck = field(init=False)
    _began: dict[str, int] = field(default_factory=dict)
    """The txg of each dataset's newest snapshot at the first look: dates follow set clocks."""
    _newest: dict[str, int] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)
    """How many snapshots of each dataset were held at the last look."""

    def __post_init__(self) -> None:
        self.looks = PeriodicCheck(self._look, SNAPSHOT_INTERVAL, self.clock)

    def __call__(self) -> str | None:
        """The gate; asks zfs every SNAPSHOT_INTERVAL seconds."""
        self.looks()
        if any(newest > self._began[name] for name, newest in self._newest.items()):
            left, room = self.left(), self.room()
            if left > room:
                return f"a new snapshot pins old blocks: {left} bytes left to move, {room} free"
        return None

    def _look(self) -> None:
        for name in self.datasets:
            try:
                newest, held = self.reader.snapshots_now(name)
            except UnavailableError:
                continue
            began = self._began.setdefault(name, newest)
            if newest > max(began, self._newest.get(name, 0)):
                self.note(f"new snapshot of {name}: what moves from now on stays allocated twice")
            self._newest = {**self._newest, name: newest}  # the gate may be going through it
            if held > self._held.get(name, held):
                self.note(f"snapshots of {name} were held: what they keep stays until a release")
            self._held[name] = held
