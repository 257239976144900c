"""The run of a job, from its journal to its summary, in the process of `rebalance run`.

Divides the work into portions, holds the locks, handles signals, and cleans up at the end.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.rebalance.backend import HUNG_UP, TERMINATED
from zconsole.rebalance.engine import namespaces
from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.copy_engine import copy_engine
from zconsole.rebalance.engine.descriptors import batch_directories, batch_files
from zconsole.rebalance.engine.directories import Directories, MovedError, Notes
from zconsole.rebalance.engine.file_locks import Alarm, Users
from zconsole.rebalance.engine.item import FileOutcome, StopJobError, UnsupportedError
from zconsole.rebalance.engine.journal import FileRow, Journal, State
from zconsole.rebalance.engine.journal_database import full_disk_named
from zconsole.rebalance.engine.recovery import CHANGING_UNTIL, Recovery
from zconsole.rebalance.engine.rewrite_engine import Rewriter
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.verify import READERS
from zconsole.rebalance.engine.workplace import JobClocks, Workplace
from zconsole.rebalance.job import creation
from zconsole.rebalance.job.accounts import JobAccounts
from zconsole.rebalance.job.effect import BenefitCheck
from zconsole.rebalance.job.holds import Holds, WorkPhase, exposed
from zconsole.rebalance.job.job import Job, JobTerms, terms_of
from zconsole.rebalance.job.job_output import Show
from zconsole.rebalance.job.job_store import Record, locked
from zconsole.rebalance.job.locks import TreeLocks
from zconsole.rebalance.planning import exports
from zconsole.rebalance.planning.engine_choice import READ_ONLY, flags_of, why_hidden
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory, options_now
from zconsole.rebalance.planning.forecast import BATCH_BYTES
from zconsole.system.patient import Patient

SMALLEST_BATCH = 8 << 20
BATCH_SECONDS = 4.0
AT_LIMIT = "byte limit reached"
ALL_BUT = 0.01
"""Share of the byte limit that may be left unused when it counts as reached.

Otherwise millions of files might be read from the journal in search of one that fits.
"""


@dataclass(slots=True)
class Batches:
    """Divides a job into portions, limited in bytes, files and directories.

    Files and directories of a portion stay open until it ends.
    """

    job: Job
    files: int = field(default_factory=batch_files)
    directories: int = field(init=False)
    """Most directories, parents included: each is opened through its parent."""
    bytes: int = 16 << 20
    _spent: int = 0
    """Bytes moved so far, plus those of the current portion."""

    def __post_init__(self) -> None:
        self.directories = batch_directories(self.files)

    def __iter__(self) -> Iterator[list[FileRow]]:
        """Yield portions of the files to move, in order. Raises StopJobError at the byte limit.

        Files are moved whole: one that exceeds the rest of the limit is left for another run.
        """
        cursor = (-1, -1, -1)
        self._spent = self.job.journal.moved_bytes()
        batch, held, size, passed_over = list[FileRow](), set[int](), 0, False
        while rows := self.job.journal.todo(cursor, self.files):
            for rank, row in rows:
                opened = self._opened(row, held)
                is_full = size + row.size > self.bytes or len(batch) >= self.files
                is_full |= len(held) + len(opened) > self.directories
                if batch and (is_full or self._left < row.size or self._is_spent):
                    yield batch
                    batch, held, size = [], set(), 0
                    opened = self._opened(row, held)
                if self._is_spent:  # after the yield: ``give_back`` has returned skipped bytes
                    raise StopJobError(AT_LIMIT)
                cursor = (rank, row.directory, row.number)
                if self._left < row.size:
                    passed_over = True
                    continue
                batch.append(row)
                held |= opened
                size += row.size
                self._spent += row.size
        yield batch
        if passed_over:
            raise StopJobError(AT_LIMIT)

    def give_back(self, outcomes: Sequence[FileOutcome]) -> None:
        """Give bytes of files that were not moved back to the byte limit."""
        self._spent -= sum(done.row.size for done in outcomes if done.outcome != "moved")

    def adapt(self, seconds: float, size: int, largest: int = BATCH_BYTES) -> None:
        """Size the next portion to take BATCH_SECONDS, given the time and bytes of the last one.

        A rate limit is considered as well: results are reported at the end of a portion, which must
        not take minutes.
        """
        if seconds > 0 and size:
            self.bytes = round(size / seconds * BATCH_SECONDS)
        self.bytes = max(SMALLEST_BATCH, min(self.bytes, largest))
        if (rate := self.job.limits.rate) is not None:
            self.bytes = max(1, min(self.bytes, round(rate * BATCH_SECONDS)))

    @property
    def _left(self) -> float:
        """Bytes that may still be moved."""
        most = self.job.limits.max_bytes
        return inf if most is None else most - self._spent

    @property
    def _is_spent(self) -> bool:
        return self._left <= ALL_BUT * (self.job.limits.max_bytes or 0)

    def _opened(self, row: FileRow, held: set[int]) -> set[int]:
        """Return the directories, with parents, that a file's names need besides ``held``."""
        opened: set[int] = set()
        for name in self.job.journal.names_of(row):
            number: int | None = name.directory
            while number is not None and number not in held and number not in opened:
                opened.add(number)
                number = self.job.journal.directory(number).parent
        return opened


STOPPING = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}

UMASK = 0o022
"""umask of a run; with a stricter one, the mode of every copy would have to be corrected."""


class JobRunner:
    """Runs one job; ``show`` is called with each event."""

    def __init__(
        self,
        sys: Sys,
        job: Job,
        show: Show,
        threads: Executor | None = None,
        users: Users | None = None,
        shared: str | None = None,
    ) -> None:
        """``shared`` is what ``exposed`` has just returned."""
        self.job, self._shared = job, shared
        journal, clocks = job.journal, job.clocks
        notes = Notes(partial(journal.jot, CHANGING_UNTIL), journal.leave_directory)
        self._directories = Directories(sys, journal.directory, notes, clocks.epoch)
        self._place = Workplace(
            sys, journal, self._directories, clocks, users or Users(), threads=threads
        )
        self.alarm = self._place.alarm
        terms = job.terms
        self.accounts = JobAccounts(job, self._directories, show)
        self._benefit = BenefitCheck(job, self.accounts)
        policy = Policy(
            accept_races=terms.settings.accept_races,
            zfs=job.reader.version() if job.pool is not None else None,
            room=self._room,
            copies=self._copies,
        )
        self._engine = copy_engine(self._place, policy, self._sync, self._tick)
        self._rewriter = Rewriter(
            sys, self._directories, self._engine.results, self._tick, clocks.monotonic,
            flags=flags_of(terms.settings.rewrite_options),
        )  # fmt: skip
        service = self._engine.leases.service
        self._holds = Holds(job, self.accounts, service, shared)
        self._batches = Batches(job)
        self._at: Mapping[int, Sequence[JobDirectory]] = {}
        """Directories by device; empty before ``adopt_devices``, as numbers may have changed."""
        self._phase = WorkPhase.COPYING

    def run(self) -> dict[str, Any]:
        """Recover from an interrupted run, move every file, and return the summary.

        Raises ZconsoleError, OSError, sqlite3.Error.
        """
        began, refused = self.job.clocks.monotonic(), None
        stopped_by, recovered = "done", False
        self.job.journal.check()
        try:
            # The order matters: recovery finds files by their devices, and must settle what an
            # interrupted run left unfinished before anything else is done with the files.
            sys, journal = self._place.sys, self.job.journal
            creation.adopt_devices(sys, journal, self.job.places)
            self._at = self._by_device()
            self._recover(self.job.obey)
            recovered = True
            if self._shared and exports.UNKNOWN not in self._shared:  # else it may be known soon
                raise UnsupportedError(self._shared)
            if back := creation.requeue_restored(sys, journal, self._directories):
                self.accounts.notes.append(f"{back} moved files had come back: moved again")
            self.accounts.count()
            self._move_all()
            if self._left_over():  # settling may have queued files again
                self._move_all()
            # Raises StopJobError if all directories vanished during the last portion.
            self.job.space.room(fresh=True)
        except StopJobError as error:
            stopped_by = str(error)
        except UnsupportedError as error:
            refused, stopped_by = error, str(error)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            stopped_by = READ_ONLY
        if recovered and stopped_by != READ_ONLY:  # settle unfinished files while that is possible
            self._left_over()
        seconds = self.job.clocks.monotonic() - began  # before the end waits for txgs to settle
        self.accounts.end(stopped_by)
        if refused:
            raise ZconsoleError(f"refused: {refused} (--accept-races)") from refused
        return self.accounts.sum_up(stopped_by, seconds)

    def _left_over(self) -> bool:
        """Settle files that a failure left unfinished; return whether any were queued again."""
        self._flush()
        self._recover()
        return State.PENDING in self.job.journal.counts()

    def _by_device(self) -> dict[int, list[JobDirectory]]:
        """Return the job's directories by device; numbers may be new since the walk."""
        by_root = {place.root: place for place in self.job.places}
        found: dict[int, list[JobDirectory]] = {}
        for row in self.job.journal.roots():
            if row.name in by_root:
                found.setdefault(row.dev, []).append(by_root[row.name])
        return found

    def _copies(self, device: int) -> int:
        """Return the ``copies`` property of the dataset on a device; 1 without ZFS."""
        datasets = (place.dataset for place in self._at.get(device, ()) if place.dataset)
        return max((dataset.number("copies") or 1 for dataset in datasets), default=1)

    def _room(self, device: int) -> int:
        """Return how large a file may be for its copy to fit, by the blocks that it takes now."""
        grown = (self.job.terms.grown.get(place.path, 1.0) for place in self._at.get(device, ()))
        return int(self.job.space.room(device) / max((1.0, *grown)))

    def _recover(self, obey: Callable[[], object] = lambda: None) -> None:
        """Settle what was left unfinished; ``obey`` is called often, and may raise StopJobError."""

        def _tick(_: int) -> None:
            self.accounts.work(0)
            obey()

        place, clocks = self._place, self.job.clocks
        Recovery(
            place.sys, place.journal, place.directories, _tick,
            now=clocks.epoch, booted=clocks.booted, sync=self._sync_all, sleep=clocks.sleep,
            users=place.users,
        ).run()  # fmt: skip

    def _sync(self, fd: int | None) -> None:
        """Sync the filesystem of a descriptor, on ZFS the pool with all its datasets.

        None: the directory is gone, so sync everything.
        """
        if self.job.pool:
            self.job.reader.sync(self.job.pool)
        elif fd is None:
            self._place.sys.sync()
        else:
            self._place.sys.syncfs(fd)

    def _sync_all(self) -> None:
        """Sync every filesystem of the job: by now, the path of a root may lead to another."""
        for row in self.job.journal.roots():
            try:
                fd = self._directories.get(row.number).fd
            except (MovedError, OSError):
                fd = None
            self._sync(fd)

    # Moving files.

    def _move_all(self) -> None:
        self._tick(0)
        self._adapt(0, 0)
        for rows in self._batches:
            self._benefit.begin(rows)
            copied, rewritten = self._by_engine(rows)
            began, handled = self.job.clocks.monotonic(), self.accounts.handled
            self._holds.wait(WorkPhase.BETWEEN)
            if copied:
                self._refuse_hidden()
                self.accounts.current = copied[0]
                self._report(self._engine.run(copied), "copy")
            self._rewrite(rewritten)
            # One that is moved out of the tree by the next portion must not be worked on then.
            self._directories.close()
            seconds = self.job.clocks.monotonic() - began
            self._adapt(seconds, self.accounts.handled - handled)
            self._benefit.portion()

    def _refuse_hidden(self) -> None:
        """Raise StopJobError if a filesystem now hides metadata that a copy must have."""
        for place in self.job.places:
            if why := hidden(self.job.terms, replace(place, options=options_now(place))):
                raise StopJobError(f"{place.path}: {why}")

    def _by_engine(self, rows: Sequence[FileRow]) -> tuple[list[FileRow], list[FileRow]]:
        """Split files into those to copy and those to rewrite."""
        journal = self.job.journal
        # By device: a job's directories may be on datasets with different engines.
        engine_of = {
            row.dev: self.job.terms.engines[os.fsdecode(row.name)] for row in journal.roots()
        }
        numbers = {row.directory for row in rows}
        by_copy = {n for n in numbers if engine_of[journal.directory(n).dev] == "copy"}
        copied = [row for row in rows if row.directory in by_copy]
        return copied, [row for row in rows if row.directory not in by_copy]

    def _adapt(self, seconds: float, size: int) -> None:
        """Size the next portion, given time and bytes of the last one, and make space for it."""
        largest = BATCH_BYTES  # smaller on the way to a wanted spread, to check it often enough
        if self.job.limits.until_spread is not None:
            largest = min(largest, self.accounts.watch.step or largest)
        self._batches.adapt(seconds, size, largest)
        if self.job.space.room() < 2 * self._batches.bytes or self.job.space.is_tight:
            self._flush()  # frees the space of the last batch's originals
            self._holds.wait(WorkPhase.BETWEEN)
            self.job.space.room(fresh=True)
        # Half of the free bytes at most: space is freed only at the end of a portion.
        self._batches.bytes = max(1, min(self._batches.bytes, self.job.space.room() // 2))

    def _rewrite(self, rows: list[FileRow]) -> None:
        self._phase = WorkPhase.REWRITING
        self._rewriter.begin(rows)
        for row in rows:
            self.accounts.current = row
            self._report(self._rewriter.run(row), "rewrite")
        if rows:
            self._flush()
        self._phase = WorkPhase.COPYING

    def _tick(self, count: int) -> None:
        self.accounts.work(count)
        # No bytes while copying: a copy is being read back, or nothing has begun.
        checking = self._phase is WorkPhase.COPYING and not count
        self._holds.tick(count, WorkPhase.CHECKING if checking else self._phase)
        if self._phase is WorkPhase.REWRITING:
            self._benefit.chunk()

    def _flush(self) -> None:
        """Record the outcomes of files in the journal, after syncing them to the disks.

        No file is leased meanwhile, and no directory is open afterward.
        """
        if self._engine.results.unsynced:
            self._sync_all()
        self._engine.results.flush()
        self._directories.close()

    def _report(self, outcomes: Sequence[FileOutcome], engine: str) -> None:
        self._batches.give_back(outcomes)
        self._benefit.finished(outcomes)
        self.accounts.report(outcomes, engine)
        self.job.space.judge(outcomes)


def execute(record: Record, show: Show, locks: TreeLocks | None = None) -> tuple[int, bool]:
    """Run a job to its end; return how many files failed, and whether SIGINT ended it.

    ``locks``: the locks of its trees, if the caller holds them and that of the job. Raises
    ZconsoleError if it is running already, is refused, or its tree is busy or gone; if only some of
    its directories are gone, after its end.
    """
    held = locked(record) if locks is None else nullcontext()
    with (
        held,
        full_disk_named(record.journal),
        closing(Journal.open(record.journal)) as journal,
    ):
        os.umask(UMASK)
        terms, reader, system = terms_of(journal), FactsReader(), Sys()
        places, missing = creation.locate_again(system, reader, journal, terms.settings.dirs)
        floors = {root: terms.floors[root] for root in (place.path for place in places)}
        job = Job(journal, replace(terms, floors=floors), JobClocks(), reader, places)
        for place in places:
            if why := READ_ONLY if place.read_only else hidden(job.terms, place):
                raise ZconsoleError(f"{place.path}: {why}")
        shared = exposed(job, Patient())
        with (
            closing(_locked(system, [place.root for place in places], locks)),
            ThreadPoolExecutor(READERS) as threads,
        ):
            journal.retry()  # files that failed before get another try
            runner = JobRunner(system, job, show, threads, shared=shared)
            runner.accounts.notes += map(str, missing)
            with _signals(job, runner.alarm):
                summary = runner.run()
    for place in places:
        if not Path(place.path).is_dir():
            raise NotFoundError(f"{place.path}: gone during the run")
    if missing:
        raise missing[0]
    return summary["files_failed"], job.stop == STOPPING[signal.SIGINT]


def hidden(terms: JobTerms, place: JobDirectory) -> str:
    """Reason why copies in a directory would now lack hidden metadata; empty if they would not.

    Empty, too, for engines other than copy.
    """
    if terms.engines.get(place.path) != "copy":
        return ""
    return why_hidden(place, namespaces.is_nested(), terms.options.get(place.path, ""))


def _locked(system: Sys, roots: list[bytes], held: TreeLocks | None) -> TreeLocks:
    """Lock these trees; keep the locks held, unless a changed link leads to other trees."""
    if held is not None:
        if held.roots == tuple(roots):
            return held
        held.close()
    return TreeLocks(system, roots)


@contextmanager
def _signals(job: Job, alarm: Alarm) -> Iterator[None]:
    """Stop at the next chunk on SIGINT, SIGTERM or SIGHUP, and handle SIGIO of broken leases.

    Signals that are ignored, as SIGHUP by nohup, stay ignored.
    """

    def _stop(number: int, _: object) -> None:
        job.stop = STOPPING[signal.Signals(number)]

    heeded = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    wanted: dict[signal.Signals, Any] = dict.fromkeys(heeded, _stop)
    wanted[signal.SIGIO] = alarm
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    # A SIGIO may arrive after the last lease is released; its default action ends the process.
    before[signal.SIGIO] = signal.SIG_IGN
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
