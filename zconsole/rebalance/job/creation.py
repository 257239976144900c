"""Creating a job, and checks before resuming one.

A new job's directories are walked into a new journal, planned, and confirmed. The walk can be
paused and stopped like a running job. Its names are committed a portion at a time, so that the
status can be updated in between; until the last commit, the journal's walk counts as unfinished.

A resumed job must be the one asked for, on the same directories as before. A directory that is
gone, or another by now, is left out as long as one is there. A rollback of a dataset undoes moves,
which the journal does not know. A copy has another inode than its original, so if one of some
sampled copies is the original again, all are checked. Files rewritten in place can't be told from
others.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from zconsole.errors import NotFoundError, NotUnderstoodError, UsageError, ZconsoleError
from zconsole.rebalance.backend import JobStatus
from zconsole.rebalance.engine import journal_database
from zconsole.rebalance.engine.descriptors import OPEN_DIRECTORIES
from zconsole.rebalance.engine.directories import Directories, DirectoryRow, MovedError, open_path
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal, again
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.holds import CHECK_INTERVAL, SLICE
from zconsole.rebalance.job.job import (
    WALKING,
    JobTerms,
    Request,
    parse_key,
    request_file,
    requested,
    walking_settings,
)
from zconsole.rebalance.job.job_store import Record
from zconsole.rebalance.job.locks import TreeLocks, refuse_interrupted
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory
from zconsole.rebalance.planning.forecast import RebalancePlan
from zconsole.rebalance.planning.settings import Settings
from zconsole.rebalance.planning.survey import Ages
from zconsole.rebalance.planning.walk import Portion
from zconsole.system.safe_path import sync_directory
from zconsole.system.state_dir import remove, write_private

KEPT = 4000
"""Rows that are collected for one commit."""

Row = tuple[int, bytes, int, int, int, int]


@dataclass(slots=True)
class Created:
    """A job that is planned and has a journal, but has not run."""

    record: Record
    plan: RebalancePlan
    locks: TreeLocks | None = None
    """Locks of its trees, if they are to be held."""
    held: ExitStack = field(default_factory=ExitStack)
    """The locks of its trees and of the job, if held, to be closed after its run."""


def create(
    settings: Settings,
    reader: FactsReader,
    journal_path: Path | None = None,
    agreed: bool = True,
    begun: Callable[[Record], None] = lambda _: None,
    ask: Callable[[RebalancePlan], None] = lambda _: None,
    hold: bool = False,
) -> Created:
    """Walk and plan a new job; if its plan is refused, nothing of it is kept.

    ``begun`` is called before the walk; from then on the job can be paused and stopped. ``agreed``:
    no confirmation will be asked for, so an interrupted walk can be resumed. ``ask`` is called with
    the plan while nobody else can run the job; if it raises, nothing is kept, either. ``hold``: the
    job and its trees stay locked for ``execute``. Raises StopJobError if stopped, ZconsoleError,
    and what ``ask``, ``plan.locate`` and ``plan.make`` raise.
    """
    found = plan.locate(settings.dirs, reader)
    with ExitStack() as held:
        locks = held.enter_context(closing(_locked(found)))
        record = job_store.by_journal(journal_path) if journal_path else None
        # A record without a journal is of a process that died before it created one: reuse it.
        if record is None or record.journal.exists():
            record = job_store.add(journal_path)
        held.enter_context(job_store.locked(record))
        walking = {"settings": settings.as_json(), "agreed": agreed}
        journal, kept = _new_journal(record, {"walking": walking}), False
        try:
            # Overwrite a request left by a job whose journal was here and has been deleted.
            write_private(request_file(record.journal), Request().encoded())
            begun(record)
            made = _walk_into(journal, reader, found, settings, record)
            ask(made)
            journal.set("walking", {**walking, "agreed": True})
            kept = not made.document.refused
        except StopJobError:
            kept = agreed  # it can be resumed
            raise
        finally:
            journal.close()
            if not kept:
                job_store.remove(record)
                journal_database.delete(record.journal)
                remove(request_file(record.journal))
        if hold:
            return Created(record, made, locks, held.pop_all())
    return Created(record, made)


def recount(record: Record, reader: FactsReader) -> RebalancePlan | None:
    """Walk and plan again if the walk was interrupted or stopped; None if it was finished.

    The job is kept, whatever happens. Raises what ``create`` raises.
    """
    with job_store.locked(record), closing(Journal.open(record.journal)) as journal:
        if journal.get("job") is not None:
            return None
        settings = walking_settings(journal, alive=False)
        if settings is None:
            raise NotUnderstoodError(f"{record.journal}: the walk was not finished; delete it")
        limits = settings.limits.changed(requested(journal.path).limits)
        settings = replace(settings, limits=limits)
        found = plan.locate(settings.dirs, reader)
        with closing(_locked(found)):
            journal.clear_walk()
            _tell(journal, "running", WALKING)
            return _walk_into(journal, reader, found, settings, record)


def _locked(found: list[JobDirectory]) -> TreeLocks:
    """Lock trees in which no other job is working or has unfinished work."""
    roots = [place.root for place in found]
    locks = TreeLocks(Sys(), roots)
    try:
        refuse_interrupted(roots)
    except BaseException:
        locks.close()
        raise
    return locks


def _new_journal(record: Record, values: Mapping[str, Any]) -> Journal:
    try:
        return Journal.create(record.journal, values)
    except BaseException as error:
        job_store.remove(record)
        if isinstance(error, FileExistsError):
            raise ZconsoleError(f"{record.journal} exists already") from error
        raise


def _walk_into(
    journal: Journal,
    reader: FactsReader,
    found: list[JobDirectory],
    settings: Settings,
    record: Record,
) -> RebalancePlan:
    sink = WalkSink(journal, JobClocks())
    journal.set("keys", {place.path: place.key for place in found})
    with journal.lazily_durable():  # a walk that a power cut undoes is repeated
        made = plan.make(reader, found, settings, sink, journal.path)
        sink.flush()
        sink.obey()
        terms = terms_of_plan(record, settings, made)
        journal.finish_walk(split_links="copy" in terms.engines.values())
    if refused := made.document.refused:
        _tell(journal, "stopped", f"refused: {refused}")
        return made
    journal.set("walk_skipped", sink.skipped)
    _tell(journal, "planned")
    # Must be last: it marks the walk as finished.
    journal.set("job", asdict(terms))
    sync_directory(journal.path.parent)  # makes the name of the new journal durable
    return made


def _tell(journal: Journal, state: str, why: str | None = None, at: float | None = None) -> None:
    """Store the status of a job that does not move files yet."""
    journal.set("status", JobStatus(state=state, why=why, t=at).document())


def terms_of_plan(record: Record, settings: Settings, made: RebalancePlan) -> JobTerms:
    """Build the terms that the journal of a planned job keeps."""
    pool, by_root = made.pool, {each.place.path: each for each in made.directories}
    return JobTerms(
        name=record.job,
        settings=settings,
        engines={root: each.choice.engine or "" for root, each in by_root.items()},
        spaces=pool.spaces if pool else (),
        raw_factor=made.raw_factor,
        floors={root: each.found.floor for root, each in by_root.items()},
        created=time.time(),
        rooms={root: each.found.room for root, each in by_root.items()},
        options={root: each.place.options for root, each in by_root.items()},
        stored=made.stored,
        source=None if made.source is None else tuple(made.source),
        pinned=made.pinned,
        grown={root: each.grown for root, each in by_root.items()},
    )


@dataclass(slots=True)
class WalkSink:
    """Writes a walk into a journal. Raises StopJobError if the job is stopped."""

    journal: Journal
    clocks: JobClocks
    last: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    _directories: list[DirectoryRow] = field(default_factory=list)
    _files: list[Row] = field(default_factory=list)
    _looked: float = float("-inf")

    def __call__(self, portion: Portion, ages: Ages) -> None:
        """Store a portion, each file with its rank in the order of work; obey requests."""
        row = portion.directory
        if row.number > self.last:
            self.last = row.number
            self._directories.append(row)
        for _, reason in portion.skipped:
            self.skipped[reason] += 1
        self._files += [
            (
                row.number, name, status.st_ino, status.st_size, status.st_nlink,
                # Files older than the newest vdev first, then large before small.
                (64 if ages.addition is not None and status.st_ctime >= ages.addition else 0)
                + 63 - status.st_size.bit_length(),
            )
            for name, status in portion.files
        ]  # fmt: skip
        if len(self._files) + len(self._directories) >= KEPT:
            self.flush()
        if self.clocks.monotonic() - self._looked >= CHECK_INTERVAL:
            self.obey()

    def flush(self) -> None:
        """Commit the rows collected so far."""
        self.journal.begin()
        for row in self._directories:
            self.journal.add_directory(row)
        self.journal.add_files(self._files)
        self.journal.commit()
        self._directories, self._files = [], []

    def obey(self) -> None:
        """Wait while the job is paused. Raises StopJobError if it is stopped."""
        self._looked = self.clocks.monotonic()
        if (order := requested(self.journal.path).order) == "pause":
            _tell(self.journal, "paused", "paused", self.clocks.epoch())
            while (order := requested(self.journal.path).order) == "pause":
                self.clocks.sleep(SLICE)
            _tell(self.journal, "running", WALKING, self.clocks.epoch())
        if order == "stop":
            _tell(self.journal, "stopped", "stop", self.clocks.epoch())
            raise StopJobError("stop")


OPTIONS = (
    "engine", "aim", "accept_races", "allow_non_zfs", "during_scan", "rewrite_options", "fill_new",
)  # fmt: skip
"""Settings that a job keeps for its whole life; only its limits may change."""
SAMPLE = 300
"""Copied files that are sampled when a job is resumed."""
PAGE = 4000
"""Files checked per commit."""
GONE = 1 << 40
"""From here on numbers are no devices': dev_t has 32 bits (linux/kdev_t.h)."""


def refuse_difference(
    journal: Path, job: Settings, dirs: Collection[str], options: Mapping[str, Any]
) -> None:
    """Raise UsageError if the operator gave other directories or options than the job has.

    Empty ``dirs``, and options with their default value, count as not given.
    """
    if dirs and set(dirs) != set(job.dirs):
        raise UsageError(
            f"{journal} is the journal of a job on {' '.join(job.dirs)}, not on {' '.join(dirs)}."
            " Leave out the directories to resume it, or name a new journal"
        )
    usual = Settings(dirs=())
    for name in OPTIONS:
        given, own = options[name], getattr(job, name)
        if given not in (own, getattr(usual, name)):
            option = f"--{name.replace('_', '-')}"
            value = "" if given is True else f" {given}"
            raise UsageError(
                f"{journal} is the journal of a job without {option}{value}."
                f" Leave out {option} to resume it, or name a new journal"
            )


def locate_again(
    sys: Sys, reader: FactsReader, journal: Journal, dirs: Sequence[str]
) -> tuple[list[JobDirectory], list[ZconsoleError]]:
    """Look up the directories of a job again; return those still there, and why others are not.

    Raises UnavailableError, OSError, and the error of the first if none is there.
    """
    places, missing = list[JobDirectory](), list[ZconsoleError]()
    for directory in dirs:
        try:
            (place,) = plan.locate([directory], reader, snapshots=False)
            _device_of(sys, journal, place)
        except (NotFoundError, OtherDirectoryError) as error:
            missing.append(error)
        else:
            places.append(place)
    if not places:
        raise missing[0]
    return places, missing


class OtherDirectoryError(ZconsoleError):
    """A directory of a job is not the one that was walked."""


def adopt_devices(sys: Sys, journal: Journal, places: Sequence[JobDirectory]) -> None:
    """Update device numbers, which may have changed.

    Files of roots that are not among ``places`` are on no device until those are back. Raises
    OtherDirectoryError, OSError.
    """
    by_root, roots = {place.root: place for place in places}, journal.roots()
    changes = {row.dev: GONE + row.number for row in roots if row.dev < GONE}
    for row in roots:
        if place := by_root.get(row.name):
            changes[row.dev] = _device_of(sys, journal, place)
    changes = {old: new for old, new in changes.items() if old != new}
    if changes:
        journal.change_devices(changes)


def _device_of(sys: Sys, journal: Journal, place: JobDirectory) -> int:
    """Return the device of a root after verifying it by filesystem and inode.

    Raises OtherDirectoryError, OSError.
    """
    fd = open_path(sys, place.root)
    status = sys.fstat(fd)
    sys.close(fd)
    root = place.path
    known = (journal.get("keys", dict) or {}).get(root, "")
    inodes = {row.ino for row in journal.roots() if row.name == place.root}
    if not is_same_filesystem(known, place.key) or status.st_ino not in inodes:
        raise OtherDirectoryError(
            f"{root} {how_it_differs(known, place.key)}. To give up what the job"
            f" left, delete {journal.path}; to go on, put back what was there"
        )
    return status.st_dev


def is_same_filesystem(one: str, other: str) -> bool:
    """Whether two keys (``JobDirectory.key``) identify the same filesystem.

    A renamed dataset keeps its guid; other filesystems have none.
    """
    return one == other or parse_key(one)[2] == parse_key(other)[2] != ""


def how_it_differs(known: str, now: str) -> str:
    """Describe how a directory differs from the one walked, from its keys then and now."""
    if is_same_filesystem(known, now):
        return "is another directory than the one that was walked"
    then, here = map(_named, (known, now))
    rest = "made anew" if then == here else f"not {then}"
    return f"is on another filesystem now: {here}, {rest}"


def _named(key: str) -> str:
    """Render the key of a filesystem, as ``tank/data (zfs)``."""
    kind, source, _ = parse_key(key)
    return f"{source} ({kind})" if kind else "an unknown one"


def requeue_restored(sys: Sys, journal: Journal, directories: Directories) -> int:
    """Queue the names again that a rollback gave back their originals; return how many."""
    try:
        if not any(_is_back(sys, directories, row) for row in journal.some_copied(SAMPLE)):
            return 0
        last = back = 0
        while rows := journal.copied(last, PAGE):
            last = rows[-1].number
            originals = [again(row) for row in rows if _is_back(sys, directories, row)]
            journal.record(originals)
            back += len(originals)
        return back
    finally:
        directories.close()


def _is_back(sys: Sys, directories: Directories, row: FileRow) -> bool:
    """Whether a name that was replaced by a copy has its original again."""
    if len(directories) > OPEN_DIRECTORIES:
        directories.close()
    with contextlib.suppress(MovedError, OSError):
        return sys.lstat(directories.get(row.directory).fd, row.name).st_ino == row.old
    return False
