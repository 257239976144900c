"""Accounts of a running job: its progress, the outcomes of its files, and its result.

Also tracks the allocation of the pool's vdevs, and the way left to a wanted spread.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from typing import Any

from zconsole.errors import UnavailableError
from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.pool.volumes import volume_limit, volume_sentences
from zconsole.rebalance.backend import REPLACED, TOTAL_CHANGED, EndedFile, JobStatus
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow, State
from zconsole.rebalance.engine.results import STATES
from zconsole.rebalance.job.job import PUBLISH, SLOW_DISKS, Job, skipped_files
from zconsole.rebalance.job.job_output import Show
from zconsole.system.day_hours import day_hours
from zconsole.units import size

INTERVAL = 10.0
"""Seconds between two checks of the vdevs."""
ENOUGH = 32 << 20
"""Raw bytes whose move must be expected before an unchanged pool counts as evidence."""
TOO_LITTLE = 0.05
"""Share of the expected change below which nothing is considered to have moved."""
STRIKES = 3
"""Consecutive checks without movement after which a job is in vain."""
SETTLING = 3
"""txgs until freed space shows in the allocation of vdevs."""
SMALLEST_STEP = 4 << 20
"""Least bytes of files between two checks on the way to a wanted spread."""
SAME_TOTAL = 0.1
"""Share by which a new prediction may differ from the published total without replacing it."""
STEP_SHARE = 0.25
"""Share of the bytes predicted to be left to the target that may pass before the next check."""


@dataclass(slots=True)
class SpreadWatch:
    """Tracks the vdevs of a pool while files move; asks zpool at most every INTERVAL seconds."""

    job: Job
    now_spaces: tuple[Space, ...] = ()
    fragmentation: float | None = None
    """Fragmentation of free space (0…1), as of the last check."""
    next_check: int = 0
    """Bytes of files after which ``reached`` checks again."""
    step: int = 0
    _read_at: float | None = None
    _unchanged: int = 0
    """Consecutive checks without movement."""
    total_changed: str = ""
    """Note on why the total differs from the one published before; empty if it doesn't."""
    _goal: tuple[float, int] | None = None
    """A spread, and the total bytes of files after which it should be reached."""

    @property
    def pool(self) -> str | None:
        """Name of the pool; None for a job without vdevs, which has no spread."""
        return self.job.pool if self.job.terms.spaces else None

    @property
    def before(self) -> tuple[Space, ...]:
        """The vdevs when the job was planned."""
        return self.job.terms.spaces if self.pool else ()

    def read(self, force: bool = False) -> tuple[Space, ...]:
        """Return the vdevs; ask zpool if INTERVAL has passed since the last time, or ``force``."""
        now = self.job.clocks.monotonic()
        due = force or self._read_at is None or now - self._read_at >= INTERVAL
        if self.pool and due:
            self._read_at = now
            with suppress(UnavailableError):
                self.now_spaces, self.fragmentation = self.job.reader.listing(self.pool)
        return self.now_spaces or self.before

    def settle(self) -> bool:
        """Wait SETTLING txgs, after which freed space shows; return whether the pool answered.

        ZFS holds freed space back for TXG_DEFER_SIZE txgs (include/sys/txg.h).
        """
        if self.pool is None:
            return False
        try:
            for _ in range(SETTLING):
                self.job.reader.sync(self.pool)
        except UnavailableError:
            return False
        return True

    def kept_by_volumes(self) -> Iterator[str]:
        """Yield sentences on the pool's volumes if it is still uneven, as the job left them out."""
        spaces = self.now_spaces
        if not self.pool or allocator.spread(spaces) <= allocator.LEVEL:
            return
        with suppress(UnavailableError):
            _, volumes = self.job.reader.datasets(self.pool)
            yield from volume_sentences(volume_limit(volumes, spaces), size)

    def reached(self, target: float, handled: int) -> bool:
        """Whether the spread is down to ``target`` after ``handled`` bytes of files.

        Checks become more frequent as the target comes closer.
        """
        if handled < self.next_check or not self.settle():
            return False
        spaces = self.read(force=True)
        if allocator.spread(spaces) <= target:
            return True
        left = self._predicted(spaces, target)
        self._expect(target, handled, handled + left)
        self.step = max(SMALLEST_STEP, round(left * STEP_SHARE))
        self.next_check = handled + self.step
        return False

    def _predicted(self, spaces: Sequence[Space], target: float) -> int:
        """Bytes of files to move until the spread is ``target``."""
        whole, terms, limits = sum(space.alloc for space in spaces), self.job.terms, self.job.limits
        lies = terms.source if len(spaces) == len(terms.source or ()) else None
        busy = limits.rate is None and limits.max_latency is None  # else the disks have time left
        raw = allocator.raw_to_target(spaces, target, whole, lies, terms.pinned, busy)
        return round((whole if raw is None else raw) / (terms.raw_factor * terms.stored))

    def _expect(self, target: float, handled: int, total: int) -> None:
        """Update the published total if the new one is clearly different, and note why."""
        said = self._goal[1] if self._goal is not None and self._goal[0] == target else None
        if said is not None and handled < said and abs(total - said) <= SAME_TOTAL * said:
            return
        self._goal = target, total
        if said is None:
            self.total_changed = ""
            return
        spread = f"the spread falls {'slower' if total > said else 'faster'} than predicted"
        why = spread if self.step else "the pool changed since the plan"
        self.total_changed = f"{TOTAL_CHANGED}{size(total)}, not {size(said)}: {why}"

    def left(self, target: float, handled: int) -> int | None:
        """Bytes of files predicted to be left until the spread is ``target``; None if unknown.

        Before the first check, the prediction uses the vdevs as they were when the job was planned.
        """
        if self._goal is None and not self.step and self.before:
            self._goal = target, self._predicted(self.before, target)
        if self._goal is None or self._goal[0] != target:
            return None
        return max(0, self._goal[1] - handled)

    def moves_nothing(self, moved: int) -> bool:
        """Whether ``moved`` allocated bytes have not changed the vdevs in STRIKES checks."""
        previous, before = self._read_at, self.before
        spaces = self.read()
        if self._read_at == previous or len(spaces) != len(before):
            return False
        expected = allocator.expected_move(before, moved * self.job.terms.raw_factor)
        if expected < ENOUGH:
            return False
        changes = [abs(a.alloc - b.alloc) for a, b in zip(spaces, before, strict=True)]
        unchanged = max(changes) < TOO_LITTLE * expected
        self._unchanged = self._unchanged + 1 if unchanged else 0
        return self._unchanged >= STRIKES


PATHS = 1000
"""Directories whose path is cached."""
GOALS = ("done", "target spread reached", "byte limit reached")
WINDOW = 20.0
"""Seconds over which the published rate is averaged."""
MEASURED = 10.0
"""Seconds of work after which the mean rate is meaningful."""


@dataclass(slots=True)
class JobAccounts:
    """Counts the outcomes of a job's files, and emits them as events."""

    job: Job
    directories: Directories
    show: Show
    watch: SpreadWatch = field(init=False)
    files_total: int = 0
    bytes_total: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    """Files finished in this run or before, by outcome."""
    files_replaced: int = 0
    """Skipped files that were replaced since the walk, so that they need no move any more."""
    ended_bytes: Counter[str] = field(default_factory=Counter)
    """Bytes of finished files by outcome; sizes are those of the walk."""
    handled: int = 0
    """Bytes processed in this run, unfinished files included."""
    unfinished: int = 0
    """Bytes of ``handled`` that belong to files not reported yet."""
    state: str = "running"
    why: str | None = None
    current: FileRow | None = None
    """The file in progress."""
    notes: list[str] = field(default_factory=list)
    worked: float = 0.0
    """Seconds of work in this run, without waits."""
    throttled: float = 0.0
    """Seconds spent waiting because disk latency was high."""
    moved_before: int | None = None
    """Bytes that earlier runs moved; None before the first portion."""
    _moved: int = 0
    """Bytes of files that this run has moved."""
    _window: deque[tuple[float, int]] = field(default_factory=deque)
    _timed: float = -inf
    _directory: Callable[[int], bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.watch = SpreadWatch(self.job)
        self._directory = lru_cache(PATHS)(self.directories.path)

    @property
    def moved(self) -> int:
        """Bytes moved in this run, unfinished files included."""
        return self._moved + self.unfinished

    def begin(self) -> None:
        """Read from the journal, before the first portion, how much earlier runs moved."""
        if self.moved_before is None:
            self.moved_before = self.job.journal.moved_bytes()

    def left(self) -> int:
        """Bytes of files left until the end: the last file, the byte limit or the wanted spread."""
        if self.state == "finished":
            return 0
        handled, limits = self._bytes_handled(), self.job.limits
        left = [self.bytes_total - handled]
        if limits.max_bytes is not None:
            # The byte limit counts moved bytes only.
            spared = self.ended_bytes["skipped"] + self.ended_bytes["failed"]
            left.append(limits.max_bytes - (handled - spared))
        if limits.until_spread is not None:
            to_target = self.watch.left(limits.until_spread, self.handled)
            left += [] if to_target is None else [to_target]
        return max(0, min(left))

    def work(self, count: int) -> None:
        """Account for bytes processed; emits a status every PUBLISH seconds."""
        self.handled += count
        self.unfinished += count
        if self.job.clocks.monotonic() - self._timed >= PUBLISH:
            self._time()
            self.emit()

    def wait(self, why: str | None) -> None:
        """Emit that the job waits for a reason (``paused``: an operator's), or goes on (None)."""
        self._time()
        while {why, self.why} - {None, SLOW_DISKS} and len(self._window) > 1:
            self._window.popleft()  # only waits for busy disks count in the rate
        self.state = "running" if why is None else "paused" if why == "paused" else "waiting"
        self.why = why
        self.emit()

    def rate(self) -> float | None:
        """Bytes/s over the last WINDOW seconds, throttled or not; None before two samples.

        None, too, while the job waits for anything but busy disks.
        """
        if self.state != "running" and self.why != SLOW_DISKS:
            return None
        if len(self._window) < 2:
            return None
        (begin, first), (end, last) = self._window[0], self._window[-1]
        return (last - first) / (end - begin) if end > begin else None

    def mean_rate(self) -> float | None:
        """Bytes/s of this run's work; None before MEASURED seconds of it."""
        return self.handled / self.worked if self.worked >= MEASURED and self.handled else None

    def emit(
        self, ended: Sequence[EndedFile] = (), summary: Mapping[str, Any] | None = None
    ) -> None:
        """Publish the status: in the journal, and to the process that shows the run."""
        event = replace(self.status(), ended_files=ended, summary=summary)
        self.job.keep(event)
        self.show(event)

    def _time(self) -> None:
        """Add a sample of time and bytes processed, for the rates."""
        now = self._timed = self.job.clocks.monotonic()
        passed = now - self._window[-1][0] if self._window else 0.0
        self.worked += passed if self.state == "running" else 0.0
        self.throttled += passed if self.why == SLOW_DISKS else 0.0
        self._window.append((now, self.handled))
        while len(self._window) > 2 and now - self._window[0][0] > WINDOW:
            self._window.popleft()

    def status(self) -> JobStatus:
        """Return the current status."""
        rate, handled, left = self.rate(), self._bytes_handled(), self.left()
        pace, window = rate, self.job.limits.window
        hours = day_hours(window) if window else None
        now = self.job.clocks.local()
        # Outside the window nothing moves: predict with the mean rate, throttling included.
        if hours and self.state == "waiting" and not hours.includes(now) and self.mean_rate():
            pace = self.handled / (self.worked + self.throttled)
        eta = left / pace if pace else None
        if eta is not None and hours:  # add the time outside the window, when the job waits
            eta = hours.until_worked(eta, now)
        outlook = self.job.space.trend.outlook() if self.state in ("running", "waiting") else None
        return JobStatus(
            state=self.state,
            why=self.why,
            limits=self.job.limits,
            files_done=self.ended.total(),
            files_total=self.files_total,
            files_skipped=self.ended["skipped"],
            files_failed=self.ended["failed"],
            bytes_done=self.ended_bytes.total(),
            bytes_handled=handled,
            bytes_total=self.bytes_total,
            bytes_goal=handled + left,
            rate=rate,
            mean_rate=self.mean_rate(),
            eta_seconds=eta,
            current=self.path(self.current) if self.current else None,
            vdevs=self._vdevs(),
            notes=(*self.notes, *filter(None, (self.watch.total_changed, outlook))),
            pid=os.getpid(),
            t=self.job.clocks.epoch(),
        )

    def _bytes_handled(self) -> int:
        """Bytes of files that the job has processed in all its runs."""
        return min(self.bytes_total, self.ended_bytes.total() + self.unfinished)

    def count(self) -> None:
        """Load the totals of the whole job from the journal."""
        counts = self.job.journal.counts()
        self.files_total = sum(files for files, _ in counts.values())
        self.bytes_total = sum(size for _, size in counts.values())
        for outcome, state in STATES.items():
            self.ended[outcome], self.ended_bytes[outcome] = counts.get(state, (0, 0))
        self.files_replaced = self.job.journal.reasons(State.SKIPPED).get(REPLACED, 0)

    def report(self, outcomes: Sequence[FileOutcome], engine: str) -> None:
        """Count finished files, and emit their outcomes."""
        self.unfinished = 0
        for done in outcomes:
            self.ended[done.outcome] += 1
            self.ended_bytes[done.outcome] += done.row.size
            self.files_replaced += done.reason == REPLACED
            self._moved += done.bytes
        self.emit(
            [
                EndedFile(self.path(done.row), done.bytes, engine, done.outcome, done.reason)
                for done in outcomes
            ]
        )

    def end(self, stopped_by: str) -> None:
        """Emit the end of the run, after reading the final allocation of the vdevs."""
        self._time()
        self.state = "finished" if stopped_by in GOALS else "stopped"
        self.why = stopped_by
        if self.watch.pool:
            if self.state == "finished":
                self.watch.settle()
            self.watch.read(force=True)
            if self.state == "finished":
                self.notes += self.watch.kept_by_volumes()
            self.day()
        self.count()
        self.emit()

    def day(self) -> None:
        """Write today's totals to the journal, unless no portion has begun."""
        if self.moved_before is None:
            return
        day = self.job.clocks.local().strftime("%Y-%m-%d")
        spaces = self.watch.read()
        line = {
            "day": day,
            "moved_bytes": self.moved_before + self.moved,
            "files_done": self.ended.total(),
            "files_skipped": self.ended["skipped"],
            "files_replaced": self.files_replaced,
            "files_failed": self.ended["failed"],
            "fragmentation": self.watch.fragmentation,
            "spread": allocator.spread(spaces) if spaces else None,
            "free_bytes": round(sum(space.free for space in spaces)) if spaces else None,
            "eta_seconds": self.status().eta_seconds,
        }
        self.job.journal.add_day(day, line)

    def sum_up(self, stopped_by: str, seconds: float) -> dict[str, Any]:
        """Emit and return the summary of the job, as ``rebalance run --json`` prints it.

        ``seconds`` is the duration of this run.
        """
        skipped = skipped_files(self.job.journal)
        summary = {
            "job": self.job.terms.name,
            "files_moved": self.ended["moved"],
            "bytes_moved": self.job.journal.moved_bytes(),
            "files_skipped": sum(skipped.values()),
            "files_failed": self.ended["failed"],
            "skipped": skipped,
            "seconds": seconds,
            "stopped_by": stopped_by,
            "vdevs": self._vdevs(),
        }
        self.emit(summary=summary)
        return summary

    def path(self, row: FileRow) -> str:
        """Return the path of a file for display."""
        return os.fsdecode(self._directory(row.directory).rstrip(b"/") + b"/" + row.name)

    def _vdevs(self) -> list[dict[str, Any]] | None:
        """Allocation of each vdev when the job began and as of the last check, raw bytes."""
        pairs = zip(self.job.terms.spaces, self.watch.now_spaces, strict=False)
        return [
            {"name": then.name, "alloc_before": round(then.alloc), "alloc_after": round(now.alloc)}
            for then, now in pairs
        ] or None
