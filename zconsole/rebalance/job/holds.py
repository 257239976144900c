"""Reasons for a running job to wait, and its rate limit.

Checked at every chunk of data, several times a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.rebalance.engine.item import SkipError, StopJobError
from zconsole.rebalance.held_vdevs import PREPARING, MachineHolds
from zconsole.rebalance.job.accounts import JobAccounts
from zconsole.rebalance.job.job import AT_FLOOR, SLOW_DISKS, Job
from zconsole.rebalance.planning import exports
from zconsole.rebalance.planning.engine_choice import why_shared
from zconsole.rebalance.planning.forecast import TOO_LARGE
from zconsole.system.day_hours import day_hours
from zconsole.system.patient import Patient
from zconsole.zfs.decode.builders import Devices
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.blockdev import diskstats_names, diskstats_rows

_T = TypeVar("_T")

POOL_INTERVAL = 5.0
SNAPSHOT_INTERVAL = 30.0
EXPORTS_INTERVAL = 120.0
"""Seconds; reads the configuration of servers, and runs Samba's tools."""
TWICE = "what moves from now on stays allocated twice"
LOOKING = "checking what is exported by now"
SLICE = 0.05
"""Seconds of a single sleep; between sleeps, leases are released and requests noticed."""
PATIENCE = 60.0
"""Seconds at the floor until a copy that took the space itself is given up.

Meanwhile others, or files given up before, may free some.
"""
CHECK_INTERVAL = 0.2
"""Seconds between two checks for reasons to wait."""
BURST = 0.5
"""Seconds of work that may run ahead of the rate limit."""


class WorkPhase(Enum):
    """Phase of a job's work, on which some reasons to wait depend."""

    BETWEEN = auto()
    """Between two portions: nothing is in flight."""
    COPYING = auto()
    CHECKING = auto()
    """Complete copies are read back: they take no more space, and finishing them frees some."""
    REWRITING = auto()
    """Files are rewritten in place: bytes processed have moved already."""


def devices_of(job: Job) -> list[list[str]]:
    """Return the paths of the devices under a job's files, by class; empty if /sys has none."""
    if job.pool:
        return job.reader.device_paths(job.pool)
    device = Path(job.places[0].path).stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return [[f"/dev/{link.resolve().name}"]] if link.exists() else []


@dataclass(slots=True)
class PeriodicCheck(Generic[_T]):
    """A question asked every ``interval`` seconds, in a separate thread.

    zpool may be slow, and meanwhile other processes may be waiting for a file that we lease. Only
    the first answer is waited for.
    """

    ask: Callable[[], _T]
    interval: float
    clock: Callable[[], float]
    _checked: float | None = None
    _thread: threading.Thread | None = None
    _answer: _T | None = None
    _since: float | None = field(init=False)
    """When the newest answer was asked for."""

    def __post_init__(self) -> None:
        self._since = self._checked

    def __call__(self) -> _T | None:
        """Return the newest answer; ask again if it is time."""
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
        asked = self._checked
        self._answer = self.ask()
        self._since = asked

    @property
    def is_stale(self) -> bool:
        """Whether the newest answer is older than any is while the question is asked in time."""
        return self._since is not None and self.clock() - self._since > 2 * self.interval

    @property
    def is_running(self) -> bool:
        """Whether a question is in progress."""
        return self._thread is not None and self._thread.is_alive()


class PoolCheck(NamedTuple):
    """Result of one check of a pool."""

    why: str | None = None
    """Reason for a job on it to wait."""
    free: float | None = None
    """Share of the pool that is free; None if unknown."""


class NewPin(NamedTuple):
    """Something made since a job began that keeps old blocks allocated."""

    cause: str
    """``snapshot`` or ``checkpoint``."""
    room: float
    """Bytes that quotas, apart from refquotas, leave for these blocks."""


class PoolWatch:
    """Checks a job's pool in the background: reasons to wait, new snapshots and checkpoints."""

    def __init__(self, job: Job, pool: str, notes: list[str]) -> None:
        """``notes`` receives a line for each new snapshot, hold or checkpoint."""
        self.reader, self.pool, self.notes = job.reader, pool, notes
        self.settings, clock = job.terms.settings, job.clocks.monotonic
        self.datasets = sorted({place.dataset.name for place in job.places if place.dataset})
        if "S" in self.settings.rewrite_options:
            self.datasets = []  # -S leaves blocks of snapshots in place, so new ones pin nothing
        self.check = PeriodicCheck(self._check, POOL_INTERVAL, clock)
        self.new_pin = PeriodicCheck(self._new_pin, SNAPSHOT_INTERVAL, clock)
        self._snapshots: dict[str, tuple[int, int, int]] = {}
        """txg of the newest snapshot at the first check and now, and number of held ones.

        By dataset. txgs, because creation times depend on the clock.
        """
        self._checkpoint: tuple[bool, bool] | None = None
        """Whether there was a checkpoint at the first check, and is one now."""

    def _check(self) -> PoolCheck:
        """Wait if the pool is not ONLINE, moves blocks itself, or scans (unless permitted)."""
        try:
            state, scanning, moving, _ = self.reader.condition(self.pool)
        except UnavailableError as error:
            return PoolCheck(str(error))
        if state != "ONLINE":
            return PoolCheck(f"pool {self.pool} is {state}")
        if moving or (scanning and not self.settings.during_scan):
            return PoolCheck(f"a {moving or scanning} is running")
        with suppress(UnavailableError):
            return PoolCheck(free=self.reader.free(self.pool))
        return PoolCheck()

    def _new_pin(self) -> NewPin | None:
        """Return what was made since the first check and pins blocks."""
        self._note_checkpoint()
        for name in self.datasets:
            self._note_snapshots(name)
        if any(newest > first for first, newest, _ in self._snapshots.values()):
            room = 0.0
            with suppress(UnavailableError):
                asked = (self.reader.dataset(name, with_snapshots=False) for name in self.datasets)
                room = min(map(self.reader.room_of_snapshots, asked))
            return NewPin("snapshot", room)
        # What a checkpoint holds belongs to no dataset.
        return NewPin("checkpoint", inf) if self._checkpoint == (False, True) else None

    def _note_checkpoint(self) -> None:
        with suppress(UnavailableError):
            found = self.reader.condition(self.pool)
            if found.state in ("SUSPENDED", "UNKNOWN"):
                return
            first, last = self._checkpoint or (found.checkpoint, found.checkpoint)
            if found.checkpoint and not last:
                self.notes.append(f"new checkpoint of {self.pool}: {TWICE}")
            self._checkpoint = first, found.checkpoint

    def _note_snapshots(self, name: str) -> None:
        with suppress(UnavailableError):
            newest, held = self.reader.snapshots_now(name)
            first, last, were_held = self._snapshots.get(name, (newest, newest, held))
            if newest > max(first, last):
                self.notes.append(f"new snapshot of {name}: {TWICE}")
            if held > were_held:
                kept = "what they keep stays until a release"
                self.notes.append(f"snapshots of {name} were held: {kept}")
            self._snapshots[name] = first, newest, held


@dataclass(slots=True)
class SlowDisks:
    """Makes the job wait while disk latency is high, longer each time (0.5 to 8 seconds)."""

    devices: Callable[[], Sequence[Sequence[str]]]
    """Returns the devices' paths, by class: averaged with a fast log, slow disks would not show."""
    clock: Callable[[], float]
    rows: Callable[[], Mapping[str, str]] = diskstats_rows
    _spell: float = 0.0
    _until: float = 0.0
    _checked: float = 0.0
    _last: Sequence[tuple[int, float]] = ()

    def __call__(self, limit: float | None) -> str | None:
        """Return a reason to wait if the mean latency exceeds ``limit`` seconds; else None."""
        if not limit:
            return None
        now = self.clock()
        if now - self._checked >= 1.0:
            self._checked = now
            wait = self.latency()
            slow = wait is not None and wait > limit
            self._spell = min(8.0, max(0.5, self._spell * 2)) if slow else self._spell / 2
            if slow:
                self._until = now + self._spell
        return SLOW_DISKS if now < self._until else None

    def latency(self) -> float | None:
        """Mean latency (seconds) of requests completed since the last call, in the slowest class.

        None if there were none.
        """
        rows = self.rows()
        last, self._last = self._last, [_waits(paths, rows) for paths in self.devices()]
        pairs = zip(last, self._last, strict=False)  # ``last`` is empty at the first call
        means = [(now[1] - then[1]) / (now[0] - then[0]) for then, now in pairs if now[0] > then[0]]
        return max(means, default=None)


def _waits(paths: Sequence[str], rows: Mapping[str, str]) -> tuple[int, float]:
    """Return the number of requests that devices completed, and the sum of their latencies (s)."""
    devices = {path: diskstats_names(path, rows) for path in paths}
    raw: Raw = {"t": 0.0, "diskstats": list(rows.values()), "devices": devices}
    blocks = [each for each in Devices(raw).all_counters().values() if each is not None]
    requests = sum(each.read_ops + each.write_ops for each in blocks)
    return requests, sum(each.read_seconds + each.write_seconds for each in blocks)


def exposed(job: Job, patient: Patient) -> str | None:
    """Reason why other machines may now write to files that would be copied, or None.

    None, too, if the operator accepts races. ``patient`` is that of the looks before.
    """
    copied = [each for each in job.places if job.terms.engines.get(each.path) == "copy"]
    if job.terms.settings.accept_races or not copied:
        return None
    shared = exports.look(job.reader.run, patient=patient)
    whys = ((p.path, why_shared(p.dataset, exports.why_exported(p.point, shared))) for p in copied)
    return next((f"{path}: {why}" for path, why in whys if why), None)


def unprepared(job: Job, notes: list[str]) -> str | None:
    """Have the keeper keep the full vdevs from new writes; return why to wait, None once done.

    ``notes`` receives a line for each vdev that it leaves alone.
    """
    names = [space.name for space in job.terms.spaces if not space.weight]
    try:
        held = MachineHolds().want(job.terms.name, job.pool or "", names)
    except (ZconsoleError, OSError) as error:
        return f"{PREPARING}: {error}"
    left = (f"{vdev.name} takes new writes: {vdev.left}" for vdev in held.vdevs if vdev.left)
    notes += [note for note in left if note not in notes]
    return None if held.is_decided else PREPARING


class Holds:
    """Waits while there is a reason for a job to wait, and enforces the rate limit."""

    def __init__(
        self,
        job: Job,
        accounts: JobAccounts,
        service: Callable[[], None],
        shared: str | None = None,
    ) -> None:
        """``service`` is called often during waits: it releases files that others want.

        ``shared`` is what ``exposed`` has just returned.
        """
        self.job, self.accounts, self.service = job, accounts, service
        clock = job.clocks.monotonic
        self.shared: PeriodicCheck[str | None] = PeriodicCheck(
            partial(exposed, job, Patient()),
            EXPORTS_INTERVAL,
            clock,
            clock(),
            _answer=shared,
        )
        self._disks = SlowDisks(cache(partial(devices_of, job)), clock)
        self._of_pool = PoolWatch(job, job.pool, accounts.notes) if job.pool else None
        datasets = (place.dataset for place in job.places if place.dataset)
        self._has_refquota = any(dataset.number("refquota") for dataset in datasets)
        self.unprepared: PeriodicCheck[str | None] | None = None
        if job.terms.settings.fill_new:
            ask = partial(unprepared, job, accounts.notes)
            self.unprepared = PeriodicCheck(ask, POOL_INTERVAL, clock)
        self._debt, self._paid, self._looked = 0.0, clock(), -inf

    def why(self, phase: WorkPhase) -> str | None:
        """Return the first reason to wait, None if there is none. Raises StopJobError."""
        self.shared()  # asked during any wait, so that the answer is new at its end
        # Asked during any wait, too, so that a keeper that was killed is started again.
        preparing = self.unprepared() if self.unprepared else None
        # Requests come first: stop and pause must work even if the pool does not answer.
        return (
            self.job.obey()
            or self._hours()
            or self._disks(self.job.limits.max_latency)
            or (self._exports() if phase is WorkPhase.BETWEEN else None)
            or self._pool()
            or self._space(phase)
            or preparing
            or self._target(phase)
        )

    def _hours(self) -> str | None:
        window = self.job.limits.window
        if not window or day_hours(window).includes(self.job.clocks.local()):
            return None
        return f"outside {window}"

    def _exports(self) -> str | None:
        """Wait while files are exported, and for an answer if nobody has asked for long."""
        return LOOKING if self.shared.is_stale else self.shared()

    def _pool(self) -> str | None:
        """Wait for the pool, and while new snapshots would pin more than there is free space."""
        if self._of_pool is None:
            return None
        seen = self._of_pool.check()
        if seen and seen.why:
            return seen.why
        if pin := self._of_pool.new_pin():
            left, room = self.accounts.left() * self.job.terms.stored, self.job.space.room()
            if self._has_refquota and seen and seen.free is not None:
                # Blocks that only snapshots hold don't count in a refquota, but in a quota.
                size = min(floor.size for floor in self.job.terms.floors.values())
                free = (seen.free - self.job.limits.floor) * size
                room = max(room, round(min(free, pin.room)))
            if left > room:
                return (
                    f"a new {pin.cause} pins old blocks: {left:.0f} bytes left to move, {room} free"
                )
        return None

    def _space(self, phase: WorkPhase) -> str | None:
        if phase is WorkPhase.CHECKING:
            return None
        if why := self.job.space.why(phase is WorkPhase.BETWEEN):
            return why
        # A quota hides the pool: a dataset's available space stays while others fill the pool.
        seen = self._of_pool.check() if self._of_pool and phase is WorkPhase.BETWEEN else None
        is_full = seen and seen.free is not None and seen.free < self.job.limits.floor
        return AT_FLOOR if is_full else None

    def _target(self, phase: WorkPhase) -> str | None:
        """End the job if the wanted spread is reached, unless copies are in flight."""
        watch, target = self.accounts.watch, self.job.limits.until_spread
        if target is None or phase in (WorkPhase.COPYING, WorkPhase.CHECKING):
            return None
        if watch.reached(target, self.accounts.handled):
            raise StopJobError("target spread reached")
        return None

    def tick(self, count: int, phase: WorkPhase) -> None:
        """Account for bytes just processed, and wait as necessary. Raises StopJobError."""
        clock = self.job.clocks.monotonic
        if clock() - self._looked >= CHECK_INTERVAL:
            self.wait(phase)
        now, rate = clock(), self.job.limits.rate
        if not rate:
            return
        # The debt is the bytes processed faster than the limit: sleep until it is paid.
        self._debt = count + max(-BURST * rate, self._debt - (now - self._paid) * rate)
        self._paid = now
        while (limit := self.job.limits.rate) and self._debt >= 1:
            self.job.clocks.sleep(min(SLICE, self._debt / limit))
            self.service()
            now, before = clock(), self._paid
            self._paid = now
            self._debt -= (now - before) * limit
            if now - self._looked >= CHECK_INTERVAL:
                self.wait(phase)

    def wait(self, phase: WorkPhase) -> None:
        """Wait until there is no reason left to; the status shows the reason.

        Raises StopJobError, or SkipError for a file whose own copy takes the free space.
        """
        told, began, given_up = None, self.job.clocks.monotonic(), False
        while not given_up and (reason := self.why(phase)) is not None:
            if told != (reason, self.job.limits):
                told = reason, self.job.limits
                self.accounts.wait(reason)
            self.job.clocks.sleep(SLICE)
            self.service()
            waited = self.job.clocks.monotonic() - began
            at_floor = phase is WorkPhase.COPYING and reason == AT_FLOOR and waited >= PATIENCE
            given_up = at_floor and self.job.space.is_taken_by(self.accounts.unfinished)
        self._looked = self.job.clocks.monotonic()
        if told is not None:
            self.accounts.wait(None)
            self._paid, self._debt = self._looked, 0.0
        if given_up:
            raise SkipError(TOO_LARGE)
