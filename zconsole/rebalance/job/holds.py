"""All that can hold a running job up, in one list; and the rate that it may go at.

Asked at every chunk, several times a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from zconsole.errors import UnavailableError
from zconsole.rebalance.engine.item import SkipError, StopJobError
from zconsole.rebalance.job.accounts import JobAccounts
from zconsole.rebalance.job.job import AT_FLOOR, SLOW_DISKS, Job
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory, pool_of
from zconsole.rebalance.planning.plan import TOO_LARGE
from zconsole.system.day_hours import day_hours
from zconsole.zfs.decode.devices import Blocks
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.blockdev import diskstats_names, diskstats_rows

_T = TypeVar("_T")

POOL_INTERVAL = 5.0
SNAPSHOT_INTERVAL = 30.0
SLICE = 0.05
"""Seconds of a single sleep: leases have to be let go, and orders noticed, between two."""
PATIENCE = 60.0
"""Seconds at the floor until a copy that took the room itself is given up: others may free some, as
may what was given up before."""
LOOK = 0.2
"""Seconds between two looks at what holds the job up."""
BURST = 0.5
"""Seconds of work that may run ahead of the rate limit."""


class WorkPhase(Enum):
    """What a job is at when it asks whether anything holds it up."""

    BETWEEN = auto()
    """Between two portions: nothing is in flight."""
    COPYING = auto()
    CHECKING = auto()
    """Copies are complete, and read back: they take no more room, and to go on frees some."""
    REWRITING = auto()
    """In place, where what was handled has moved already."""


def devices_of(reader: FactsReader, places: Sequence[JobDirectory]) -> list[list[str]]:
    """Paths of the devices that a job's files are on, by class; none where none is in /sys."""
    if pool := pool_of(places):
        return reader.device_paths(pool)
    device = Path(os.fsdecode(places[0].root)).stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return [[f"/dev/{link.resolve().name}"]] if link.exists() else []


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


class PoolLook(NamedTuple):
    """A pool as it was looked at."""

    why: str | None = None
    """Why a job on it has to wait."""
    free: float | None = None
    """The share of it that is free; None where it does not answer."""


class PoolWatch:
    """The pool of a job, asked beside its work: why to wait for it, and what is new in it."""

    def __init__(
        self,
        reader: FactsReader,
        pool: str,
        datasets: Sequence[str],
        during_scan: bool,
        notes: list[str],
        clock: Callable[[], float],
    ) -> None:
        """``notes`` get a line for each snapshot or checkpoint that is new, or held since."""
        self.reader, self.pool, self.datasets = reader, pool, datasets
        self.during_scan, self.notes = during_scan, notes
        self.look = PeriodicCheck(self._look, POOL_INTERVAL, clock)
        self.new_pin = PeriodicCheck(self._new_pin, SNAPSHOT_INTERVAL, clock)
        self._snapshots: dict[str, tuple[int, int, int]] = {}
        """By dataset: the txg of the newest at the first look (dates follow set clocks), that of
        the newest now, and how many are held."""
        self._checkpoint: tuple[bool, bool] | None = None
        """Whether there was one at the first look, and is now."""

    def _look(self) -> PoolLook:
        """Whether the pool is not ONLINE, moves blocks itself, or scans without permission."""
        try:
            state, scanning, moving, _ = self.reader.condition(self.pool)
        except UnavailableError as error:
            return PoolLook(str(error))
        if state != "ONLINE":
            return PoolLook(f"pool {self.pool} is {state}")
        if moving or (scanning and not self.during_scan):
            return PoolLook(f"a {moving or scanning} is running")
        with suppress(UnavailableError):
            return PoolLook(free=self.reader.free(self.pool))
        return PoolLook()

    def _new_pin(self) -> str | None:
        """What keeps old blocks that did not at the first look: a snapshot, or a checkpoint."""
        self._note_checkpoint()
        for name in self.datasets:
            self._note_snapshots(name)
        if any(newest > first for first, newest, _ in self._snapshots.values()):
            return "snapshot"
        return "checkpoint" if self._checkpoint == (False, True) else None

    def _note_checkpoint(self) -> None:
        with suppress(UnavailableError):
            found = self.reader.condition(self.pool)
            if found.state in ("SUSPENDED", "UNKNOWN"):
                return
            first, last = self._checkpoint or (found.checkpoint, found.checkpoint)
            if found.checkpoint and not last:
                text = "what moves from now on stays allocated twice"
                self.notes.append(f"new checkpoint of {self.pool}: {text}")
            self._checkpoint = first, found.checkpoint

    def _note_snapshots(self, name: str) -> None:
        with suppress(UnavailableError):
            newest, held = self.reader.snapshots_now(name)
            first, last, were_held = self._snapshots.get(name, (newest, newest, held))
            if newest > max(first, last):
                text = "what moves from now on stays allocated twice"
                self.notes.append(f"new snapshot of {name}: {text}")
            if held > were_held:
                text = "what they keep stays until a release"
                self.notes.append(f"snapshots of {name} were held: {text}")
            self._snapshots[name] = first, newest, held


@dataclass(slots=True)
class SlowDisks:
    """Holds the job up while disk latency is high, for growing spells."""

    devices: Callable[[], Sequence[Sequence[str]]]
    """Their paths, always the same; by class: a fast log would hide that disks are slow."""
    clock: Callable[[], float]
    rows: Callable[[], Mapping[str, str]] = diskstats_rows
    _spell: float = 0.0
    _until: float = 0.0
    _checked: float = 0.0
    _last: Sequence[tuple[int, float]] = ()

    def __call__(self, limit: float) -> str | None:
        """Why to wait, with so many seconds of mean disk wait that others may see."""
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
        """Mean wait of the requests completed since the last call, of the class that waits longest.

        None when there were none.
        """
        rows = self.rows()
        last, self._last = self._last, [_waits(paths, rows) for paths in self.devices()]
        pairs = zip(last, self._last, strict=False)  # at first there is no last
        means = [(now[1] - then[1]) / (now[0] - then[0]) for then, now in pairs if now[0] > then[0]]
        return max(means, default=None)


def _waits(paths: Sequence[str], rows: Mapping[str, str]) -> tuple[int, float]:
    """Requests that some devices have completed, and the seconds that these waited in all."""
    devices = {path: diskstats_names(path, rows) for path in paths}
    raw: Raw = {"t": 0.0, "diskstats": list(rows.values()), "devices": devices}
    blocks = Blocks(raw).all().values()
    requests = sum(each.read_ops + each.write_ops for each in blocks)
    return requests, sum(each.read_seconds + each.write_seconds for each in blocks)


class Holds:
    """All that can hold a job on some directories up, and the rate limit; waits for both."""

    def __init__(
        self,
        job: Job,
        reader: FactsReader,
        places: Sequence[JobDirectory],
        accounts: JobAccounts,
        service: Callable[[], None],
    ) -> None:
        """``service`` is called often during waits: it lets go of files that others want."""
        self.job, self.accounts, self.service = job, accounts, service
        clock, during_scan = job.clocks.monotonic, job.terms.settings.during_scan
        self._disks = SlowDisks(cache(partial(devices_of, reader, places)), clock)
        self._of_pool: PoolWatch | None = None
        datasets = [place.dataset for place in places if place.dataset]
        self._has_refquota = any(dataset.number("refquota") for dataset in datasets)
        if (pool := pool_of(places)) is not None:
            names = sorted({dataset.name for dataset in datasets})
            if "S" in job.terms.settings.rewrite_options:
                names = []  # blocks that a new snapshot has stay where they are
            self._of_pool = PoolWatch(reader, pool, names, during_scan, accounts.notes, clock)
        self._debt, self._paid, self._looked = 0.0, clock(), -inf

    def why(self, phase: WorkPhase) -> str | None:
        """The first reason to wait now; None when the job may go on. Raises StopJobError."""
        # Orders first: who stops or pauses a job must not wait for a pool that does not answer.
        return (
            self.job.obey()
            or self._hours()
            or self._latency()
            or self._pool()
            or self._space(phase)
            or self._target(phase)
        )

    def _hours(self) -> str | None:
        window = self.job.limits.window
        if not window or day_hours(window).includes(self.job.clocks.local()):
            return None
        return f"outside {window}"

    def _latency(self) -> str | None:
        limit = self.job.limits.max_latency
        return self._disks(limit) if limit else None

    def _pool(self) -> str | None:
        """Wait for the pool, and while what is new would pin more than there is room for."""
        if self._of_pool is None:
            return None
        seen = self._of_pool.look()
        if seen and seen.why:
            return seen.why
        if pin := self._of_pool.new_pin():
            left, room = self.accounts.left() * self.job.terms.stored, self.job.space.room()
            if self._has_refquota and seen and seen.free is not None:
                # What only snapshots have does not count in it: there is as much as in the pool.
                size = min(floor.size for floor in self.job.terms.floors.values())
                room = max(room, round((seen.free - self.job.limits.floor) * size))
            if left > room:
                return f"a new {pin} pins old blocks: {left:.0f} bytes left to move, {room} free"
        return None

    def _space(self, phase: WorkPhase) -> str | None:
        if phase is WorkPhase.CHECKING:
            return None
        if why := self.job.space.why(phase is WorkPhase.BETWEEN):
            return why
        # A dataset near its quota has the same space left while others fill the pool.
        seen = self._of_pool.look() if self._of_pool and phase is WorkPhase.BETWEEN else None
        is_full = seen and seen.free is not None and seen.free < self.job.limits.floor
        return AT_FLOOR if is_full else None

    def _target(self, phase: WorkPhase) -> str | None:
        """End the job where the wanted spread is reached: not while copies are on their way."""
        watch, target = self.accounts.watch, self.job.limits.until_spread
        if target is None or phase in (WorkPhase.COPYING, WorkPhase.CHECKING):
            return None
        if watch.reached(target, self.accounts.handled):
            raise StopJobError("target spread reached")
        return None

    def tick(self, count: int, phase: WorkPhase) -> None:
        """Account for bytes just handled; waits as long as it must. Raises StopJobError."""
        clock = self.job.clocks.monotonic
        if clock() - self._looked >= LOOK:
            self.wait(phase)
        now, rate = clock(), self.job.limits.rate
        if not rate:
            return
        # Sleep off what was handled faster than the limit.
        self._debt = count + max(-BURST * rate, self._debt - (now - self._paid) * rate)
        self._paid = now
        while (limit := self.job.limits.rate) and self._debt >= 1:
            self.job.clocks.sleep(min(SLICE, self._debt / limit))
            self.service()
            now, before = clock(), self._paid
            self._paid = now
            self._debt -= (now - before) * limit
            if now - self._looked >= LOOK:
                self.wait(phase)

    def wait(self, phase: WorkPhase) -> None:
        """Wait until nothing holds the job up; its status tells why.

        Raises StopJobError; SkipError for a file whose own copy has taken the room.
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
