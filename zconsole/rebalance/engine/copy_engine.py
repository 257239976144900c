"""The copy engine: copies a batch of files, syncs them together, then replaces them one by one.

Order of events for a batch: commit the temporary names; copy every file under a lease to one of
them, with all its metadata; sync once; read every copy back and compare it; commit the intents;
replace name by name; a moment later remove the originals that nobody has touched or uses. The
engine checks who uses the files before they are copied, before names are replaced and before
originals are removed: if somebody came between the last two checks, the original gets its name
back, and where the copy is in use as well, both are kept. A crash at any point leaves a whole file
under every name, and the journal knows every temporary name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from zconsole.rebalance.engine import content, file_locks, metadata
from zconsole.rebalance.engine.admission import Admission, Policy
from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.file_copy import FileCopier
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.item import FileOutcome, Item, SkipError, outcome_of
from zconsole.rebalance.engine.journal import FileRow, Intent, State
from zconsole.rebalance.engine.leases import LeaseService
from zconsole.rebalance.engine.read_ahead import ReadAhead
from zconsole.rebalance.engine.results import Results
from zconsole.rebalance.engine.swap import Swappers, UnfinishedError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.verify import Verifier
from zconsole.rebalance.engine.withdrawal import Withdrawal
from zconsole.rebalance.engine.workplace import Workplace

SYNC_LOOK = 0.05
"""Seconds between two checks for writers during a sync."""
LOCK_LOOK, LOCK_REST, LONGEST_REST = 0.02, 9, 0.5
"""Seconds between two checks for locks while names are replaced.

For this long two processes may each hold a lock, one on the original, one on the copy. A check
reads our own leases, too, up to 8,000, which takes some milliseconds, and on a slow machine longer
than LOCK_LOOK. So that there is time for replacing, the next one is LOCK_REST times that later, but
at most LONGEST_REST seconds.
"""


@dataclass(frozen=True, slots=True)
class CopyPipeline:
    """Takes one batch of files after another through the steps of a move."""

    sys: Sys
    directories: Directories
    admission: Admission
    copier: FileCopier
    verifier: Verifier
    swappers: Swappers
    leases: LeaseService
    withdrawal: Withdrawal
    results: Results
    users: Users
    sync: Callable[[int], None]
    """Makes everything written so far to the filesystem of a descriptor durable."""
    now: Callable[[], float]
    """Epoch seconds."""

    def run(self, rows: Sequence[FileRow]) -> list[FileOutcome]:
        """Move these files; return the outcome of each name.

        Raises StopJobError, UnsupportedError, sqlite3.Error, OSError. Whatever is raised, every
        file is whole, and ``recovery`` settles those that the journal lists as unfinished.
        """
        self.results.outcomes = []
        self.leases.items.clear()
        try:
            for row in rows:
                self.leases.service()
                self._open(row)
            if self.leases.live:
                self.withdrawal.spare_users(self.leases.live, self.users.recent())
                self._commit_names()
                self._copy_all()
            if self.leases.live:
                # The order of these must not change: nothing is replaced before the copies are on
                # the disks, read back and compared, and the journal has the intents.
                self._make_durable()
                self._verify_all()
                self._commit_intents()
                self._replace_all()
                self._finish_all()
        finally:
            for item in self.leases.live:
                self.withdrawal.drop(item)
            self.withdrawal.discard_all(self.leases.service)
            self.directories.restore_times()  # last: removing copies changes the times, too
        return self.results.outcomes

    def _open(self, row: FileRow) -> None:
        names = self.results.journal.names_of(row)
        try:
            self.leases.items.append(self.admission.open(names))
        except (SkipError, MovedError) as error:
            self.results.add(names, "skipped", str(error))
        except OSError as error:
            self.results.add(names, *outcome_of(error))

    # Copying.

    def _commit_names(self) -> None:
        """Commit the names of the temporary files before the first of them is created.

        Otherwise a crash could leave a file that the journal does not know. A file has one copy,
        at its first temporary name; its other names get theirs after the intent is committed.
        """
        items = self.leases.live
        intents = [
            Intent(each.places[0].row.number, State.CREATING, each.places[0].temp, each.old, 0, b"")
            for each in items
        ]
        self.results.journal.record((), intents, self._directory_times(items), synced=False)

    def _directory_times(self, items: Iterable[Item]) -> dict[int, tuple[int, float]]:
        """Times to restore, by number of the directory: modification time (ns), and when noted.

        Directories that another process changed are left out: they keep the time they have.
        """
        directories = [place.directory for item in items for place in item.places]
        for directory in directories:
            self.directories.begin(directory)
        noted = self.now()
        return {each.number: (each.mtime_ns, noted) for each in directories if not each.foreign}

    def _copy_all(self) -> None:
        items = self.leases.live
        ahead = items if self.admission.policy.ahead else ()
        # Sizes are asked late: an item given up by then is not read any more.
        front = ReadAhead(iter(ahead), lambda item: 0 if item.done else item.size, self._ask)
        for item in items:
            front.step()
            self.withdrawal.guarded(item, self._copy)

    def _ask(self, item: Item, count: int) -> None:
        self.sys.fadvise(item.source, 0, count, os.POSIX_FADV_WILLNEED)

    def _copy(self, item: Item) -> None:
        place = item.places[0]
        with self.directories.changing(place.directory):
            place.linked = True  # before the call: one that fails may have created the file
            mode = metadata.first_mode(item.meta, place.directory.born)
            try:
                item.copy = self.sys.open_new(place.directory.fd, place.temp, mode)
            except FileExistsError:
                place.linked = False  # the file there is not ours
                raise
        item.handle = self.sys.handle(item.copy)
        abilities = self.swappers.of(item).abilities
        self.copier.fill(item, abilities, partial(self.leases.work, item))

    # From the sync to the end of a batch.

    def _make_durable(self) -> None:
        """Sync each filesystem of the batch, in a thread: a writer may wait for our lease to end.

        Meanwhile the copies are reopened in the way in which they are read back: read-only, and
        past the cache where that is possible.
        """
        places = {item.status.st_dev: item.places[0] for item in self.leases.live}
        self.results.syncing(places.keys())
        with ThreadPoolExecutor(1) as thread:
            syncs = [thread.submit(self.sync, each.directory.fd) for each in places.values()]
            for item in self.leases.live:
                self.leases.service()
                self.withdrawal.guarded(item, self.verifier.reopen)
            while wait(syncs, SYNC_LOOK).not_done:
                self.leases.service()
        for sync in syncs:
            if error := sync.exception():
                # The names that earlier batches changed may not be on the disks, either.
                self.results.unsynced |= places.keys()
                raise error

    def _verify_all(self) -> None:
        for item in self.leases.live:
            self.withdrawal.guarded(item, self.verifier.forget)
        with contextlib.closing(
            self.verifier.ahead(self.leases.live, self.leases.service)
        ) as items:
            for item in items:
                self.withdrawal.guarded(item, self._verify)

    def _verify(self, item: Item) -> None:
        self.verifier.verify(item, lambda _: self.leases.work(item, 0))

    def _commit_intents(self) -> None:
        look = self.users.look(self.leases.service)
        self._leave_locked()
        self.withdrawal.spare_users(self.leases.live, look)
        items = self.leases.live
        intents = [
            Intent(place.row.number, State.SWAPPING, place.temp, item.old, item.new, *known)
            for item, known in ((item, _known(item)) for item in items)
            for place in item.places
        ]
        # Include the items given up by now: their directories get their times back at the end, too.
        self.results.commit(intents, self._directory_times(self.leases.items))

    def _leave_locked(self) -> float:
        """Give up the files that others have locked or wait to lock; names get the original back.

        A lock belongs to an inode: whoever opens the name must get the one that is locked. Returns
        the seconds that reading the locks took.
        """
        began = self.withdrawal.clock()
        numbers = {number for item in self.leases.live for number in (item.old, item.new)}
        # A busy server has thousands of locks: drop those on other inodes before the loop.
        locks = {lock for lock in file_locks.locked_inodes() if lock[1] in numbers}
        took = self.withdrawal.clock() - began
        if not locks:
            return took
        look = self.users.last or self.users.look()
        for item in self.leases.live:
            fd, device = item.places[0].directory.fd, item.status.st_dev
            if not look.may_be_locked(locks, fd, device, item.old):
                continue
            if item.in_place and look.may_be_locked(locks, fd, device, item.new):
                self.withdrawal.keep_both(item, "both locked")
            else:
                self.withdrawal.retreat(item, "locked")
        return took

    def _replace_all(self) -> None:
        self.results.unsynced |= {item.status.st_dev for item in self.leases.live}
        clock = self.withdrawal.clock
        due = clock() + LOCK_LOOK
        for item in self.leases.live:
            self.leases.service()
            self.withdrawal.guarded(item, self._replace)
            if clock() > due:
                rest = min(LOCK_REST * self._leave_locked(), LONGEST_REST)
                due = clock() + max(LOCK_LOOK, rest)

    def _replace(self, item: Item) -> None:
        self.swappers.of(item).replace(item)
        item.names_changed_at = self.withdrawal.clock()

    def _finish_all(self) -> None:
        service = self.leases.service
        # Check at once: while the copy has the name, others may lock the copy as well.
        self._leave_locked()
        self.withdrawal.wait_grace((item for item in self.leases.live if item.leased), service)
        self.withdrawal.spare_users(self.leases.live, self.users.look(service))
        self._leave_locked()
        for item in self.leases.live:
            service()
            self.withdrawal.guarded(item, self._finish)

    def _finish(self, item: Item) -> None:
        try:
            self.swappers.of(item).finish(item)
        except UnfinishedError:
            # The journal still lists it as unfinished, so recovery removes the names that are left.
            self.results.leave(item.names, "moved", None)
        else:
            self.results.add(item.names, "moved", None, item.size)
        item.close(self.sys)


def _known(item: Item) -> tuple[bytes, bytes, bytes]:
    """Digests and handle by which recovery tells an item's original from its copy."""
    return item.digest, item.meta.digest(), item.handle


def copy_engine(
    place: Workplace, policy: Policy, sync: Callable[[int], None], tick: Callable[[int], None]
) -> CopyPipeline:
    """Build the pipeline of a job with all its parts.

    ``tick`` may wait or raise StopJobError, and must call ``leases.service`` often.
    """
    sys, directories, clocks = place.sys, place.directories, place.clocks
    swappers = Swappers(sys, directories, policy.accept_races)
    admission = Admission(sys, directories, policy, swappers.abilities)
    directories.own(admission.prefix)
    copier = FileCopier(sys, content.fastest(), policy.copies)
    direct = copier.buffers if policy.direct else None
    verifier = Verifier(sys, copier.make, direct, clocks.sleep, place.threads)
    results = Results(place.journal)
    withdrawal = Withdrawal(sys, swappers, results, place.users, clocks.monotonic, clocks.sleep)
    leases = LeaseService(sys, place.alarm, withdrawal, tick)
    return CopyPipeline(
        sys, directories, admission, copier, verifier, swappers, leases, withdrawal, results,
        place.users, sync, clocks.epoch,
    )  # fmt: skip
