"""Everything that may hold a running job back: orders, pool, snapshots, space, hours, slow disks.

And the rate it may go at. Checked at every chunk, several times a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from zconsole.errors import UnavailableError
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.free_space import SpaceGate
from zconsole.rebalance.job.job import Job, JobClocks, orders_of
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.settings import Limits
from zconsole.system.day_hours import day_hours
from zconsole.zfs.decode.devices import Blocks
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.blockdev import diskstats_names, diskstats_rows

_T = TypeVar("_T")

POOL_INTERVAL = 5.0
SNAPSHOT_INTERVAL = 30.0
SLICE = 0.05
"""Seconds of a single sleep: leases have to be let go, and orders noticed, between two."""
LOOK = 0.2
"""Seconds between looks at orders and gates."""
BURST = 0.5
"""Seconds of work that may run ahead of the rate limit."""

Gate = Callable[[], str | None]
"""Why the job has to wait now, None when it need not. May raise StopJobError."""


def pool_of(places: Sequence[JobDirectory]) -> str | None:
    """The pool of all directories of a job; None without ZFS."""
    dataset = places[0].dataset
    return dataset.pool if dataset else None


def devices_of(reader: FactsReader, places: Sequence[JobDirectory]) -> list[str]:
    """Paths of the devices that a job's files are on; none where there is none in /sys."""
    if pool := pool_of(places):
        return reader.device_paths(pool)
    device = Path(os.fsdecode(places[0].root)).stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return [f"/dev/{link.resolve().name}"] if link.exists() else []


@dataclass(slots=True)
class PeriodicCheck(Generic[_T]):
    """Asks something every ``interval`` seconds, in a thread of its own.

    zpool takes its time, and meanwhile other processes may be waiting for a file of ours. Only
    the first answer is waited for.
    """

    ask: Callable[[], _T]
    interval: float
    clock: Callable[[], float]
    _checked: float | None = None
    _thread: threading.Thread | None = None
    _answer: _T | None = None

    def __call__(self) -> _T | None:
        """The newest answer; ask again if it is time to."""
        now = self.clock()
        if self._checked is None:
            self._checked = now
            self._take()
        elif now - self._checked >= self.interval and not self.is_running:
            self._checked = now
            self._thread = threading.Thread(target=self._take, daemon=True)
            self._thread.start()
        return self._answer

    def _take(self) -> None:
        self._answer = self.ask()

    @property
    def is_running(self) -> bool:
        """Whether an answer is waited for."""
        return self._thread is not None and self._thread.is_alive()


def pool_gate(
    reader: FactsReader, pool: str, during_scan: bool, clock: Callable[[], float]
) -> PeriodicCheck[str | None]:
    """Closed while the pool is not ONLINE, and while a scan runs unless that is permitted."""

    def _ask() -> str | None:
        try:
            state, scanning = reader.condition(pool)
        except UnavailableError as error:
            return str(error)
        if state != "ONLINE":
            return f"pool {pool} is {state}"
        return f"a {scanning} is running" if scanning and not during_scan else None

    return PeriodicCheck(_ask, POOL_INTERVAL, clock)


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
    check: PeriodicCheck[None] = field(init=False)
    _began: dict[str, int] = field(default_factory=dict)
    """The txg of each dataset's newest snapshot at the first check: dates follow set clocks."""
    _newest: dict[str, int] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)
    """How many snapshots of each dataset were held at the last check."""

    def __post_init__(self) -> None:
        self.check = PeriodicCheck(self._check, SNAPSHOT_INTERVAL, self.clock)

    def __call__(self) -> str | None:
        """The gate; asks zfs every SNAPSHOT_INTERVAL seconds."""
        self.check()
        if any(newest > self._began[name] for name, newest in self._newest.items()):
            left, room = self.left(), self.room()
            if left > room:
                return f"a new snapshot pins old blocks: {left} bytes left to move, {room} free"
        return None

    def _check(self) -> None:
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


def window_gate(text: str, local: Callable[[], datetime]) -> Gate:
    """Open between two times of the day, ``22:00-06:00``. Raises ValueError for anything else."""
    hours = day_hours(text)

    def _gate() -> str | None:
        return None if hours.includes(local()) else f"outside {text}"

    return _gate


@dataclass(slots=True)
class Backoff:
    """Holds the job back while disk latency is high: a gate that closes for growing spells."""

    limit: float
    """Seconds of mean disk wait that the rest of the machine may see."""
    latency: Callable[[], float | None]
    """Mean wait over the last second, None when nothing was asked of the disks."""
    clock: Callable[[], float]
    spell: float = 0.0
    until: float = 0.0
    _checked: float = 0.0

    def __call__(self) -> str | None:
        """The gate."""
        now = self.clock()
        if now - self._checked >= 1.0:
            self._checked = now
            wait = self.latency()
            slow = wait is not None and wait > self.limit
            self.spell = min(8.0, max(0.5, self.spell * 2)) if slow else self.spell / 2
            if slow:
                self.until = now + self.spell
        return "disk latency is high" if now < self.until else None


@dataclass(slots=True)
class DiskWait:
    """Mean wait of the requests that devices completed since the last call, seconds."""

    paths: Sequence[str]
    rows: Callable[[], Mapping[str, str]] = diskstats_rows
    _last: tuple[int, float] | None = None

    def __call__(self) -> float | None:
        """None on the first call and when nothing was completed."""
        rows = self.rows()
        devices = {path: diskstats_names(path, rows) for path in self.paths}
        raw: Raw = {"t": 0.0, "diskstats": list(rows.values()), "devices": devices}
        blocks = Blocks(raw).all().values()
        requests = sum(each.read_ops + each.write_ops for each in blocks)
        waited = sum(each.read_seconds + each.write_seconds for each in blocks)
        last, self._last = self._last, (requests, waited)
        if last is None or requests <= last[0]:
            return None
        return (waited - last[1]) / (requests - last[0])


@dataclass(slots=True)
class Pacer:
    """Waits for the rate limit and for gates. Times are of a clock that never jumps."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    gates: Sequence[Gate]
    waiting: Callable[[str | None], None]
    """Told why the job waits, and None when it goes on."""
    service: Callable[[], None] = field(default=lambda: None)
    rate: float | None = None
    """Bytes a second."""
    _also: Gate | None = None
    _debt: float = 0.0
    _paid: float | None = None
    _looked: float | None = None

    def tick(self, count: int) -> None:
        """Account for bytes just handled; waits as long as it must. Raises StopJobError."""
        now = self.clock()
        if self._looked is None or now - self._looked >= LOOK:
            self._looked = now
            self._pass_gates()
        if self.rate:
            self._pay(count)

    def wait_for(self, gate: Gate) -> None:
        """Wait until all gates and this one are open. Raises StopJobError."""
        self._also = gate
        try:
            self._pass_gates()
        finally:
            self._also = None

    def _pass_gates(self) -> None:
        reason = self._closed()
        if reason is None:
            return
        self.waiting(reason)
        while (now_reason := self._closed()) is not None:
            if now_reason != reason:
                reason = now_reason
                self.waiting(reason)
            self.sleep(SLICE)
            self.service()
        self.waiting(None)
        self._paid, self._debt = None, 0.0

    def _closed(self) -> str | None:
        gates = self.gates if self._also is None else (*self.gates, self._also)
        return next((reason for gate in gates if (reason := gate()) is not None), None)

    def _pay(self, count: int) -> None:
        """Sleep off what was handled faster than the limit."""
        now = self.clock()
        rate = self.rate or 1.0
        if self._paid is not None:
            self._debt = max(-BURST * rate, self._debt - (now - self._paid) * rate)
        self._paid = now
        self._debt += count
        while self.rate and self._debt >= 1:
            before = self.clock()
            self.sleep(min(SLICE, self._debt / self.rate))
            self.service()
            self._debt -= (self.clock() - before) * self.rate
            self._paid = self.clock()
            if self._paid - (self._looked or 0.0) >= LOOK:
                self._looked = self._paid
                self._pass_gates()


@dataclass(slots=True)
class JobControl:
    """Has a pacer obey. ``stop`` is set by a signal handler: why to stop."""

    journal: Journal
    job: Job
    reader: FactsReader
    places: Sequence[JobDirectory]
    space: SpaceGate
    lasting: Sequence[Gate]
    """What holds the job back whatever its limits are; they know what was before these changed."""
    pacer: Pacer
    clocks: JobClocks
    limits_changed: Callable[[], None] = field(default=lambda: None)
    """Called when other limits have come to count while the job runs."""
    stop: str | None = None
    limits: Limits = field(init=False)
    _order: str = field(init=False)

    def __post_init__(self) -> None:
        self._read()
        self._apply_limits()

    def _read(self) -> None:
        self._order, changed = orders_of(self.journal)
        self.limits = self.job.settings.limits.changed(changed)

    def _apply_limits(self) -> None:
        self.space.reserves = self.job.reserves_at(self.limits.min_free)
        self.space.trend.forget()
        self.pacer.rate = self.limits.rate
        # Orders first: who stops or pauses a job must not wait for a pool that does not answer.
        self.pacer.gates = [self._obey, *self._limiting(), *self.lasting]

    def _limiting(self) -> Iterator[Gate]:
        """Gates that follow from the limits, which may change while the job runs."""
        if self.limits.window:
            yield window_gate(self.limits.window, self.clocks.local)
        if self.limits.max_latency:
            wait = DiskWait(devices_of(self.reader, self.places))
            yield Backoff(self.limits.max_latency, wait, self.clocks.monotonic)

    def _obey(self) -> str | None:
        """The gate of signals, and of what other processes wrote into the journal."""
        if self.stop:
            raise StopJobError(self.stop)
        if self.journal.others_wrote():
            before = self.limits
            self._read()
            if before != self.limits:
                self._apply_limits()
                self.limits_changed()
        if self._order == "stop":
            raise StopJobError("stop")
        return "paused" if self._order == "pause" else None
