"""The copy engine: a batch of files at a time, made durable together, replaced one by one.

Order of events for a batch: copy every file under a lease into an unnamed file with all its
metadata; one sync; read every copy back and compare; commit the intents; replace name by name;
a moment later remove the originals that nobody touched or uses. Who uses files is looked up
before they are copied, before names are replaced and before originals are removed: whoever came
between the last two gets the original back. At any point a death leaves every name with a whole
file, and the journal knows every temporary name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

from zconsole.rebalance.engine import content, file_locks, intents, metadata
from zconsole.rebalance.engine.admission import Admission, Policy
from zconsole.rebalance.engine.content import ChangedError
from zconsole.rebalance.engine.deferred_close import Closer
from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.file_copy import FileCopier, Original
from zconsole.rebalance.engine.file_locks import Alarm, FilesInUse, Users
from zconsole.rebalance.engine.item import FileName, FileOutcome, Item, SkipError, outcome_of
from zconsole.rebalance.engine.journal import FileRow, Journal, Result, State
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.read_ahead import ReadAhead
from zconsole.rebalance.engine.swap import GRACE, ConflictError, Swapper, UnfinishedError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.verify import Verifier

SYNC_LOOK = 0.05
"""Seconds between two looks for writers during a sync."""
STATES = {"moved": State.MOVED, "skipped": State.SKIPPED, "failed": State.FAILED}


@dataclass(slots=True)
class CopyEngine:
    """Copies batches. ``tick`` may wait or raise StopJobError; it must call ``service`` often."""

    sys: Sys
    journal: Journal
    directories: Directories
    policy: Policy
    sync: Callable[[int], None]
    """Makes everything written so far durable; given a descriptor on the filesystem."""
    tick: Callable[[int], None]
    sleep: Callable[[float], None]
    now: Callable[[], float]
    """Epoch seconds."""
    clock: Callable[[], float]
    """Seconds that never jump."""
    unnamed: bool = field(init=False)
    _admission: Admission = field(init=False)
    alarm: Alarm = field(default_factory=Alarm)
    threads: Executor | None = None
    """What waits for disks beside the work: closes originals, reads small copies back."""
    users: Users = field(default_factory=Users)
    """Who else uses files: those are left alone."""
    make: content.Maker = field(default_factory=content.fastest)
    results: list[Result] = field(default_factory=list)
    """What the journal does not know yet: told after the next sync, or by ``flush``."""
    unsettled: bool = False
    """Whether names were replaced or removed since the last sync."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    _settled: int = 0
    """How many of the results are on the disks."""
    _swappers: dict[int, Swapper] = field(default_factory=dict)
    _closer: Closer = field(init=False)
    _items: list[Item] = field(default_factory=list)
    _given_back: list[tuple[Item, str]] = field(default_factory=list)
    """Items whose names have their originals again, and what is to be told of each. Their copies
    are removed at the end of the batch."""
    _copyist: FileCopier = field(init=False)
    _verifier: Verifier = field(init=False)

    def __post_init__(self) -> None:
        self.unnamed = self.policy.unnamed
        self._closer = Closer(self.sys, self.threads)
        self._copyist = FileCopier(self.sys, self.make)
        direct = self._copyist.buffers if self.policy.direct else None
        self._verifier = Verifier(self.sys, self.make, direct, self.sleep, self.threads)
        self._admission = Admission(
            self.sys, self.directories, self.policy, lambda place: self._swapper(place).abilities
        )
        self.directories.own(self._admission.prefix)

    def run(self, rows: Sequence[FileRow]) -> list[FileOutcome]:
        """Move these files; returns what became of each name.

        Raises StopJobError, UnsupportedError, sqlite3.Error; whatever is raised, every file is
        whole, and what the journal has as unfinished is for ``recovery``.
        """
        self.outcomes, self._items = [], []
        try:
            for row in rows:
                self.service()
                self._attempt_open(row)
            self._spare_users(self.users.recent())
            if not self.unnamed:
                self._commit_names()
            self._copy_all()
            if self._live():
                self._make_durable()
                self._verify_all()
                self._commit_intents()
                self._replace_all()
                self._finish_all()
        finally:
            self._drop_all()
            self._discard_all()
            self.directories.restore_times()
        return self.outcomes

    def drop_tail(self, excess: int) -> int:
        """Leave the last files to do that this process has not begun, of so many bytes at most;
        returns their bytes."""
        taken = 0
        for item in reversed(self._live() if excess else []):
            if taken + item.size > excess:
                break
            if not item.made:
                item.close(self.sys)
                taken += item.size
        return taken

    def release(self) -> None:
        """Close the originals of the last batch: until then their blocks are not free."""
        self._closer.settle()

    def flush(self) -> None:
        """Tell the journal what became of the last batch; the caller has synced ``unsettled``."""
        self.unsettled = False
        self.release()
        if self.results:
            self.journal.record(self.results, directories={})
            self.results.clear()

    def service(self) -> None:
        """Let go of files that another process is waiting to write to; call it often."""
        if not self.alarm.raised:
            return
        self.alarm.raised = False
        for item in [*self._live(), *(item for item, _ in self._given_back)]:
            if item.leased and not self.sys.leased(item.source):
                self._retreat(item, "open for writing")
            elif item.copy_leased and not self.sys.leased(item.copy):
                self.sys.lease(item.copy, fcntl.F_UNLCK)
                item.copy_leased, item.copy_opened = False, True

    # Copying.

    def _copy_all(self) -> None:
        items = self._live()
        front = ReadAhead(iter(items if self.policy.ahead else ()), _unread, self._ask)
        for item in items:
            front.step()
            self._guarded(item, self._copy)

    def _ask(self, item: Item, count: int) -> None:
        self.sys.fadvise(item.source, 0, count, os.POSIX_FADV_WILLNEED)

    def _attempt_open(self, row: FileRow) -> None:
        names = self.journal.names_of(row)
        try:
            self._items.append(self._admission.open(names))
        except (SkipError, MovedError) as error:
            self._report(names, "skipped", str(error))
        except OSError as error:
            self._report(names, *outcome_of(error))

    def _copy(self, item: Item) -> None:
        place = item.places[0]
        born = place.directory.born
        self._create(item, place, metadata.first_mode(item.meta, born))
        original = Original(item.source, item.status, item.meta)
        abilities = self._swapper(place).abilities
        tick = partial(self._tick, item)
        made = self._copyist.fill(item.copy, original, born, abilities, tick)
        (item.digest, item.kept), item.new = made.written, made.inode
        place.directory.born = made.born
        if made.different:
            raise SkipError(f"{made.different} cannot be kept")

    def _create(self, item: Item, place: FileName, mode: int) -> None:
        if self.unnamed:
            try:
                item.copy = self.sys.open_unnamed(place.directory.fd, mode)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                    raise
                self.unnamed = False
                self._commit_names()
            else:
                return
        with self.directories.changing(place.directory):
            place.linked = True
            item.copy = self.sys.open_new(place.directory.fd, place.temp, mode)

    def _commit_names(self) -> None:
        """Commit the names of the temporary files that are going to be created."""
        items = [item for item in self._live() if item.copy < 0]
        self.journal.record((), intents.creating(items), self._begun(items), settled=False)

    def _begun(self, items: Sequence[Item]) -> dict[int, tuple[int, float]]:
        """Times of the directories we are going to change, for the journal."""
        for item in items:
            for place in item.places:
                self.directories.begin(place.directory)
        return intents.directories(items, self.now())

    def _tick(self, item: Item, count: int) -> None:
        self.tick(count)
        self.service()
        if item.done:
            raise SkipError(item.reason or "changed")

    # A batch.

    def _live(self) -> list[Item]:
        return [item for item in self._items if not item.done]

    def _make_durable(self) -> None:
        """Sync in a thread: a writer may be waiting for us to let go of a file.

        Meanwhile the copies are opened again, to be read from the disk instead of the cache.
        """
        places = {item.status.st_dev: item.places[0] for item in self._live()}
        self.unsettled, self._settled = False, len(self.results)
        with ThreadPoolExecutor(1) as beside:
            syncs = [beside.submit(self.sync, each.directory.fd) for each in places.values()]
            for item in self._live():
                self.service()
                self._guarded(item, self._verifier.reopen)
            while wait(syncs, SYNC_LOOK).not_done:
                self.service()
        for sync in syncs:
            if error := sync.exception():
                self.unsettled = True
                raise error

    def _verify_all(self) -> None:
        for item in self._live():
            self._guarded(item, self._verifier.forget)
        with contextlib.closing(self._verifier.ahead(self._live(), self.service)) as items:
            for item in items:
                self._guarded(item, self._verify)

    def _verify(self, item: Item) -> None:
        self._verifier.verify(item, lambda count: self._tick(item, 0))

    def _commit_intents(self) -> None:
        # /proc/locks has the filesystem's device, btrfs and overlays tell stat(2) others: the
        # number alone may keep back a file too many, which a later run moves.
        locked = {inode for _, inode in file_locks.locked_inodes()}
        for item in self._live():
            if item.old in locked:
                self._retreat(item, "locked")
        self._spare_users(self.users.look(self.service))
        items, told = self._live(), self.results[: self._settled]
        self.journal.record(told, intents.swapping(items), self._begun(items))
        del self.results[: self._settled]

    def _replace_all(self) -> None:
        self.unsettled = True
        for item in self._live():
            self.service()
            self._guarded(item, self._replace)

    def _replace(self, item: Item) -> None:
        self._swapper(item.places[0]).replace(item)
        item.replaced = self.clock()

    def _finish_all(self) -> None:
        self._closer.settle()
        self._wait_grace(item for item in self._live() if item.leased)
        self._spare_users(self.users.look(self.service))
        for item in self._live():
            self.service()
            self._guarded(item, self._finish)

    def _finish(self, item: Item) -> None:
        rows = [place.row for place in item.places]
        try:
            self._swapper(item.places[0]).finish(item)
        except UnfinishedError:
            # The journal still has it as unfinished, so that recovery removes the rest.
            self.outcomes += [FileOutcome(row, "moved", 0, None) for row in rows]
        else:
            self._report(rows, "moved", None, item.size)
        item.close(self.sys, self._closer.close)

    def _wait_grace(self, items: Iterable[Item]) -> None:
        """Wait until GRACE after the last exchange of any of these."""
        replaced = [item.replaced for item in items]
        if replaced and (left := GRACE - (self.clock() - max(replaced))) > 0:
            self.sleep(left)
        self.service()

    # Endings.

    def _swapper(self, place: FileName) -> Swapper:
        device = place.directory.dev
        if device not in self._swappers:
            races = self.policy.accept_races
            self._swappers[device] = Swapper(self.sys, self.directories, Abilities(), races)
        return self._swappers[device]

    def _guarded(self, item: Item, step: Callable[[Item], None]) -> None:
        """Run one step of one item; what goes wrong with it ends that item only."""
        if item.done:
            return
        try:
            step(item)
        except ConflictError as error:
            self._keep_both(item, str(error))
        except SkipError as error:
            self._retreat(item, str(error))
        except (ChangedError, FileNotFoundError):
            self._retreat(item, "changed")
        except OSError as error:
            outcome, reason = outcome_of(error)
            self._retreat(item, reason, outcome)

    def _spare_users(self, look: FilesInUse) -> None:
        """Leave alone what others use, and both versions where they use both."""
        for item in self._live():
            device = item.status.st_dev
            reason = look.user(device, item.old)
            for place in item.places if look.layers else ():
                reason = reason or look.inside_overlay(place.directory.fd)
            if reason and item.in_place and look.user(device, item.new):
                self._keep_both(item, "both in use")
            elif reason:
                self._retreat(item, reason)

    def _retreat(self, item: Item, reason: str, outcome: str = "skipped") -> None:
        """Leave the original as it was, and forget the copy."""
        if item.done:
            return
        item.reason = reason
        self.unsettled = True
        with self._ending(item):
            self._swapper(item.places[0]).undo(item)
            if item.seen:
                self._give_back(item, outcome)
            else:
                self._discard(item, outcome)

    def _give_back(self, item: Item, outcome: str) -> None:
        """Let go of an original that has its names again; its copy may be wanted for a moment."""
        item.replaced = self.clock()
        item.let_go(self.sys)
        self._given_back.append((item, outcome))

    def _discard(self, item: Item, outcome: str) -> None:
        self._swapper(item.places[0]).discard(item)
        item.close(self.sys)
        self._report([place.row for place in item.places], outcome, item.reason)

    @contextlib.contextmanager
    def _ending(self, item: Item) -> Iterator[None]:
        """What goes wrong as a file is taken back leaves both versions, or all to recovery."""
        try:
            yield
        except ConflictError as error:
            self._keep_both(item, str(error))
        except OSError as error:
            item.close(self.sys)
            reason = f"{item.reason}; {error.strerror}"
            self.outcomes += [FileOutcome(p.row, "failed", 0, reason) for p in item.places]

    def _discard_all(self) -> None:
        """Remove the copies of originals that have their names again, those that nobody uses."""
        self._wait_grace(item for item, _ in self._given_back)
        look = self.users.look(self.service) if self._given_back else None
        while look and self._given_back:
            item, outcome = self._given_back.pop()
            with self._ending(item):
                if used := look.user(item.status.st_dev, item.new):
                    raise ConflictError(used)
                self._discard(item, outcome)

    def _keep_both(self, item: Item, why: str) -> None:
        """Two processes use two versions: neither is removed, and the operator is told."""
        item.close(self.sys)
        for place in item.places:
            kept = place.kept or place.temp
            reason = f"{why}; the other version is {os.fsdecode(kept)}"
            self.results.append(Result(place.row.number, State.FAILED, reason, kept))
            self.outcomes.append(FileOutcome(place.row, "failed", 0, reason))

    def _drop_all(self) -> None:
        """Forget whatever is not in place; the journal still has it to do."""
        for item in self._live():
            if not item.in_place and not item.seen:
                # What cannot be undone now stays in the journal for recovery.
                with contextlib.suppress(OSError, ConflictError):
                    self._swapper(item.places[0]).discard(item)
            item.close(self.sys)

    def _report(
        self, names: Sequence[FileRow], outcome: str, reason: str | None, size: int = 0
    ) -> None:
        for row in names:
            self.results.append(Result(row.number, STATES[outcome], reason))
            self.outcomes.append(FileOutcome(row, outcome, size, reason))
            size = 0


def _unread(item: Item) -> int:
    """Bytes of content that are still to be read."""
    return 0 if item.done else item.size
