"""A job from its journal to its end: what the process of `rebalance run` does.

With the locks it holds, the signals it heeds, and the clean end of everything.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.rebalance.backend import HUNG_UP, TERMINATED
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.copy_engine import CopyPipeline, copy_engine
from zconsole.rebalance.engine.descriptors import OPEN_DIRECTORIES
from zconsole.rebalance.engine.directories import Directories, Notes
from zconsole.rebalance.engine.file_locks import Alarm, Users
from zconsole.rebalance.engine.item import FileOutcome, StopJobError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow, Journal, State
from zconsole.rebalance.engine.recovery import CHANGING_UNTIL, Recovery
from zconsole.rebalance.engine.rewrite_engine import Rewriter
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import resuming
from zconsole.rebalance.job.accounts import JobAccounts, MoveEffect
from zconsole.rebalance.job.batches import Batches, FilesystemSync
from zconsole.rebalance.job.benefit_check import BenefitCheck, Samples
from zconsole.rebalance.job.creation import Created
from zconsole.rebalance.job.free_space import READ_ONLY, SpaceErrors, SpaceGate
from zconsole.rebalance.job.job import Job, JobClocks, job_of
from zconsole.rebalance.job.job_output import Show
from zconsole.rebalance.job.job_store import Record, locked
from zconsole.rebalance.job.locks import TreeLocks
from zconsole.rebalance.job.wait_conditions import (
    Gate,
    JobControl,
    Pacer,
    SnapshotGate,
    pool_gate,
    pool_of,
)
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import BATCH_BYTES, JobDirectory
from zconsole.rebalance.planning.rewrite_options import flags_of

STOPPING = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}

THREADS = 32
"""Threads to wait for disks in. To close originals wants most of them: with ``discard`` so many
close twenty times what one does."""

UMASK = 0o022
"""A stricter one of the operator's would be taken back from every copy."""


@dataclass(slots=True)
class JobRunner:
    """Runs one job. ``show`` is given every finished file, a batch at a time."""

    sys: Sys
    reader: FactsReader
    journal: Journal
    job: Job
    places: Sequence[JobDirectory]
    show: Show
    clocks: JobClocks = field(default_factory=JobClocks)
    alarm: Alarm = field(default_factory=Alarm)
    threads: Executor | None = None
    users: Users = field(default_factory=Users)
    control: JobControl = field(init=False)
    accounts: JobAccounts = field(init=False)
    _directories: Directories = field(init=False)
    _engine: CopyPipeline = field(init=False)
    _rewriter: Rewriter = field(init=False)
    _judge: BenefitCheck = field(init=False)
    _space: SpaceGate = field(init=False)
    _syncs: FilesystemSync = field(init=False)
    _batches: Batches = field(init=False)
    _space_errors: SpaceErrors = field(init=False)
    _in_place: bool = False
    """Whether bytes handled have moved already: those of a copy move when its batch ends."""

    def __post_init__(self) -> None:
        clock = self.clocks.monotonic
        notes = Notes(partial(self.journal.jot, CHANGING_UNTIL), self.journal.leave_directory)
        self._directories = Directories(self.sys, self.journal.directory, notes, self.clocks.epoch)
        self._space = space = SpaceGate(self.job.reserves_at(None), clock, self.job.rooms)
        self.accounts = JobAccounts(
            self.journal, self.job, self._directories, self._watching(), self.show, clock,
            self.clocks.epoch, space.trend.outlook, lambda: self.control.limits,
        )  # fmt: skip
        self._judge = self._judging()
        self._space_errors = SpaceErrors(lambda: space.room(fresh=True))
        pacer = Pacer(clock, self.clocks.sleep, [], self.accounts.wait)
        self.control = JobControl(
            self.journal, self.job, self.reader, self.places, space, [*self._lasting(), space],
            pacer, self.clocks,
        )  # fmt: skip
        self._syncs = FilesystemSync(self.sys, self.reader, self.places)
        self._make_engines()
        pacer.service = self._engine.leases.service
        self._batches = Batches(self.journal, lambda: self.control.limits.max_bytes)
        self.control.limits_changed = lambda: self._batches.shorten(self._engine.drop_tail)

    def _make_engines(self) -> None:
        clock = self.clocks.monotonic
        policy = Policy(
            accept_races=self.job.settings.accept_races,
            zfs=self.reader.version() if pool_of(self.places) is not None else None,
            room=lambda device: self._space.room(device=device),
        )
        self._engine = copy_engine(
            self.sys, self.journal, self._directories, policy, self._syncs.one, self._tick,
            self.clocks.sleep, self.clocks.epoch, clock, self.alarm, self.threads, self.users,
        )  # fmt: skip
        results = self._engine.results.waiting
        self._rewriter = Rewriter(
            self.sys, self.journal, self._directories, self._tick, clock, results,
            flags_of(self.job.settings.rewrite_options),
        )  # fmt: skip

    def run(self) -> dict[str, Any]:
        """Recover, move every file, return the summary.

        Raises ZconsoleError, OSError, sqlite3.Error.
        """
        began = self.clocks.monotonic()
        stopped_by = "done"
        self.journal.check()
        try:
            # Devices first: recovery finds files by them. What a death left halfway is settled
            # before anything else is asked of the files or done to them.
            resuming.adopt_devices(self.sys, self.journal, self.places)
            self._recover()
            if back := resuming.requeue_restored(self.sys, self.journal, self._directories):
                self.accounts.notes.append(f"{back} moved files had come back: moved again")
            self.accounts.count()
            self._move_all()
            if self._left_over():
                self._move_all()
            self._space.room(fresh=True)  # raises where all directories went under the last files
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
        seconds = self.clocks.monotonic() - began  # before the end waits for txgs to settle
        self._end(stopped_by)
        return self.accounts.summary(stopped_by, seconds)

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
        self.accounts.end(stopped_by)
        if self.accounts.effect is not None:
            self._judge.day()
        self.accounts.count()
        self.accounts.publish()

    # Setting up.

    def _watching(self) -> MoveEffect | None:
        """What sees the vdevs change; None without a pool."""
        pool, job = pool_of(self.places), self.job
        if pool is None or not job.spaces:
            return None
        return MoveEffect(self.reader, pool, job.spaces, job.raw_factor, self.clocks.monotonic)

    def _lasting(self) -> Iterator[Gate]:
        """Gates that stay the same for the whole job, beside that of free space."""
        if pool := pool_of(self.places):
            clock, accounts = self.clocks.monotonic, self.accounts
            yield pool_gate(self.reader, pool, self.job.settings.during_scan, clock)
            names = sorted({place.dataset.name for place in self.places if place.dataset})
            note, room = accounts.notes.append, self._space.room
            yield SnapshotGate(self.reader, names, accounts.left, room, clock, note)

    def _judging(self) -> BenefitCheck:
        clock, accounts = self.clocks.monotonic, self.accounts
        settings = self.job.settings
        # Blocks that -S and -C leave alone are meant to stay, and may be all of a portion's.
        moves_all = not {"S", "C"} & set(settings.rewrite_options)
        places = self.places if moves_all else ()
        samples = [Samples(self.reader, place, accounts.path, clock) for place in places]
        balancing = settings.aim == "balance" and moves_all
        return BenefitCheck(accounts, samples, balancing, self.clocks.local)

    def _recover(self) -> None:
        Recovery(
            self.sys, self.journal, self._directories, lambda _: self.accounts.work(0),
            self.clocks.epoch, self.clocks.booted, self._syncs.all, self.clocks.sleep, self.users,
        ).run()  # fmt: skip

    # Moving.

    def _move_all(self) -> None:
        self._tick(0)
        self._adapt(0, 0)
        for rows in self._batches:
            self._judge.begin(rows)
            copied, rewritten = self._by_engine(rows)
            began, handled = self.clocks.monotonic(), self.accounts.handled
            self._check_target()
            self._copy(copied)
            self._rewrite(rewritten)
            if len(self._directories) > OPEN_DIRECTORIES:
                self._directories.close()
            seconds = self.clocks.monotonic() - began
            self._adapt(seconds, self.accounts.handled - handled)
            self._judge.portion()

    def _by_engine(self, rows: Sequence[FileRow]) -> tuple[list[FileRow], list[FileRow]]:
        """Those to copy and those to rewrite."""
        # By device: a job's directories may be on datasets with different engines.
        engine_of = {
            row.dev: self.job.engines[os.fsdecode(row.name)] for row in self.journal.roots()
        }
        numbers = {row.directory for row in rows}
        by_copy = {n for n in numbers if engine_of[self.journal.directory(n).dev] == "copy"}
        copied = [row for row in rows if row.directory in by_copy]
        return copied, [row for row in rows if row.directory not in by_copy]

    def _adapt(self, seconds: float, size: int) -> None:
        """Size the next batch after one of so many bytes that took so long."""
        largest = BATCH_BYTES  # and small enough to measure often on the way to a wanted spread
        if self.control.limits.until_spread is not None and self.accounts.effect is not None:
            largest = min(largest, self.accounts.effect.step or largest)
        self._batches.adapt(seconds, size, largest, self.control.limits.rate)
        self._batches.keep_within(self._room())

    def _room(self) -> int:
        """Bytes that may be written, once the last batch's originals are gone if need be."""
        space = self._space
        if space.room() < 2 * self._batches.bytes or space.before_batch():
            self._flush()
            self.control.pacer.wait_for(space.before_batch)
            return space.room(fresh=True)
        return space.room()

    def _copy(self, rows: list[FileRow]) -> None:
        if rows:
            self.accounts.current = rows[0]
            self._report(self._engine.run(rows), "copy")

    def _rewrite(self, rows: list[FileRow]) -> None:
        self._in_place = True
        self._rewriter.begin(rows)
        for row in self._batches.one_by_one(rows):
            self.accounts.current = row
            self._report(self._rewriter.run(row), "rewrite")
        if rows:
            self._flush()
        self._in_place = False

    def _tick(self, count: int) -> None:
        self.accounts.work(count)
        self.control.pacer.tick(count)
        if self._in_place:
            self._check_target()
            self._judge.chunk()

    def _check_target(self) -> None:
        """Stop where the wanted spread is reached. Raises StopJobError."""
        watching, target = self.accounts.effect, self.control.limits.until_spread
        if watching and target is not None and watching.reached(target, self.accounts.handled):
            raise StopJobError("target spread reached")

    def _flush(self) -> None:
        """Note in the journal what became of files, once that is on the disks.

        No file is kept from others meanwhile.
        """
        if self._engine.results.unsettled:
            self._syncs.all()
        self._engine.results.flush()

    def _report(self, outcomes: Sequence[FileOutcome], engine: str) -> None:
        self._batches.give_back(outcomes)
        self._judge.finished(outcomes)
        self.accounts.report(outcomes, engine)
        self._space_errors.judge(outcomes)


def execute(record: Record, show: Show, made: Created | None = None) -> tuple[int, bool]:
    """Run a job to its end; returns how many files failed and whether SIGINT ended it.

    ``made``: it was created just now, perhaps with its locks held. Raises ZconsoleError when it
    runs already, is refused, or its tree is busy or gone.
    """
    with ExitStack() as stack:
        held = made.held if made else None
        stack.enter_context(held or locked(record))
        journal = stack.enter_context(closing(Journal.open(record.journal)))
        return _run(journal, show, made.locks if made else None)


def _run(journal: Journal, show: Show, held: TreeLocks | None) -> tuple[int, bool]:
    os.umask(UMASK)
    job, reader, system = job_of(journal), FactsReader(), Sys()
    places = plan.places(job.settings.dirs, reader, snapshots=False)
    for place in places:
        if place.mount.read_only:
            raise ZconsoleError(f"{os.fsdecode(place.root)}: {READ_ONLY}")
    locks = _locked(system, [place.root for place in places], held)
    try:
        journal.retry()
        with ThreadPoolExecutor(THREADS) as threads:
            runner = JobRunner(system, reader, journal, job, places, show, threads=threads)
            with _signals(runner.control, runner.alarm):
                summary = runner.run()
    finally:
        locks.close()
    show([{"summary": summary}])
    for place in places:
        if not Path(os.fsdecode(place.root)).is_dir():
            raise NotFoundError(f"{os.fsdecode(place.root)}: gone during the run")
    return summary["files_failed"], runner.control.stop == STOPPING[signal.SIGINT]


def _locked(system: Sys, roots: list[bytes], held: TreeLocks | None) -> TreeLocks:
    """The locks of these trees: those held, unless a link on the way was turned since."""
    if held is not None:
        if held.roots == tuple(roots):
            return held
        held.close()
    return TreeLocks(system, roots)


@contextmanager
def _signals(control: JobControl, alarm: Alarm) -> Iterator[None]:
    """Stop at the next chunk on the signals that nohup left us, and hear of broken leases."""

    def _stop(number: int, _: object) -> None:
        control.stop = STOPPING[signal.Signals(number)]

    heeded = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    wanted: dict[signal.Signals, Any] = dict.fromkeys(heeded, _stop)
    wanted[signal.SIGIO] = alarm
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    # One may be on its way yet when the last lease is gone; unheard, it would end the process.
    before[signal.SIGIO] = signal.SIG_IGN
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
