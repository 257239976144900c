"""A job from its journal to its end: what the process of `rebalance run` does."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.copy_engine import CopyPipeline, copy_engine
from zconsole.rebalance.engine.descriptors import OPEN_DIRECTORIES
from zconsole.rebalance.engine.directories import Directories, Notes, open_path
from zconsole.rebalance.engine.file_locks import Alarm, Users
from zconsole.rebalance.engine.item import FileOutcome, StopJobError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow, Journal, State
from zconsole.rebalance.engine.recovery import CHANGING_UNTIL, Recovery
from zconsole.rebalance.engine.rewrite_engine import Rewriter
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import (
    aftermath,
    job_output,
    move_effect,
    rollback_check,
    wait_conditions,
)
from zconsole.rebalance.job.batches import Batches
from zconsole.rebalance.job.benefit_check import BenefitCheck
from zconsole.rebalance.job.block_samples import Samples
from zconsole.rebalance.job.gates import SpaceGate
from zconsole.rebalance.job.job import Job, JobClocks, adopt_devices
from zconsole.rebalance.job.move_effect import MoveEffect
from zconsole.rebalance.job.pacer import Pacer
from zconsole.rebalance.job.progress import RunProgress
from zconsole.rebalance.job.space_errors import READ_ONLY, SpaceErrors
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import BATCH_BYTES, JobDirectory
from zconsole.rebalance.planning.settings import Limits

PATHS = 1000
"""Directories whose path is kept at hand."""
GOALS = ("done", "target spread reached", "byte limit reached")


@dataclass(slots=True)
class JobRunner:
    """Runs one job. ``show`` is given every finished file, a batch at a time."""

    sys: Sys
    reader: FactsReader
    journal: Journal
    job: Job
    places: Sequence[JobDirectory]
    show: Callable[[Sequence[dict[str, Any]]], None]
    clocks: JobClocks = field(default_factory=JobClocks)
    alarm: Alarm = field(default_factory=Alarm)
    threads: Executor | None = None
    users: Users = field(default_factory=Users)
    stop: str | None = None
    """Set by a signal handler: why to stop."""
    progress: RunProgress = field(init=False)
    _pacer: Pacer = field(init=False)
    _directories: Directories = field(init=False)
    _engine: CopyPipeline = field(init=False)
    _rewriter: Rewriter = field(init=False)
    _judge: BenefitCheck = field(init=False)
    _around: wait_conditions.Surroundings = field(init=False)
    _limits: Limits = field(init=False)
    _batches: Batches = field(init=False)
    _order: str = "run"
    _current: FileRow | None = None
    _strikes: SpaceErrors = field(init=False)
    _in_place: bool = False
    """Whether bytes handled have moved already: those of a copy move when its batch ends."""
    _paths: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clock = self.clocks.monotonic
        self._read_control()
        notes = Notes(partial(self.journal.jot, CHANGING_UNTIL), self.journal.leave_directory)
        self._directories = Directories(self.sys, self.journal.directory, notes, self.clocks.epoch)
        self.progress = RunProgress(self.journal, clock, self.clocks.epoch, os.getpid())
        self.progress.current = self._current_path
        self._around = self._surroundings()
        self.progress.outlook = self._around.space.trend.outlook
        self._judge = self._judging()
        self._strikes = SpaceErrors(lambda: self._around.space.room(fresh=True))
        self.progress.vdevs = self._vdevs
        self._pacer = Pacer(clock, self.clocks.sleep, [], self.progress.wait)
        self._set_limits(self._limits)
        policy = Policy(
            accept_races=self.job.settings.accept_races,
            zfs=self.reader.version() if self._around.pool is not None else None,
            room=lambda device: self._around.space.room(device=device),
        )
        self._engine = copy_engine(
            self.sys, self.journal, self._directories, policy, self._sync, self._tick,
            self.clocks.sleep, self.clocks.epoch, clock, self.alarm, self.threads, self.users,
        )  # fmt: skip
        results = self._engine.results.waiting
        self._rewriter = Rewriter(
            self.sys, self.journal, self._directories, self._tick, clock, results
        )
        self._pacer.service = self._engine.leases.service

    def run(self) -> dict[str, Any]:
        """Recover, move every file, return the summary.

        Raises ZconsoleError, OSError, sqlite3.Error.
        """
        began = self.clocks.monotonic()
        stopped_by = "done"
        self._batches = Batches(self.journal, lambda: self._limits.max_bytes)
        self.journal.check()
        try:
            adopt_devices(self.sys, self.journal, self.places)
            self._recover()
            if back := rollback_check.requeue(self.sys, self.journal, self._directories):
                self.progress.notes.append(f"{back} moved files had come back: moved again")
            self._count()
            self._move_all()
            if self._left_over():
                self._move_all()
        except StopJobError as error:
            stopped_by = str(error)
        except UnsupportedError as error:
            self._settle(str(error))
            self._end(str(error))
            raise ZconsoleError(f"refused: {error} (--accept-races)") from error
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            stopped_by = READ_ONLY
        self._settle(stopped_by)
        seconds = self.clocks.monotonic() - began
        self._end(stopped_by)
        return self._summary(stopped_by, seconds)

    def _left_over(self) -> bool:
        """Settle what a failure left halfway; whether that put files back into the queue."""
        self._flush()
        self._directories.close()
        self._recover()
        return State.PENDING in self.journal.counts()

    def _settle(self, stopped_by: str) -> None:
        """Leave nothing unfinished behind, where anything can be changed."""
        if stopped_by != READ_ONLY:
            self._left_over()

    def _end(self, stopped_by: str) -> None:
        """Say how it ended, and what the vdevs hold now; nothing moves any more."""
        self.progress.state = "finished" if stopped_by in GOALS else "stopped"
        self.progress.why = stopped_by
        if self._around.effect is not None:
            self._around.effect.look_last(wait=self.progress.state == "finished")
            self._judge.day()
        self._count()
        self.progress.publish()

    # Setting up.

    def _surroundings(self) -> wait_conditions.Surroundings:
        clock, job = self.clocks.monotonic, self.job
        dataset = self.places[0].dataset
        watching = None
        if dataset is not None and job.spaces:
            watching = MoveEffect(self.reader, dataset.pool, job.spaces, job.raw_factor, clock)
        return wait_conditions.Surroundings(
            reader=self.reader,
            places=self.places,
            space=SpaceGate(job.reserves_at(self._limits.min_free), clock, job.rooms),
            effect=watching,
            clock=clock,
            local=self.clocks.local,
            left=lambda: max(0, self.progress.bytes_total - self.progress.bytes_done),
            note=self.progress.notes.append,
            during_scan=job.settings.during_scan,
        )

    def _judging(self) -> BenefitCheck:
        clock = self.clocks.monotonic
        samples = [Samples(self.reader, place, self._path, clock) for place in self.places]
        balancing = self.job.settings.aim == "balance"
        return BenefitCheck(
            self.journal, self.progress, samples, self._around.effect, balancing,
            clock, self.clocks.local,
        )  # fmt: skip

    def _set_limits(self, limits: Limits) -> None:
        self._limits = limits
        self._around.space.reserves = self.job.reserves_at(limits.min_free)
        self._around.space.trend.forget()
        self._pacer.rate = limits.rate
        own = [self._obey, *wait_conditions.limiting(limits, self._around)]
        self._pacer.gates = [*own, *wait_conditions.lasting(self._around)]

    def _obey(self) -> str | None:
        """The gate of orders: signals, and what other processes wrote into the journal."""
        if self.stop:
            raise StopJobError(self.stop)
        if self.journal.others_wrote():
            before = self._limits
            self._read_control()
            if before != self._limits:
                self._set_limits(self._limits)
                self._batches.shorten(self._engine.drop_tail)
        if self._order == "stop":
            raise StopJobError("stop")
        return "paused" if self._order == "pause" else None

    def _read_control(self) -> None:
        control = self.journal.get("control", dict) or {}
        self._order = control.get("order", "run")
        self._limits = self.job.settings.limits.changed(control.get("limits") or {})

    def _recover(self) -> None:
        Recovery(
            self.sys, self.journal, self._directories, lambda count: self.progress.work(0),
            self.clocks.epoch, self.clocks.booted, self._sync_all, self.clocks.sleep, self.users,
        ).run()  # fmt: skip

    def _count(self) -> None:
        counts = self.journal.counts()
        done = [counts.get(s, (0, 0)) for s in (State.MOVED, State.SKIPPED, State.FAILED)]
        self.progress.files_total = sum(files for files, _ in counts.values())
        self.progress.bytes_total = sum(size for _, size in counts.values())
        self.progress.files_done = sum(files for files, _ in done)
        self.progress.files_skipped, self.progress.files_failed = done[1][0], done[2][0]
        self.progress.bytes_done = sum(size for _, size in done)

    # Moving.

    def _move_all(self) -> None:
        self._tick(0)
        self._adapt(0, 0)
        for rows in self._batches:
            self._judge.begin(rows)
            copied, rewritten = self._by_engine(rows)
            began, handled = self.clocks.monotonic(), self.progress.handled
            self._check_target()
            self._copy(copied)
            self._rewrite(rewritten)
            if len(self._directories) > OPEN_DIRECTORIES:
                self._directories.close()
            seconds = self.clocks.monotonic() - began
            self._adapt(seconds, self.progress.handled - handled)
            self._judge.portion()

    def _by_engine(self, rows: Sequence[FileRow]) -> tuple[list[FileRow], list[FileRow]]:
        """Those to copy and those to rewrite."""
        engine_of = {
            row.dev: self.job.engines[os.fsdecode(row.name)] for row in self.journal.roots()
        }
        numbers = {row.directory for row in rows}
        by_copy = {n for n in numbers if engine_of[self.journal.directory(n).dev] == "copy"}
        copied = [row for row in rows if row.directory in by_copy]
        return copied, [row for row in rows if row.directory not in by_copy]

    def _adapt(self, seconds: float, size: int) -> None:
        """Size the next batch after one of so many bytes that took so long."""
        largest = BATCH_BYTES  # and small enough for some looks on the way to a wanted spread
        if self._limits.until_spread is not None and self._around.effect is not None:
            largest = min(largest, self._around.effect.step or largest)
        self._batches.adapt(seconds, size, largest, self._limits.rate)
        self._batches.keep_within(self._room())

    def _room(self) -> int:
        """Bytes that may be written, once the last batch's originals are gone if need be."""
        space = self._around.space
        if space.room() < 2 * self._batches.bytes or space.before_batch():
            self._flush()
            self._pacer.wait_for(space.before_batch)
            return space.room(fresh=True)
        return space.room()

    def _copy(self, rows: list[FileRow]) -> None:
        if rows:
            self._current = rows[0]
            self._report(self._engine.run(rows), "copy")

    def _rewrite(self, rows: list[FileRow]) -> None:
        self._in_place = True
        self._rewriter.begin(rows)
        for row in self._batches.one_by_one(rows):
            self._current = row
            self._report(self._rewriter.run(row), "rewrite")
        if rows:
            self._flush()
        self._in_place = False

    def _tick(self, count: int) -> None:
        self.progress.work(count)
        self._pacer.tick(count)
        if self._in_place:
            self._check_target()
            self._judge.chunk()

    def _check_target(self) -> None:
        """Stop where the wanted spread is reached. Raises StopJobError."""
        watching, target = self._around.effect, self._limits.until_spread
        if watching and target is not None and watching.reached(target, self.progress.handled):
            raise StopJobError("target spread reached")

    def _flush(self) -> None:
        """Tell the journal what became of files, once that is on the disks. No file is kept from
        others meanwhile."""
        if self._engine.results.unsettled:
            self._sync_all()
        self._engine.results.flush()

    def _sync_all(self) -> None:
        """Sync every filesystem of the job."""
        for place in self.places:
            try:
                fd = open_path(self.sys, place.root)
            except OSError:
                self._sync(None)
                continue
            try:
                self._sync(fd)
            finally:
                self.sys.close(fd)

    def _sync(self, fd: int | None) -> None:
        """Sync the filesystem of a descriptor; None for a directory of which the name is gone."""
        if self._around.pool is not None:
            self.reader.sync(self._around.pool)
        elif fd is None:
            self.sys.sync()
        else:
            self.sys.syncfs(fd)

    # Judging.

    def _report(self, outcomes: Sequence[FileOutcome], engine: str) -> None:
        self._batches.give_back(outcomes)
        self.progress.unfinished = 0
        self.progress.files_done += len(outcomes)
        self.progress.files_skipped += sum(done.outcome == "skipped" for done in outcomes)
        self.progress.files_failed += sum(done.outcome == "failed" for done in outcomes)
        self.progress.bytes_done += sum(done.row.size for done in outcomes)
        self._judge.finished(outcomes)
        self.show(job_output.records(outcomes, engine, self._path))
        self._strikes.judge(outcomes)

    def _summary(self, stopped_by: str, seconds: float) -> dict[str, Any]:
        counts = self.journal.counts()
        skipped = aftermath.skipped(self.journal)
        return {
            "job": self.job.name,
            "files_moved": counts.get(State.MOVED, (0, 0))[0],
            "bytes_moved": self.journal.moved_bytes(),
            "files_skipped": sum(skipped.values()),
            "files_failed": counts.get(State.FAILED, (0, 0))[0],
            "skipped": skipped,
            "seconds": seconds,
            "stopped_by": stopped_by,
            "vdevs": self._vdevs(),
        }

    def _vdevs(self) -> list[dict[str, Any]] | None:
        watching = self._around.effect
        known = watching.now_spaces if watching else ()
        return move_effect.as_json(self.job.spaces, known) if known else None

    def _current_path(self) -> str | None:
        return self._path(self._current) if self._current else None

    def _path(self, row: FileRow) -> str:
        if row.directory not in self._paths:
            if len(self._paths) > PATHS:
                self._paths.clear()
            self._paths[row.directory] = os.fsdecode(self._directories.path(row.directory))
        return f"{self._paths[row.directory].rstrip('/')}/{os.fsdecode(row.name)}"
