"""Recovery after a crash, from the journal alone.

For every file whose intent was committed, look at what its names hold now. A name that holds the
original keeps it; a name that holds the copy keeps that, unless the original was changed since, or
is in use. What loses its last name has been read before: a copy that is as it was made, or an
original that is as it was copied, even if its copy was written to since. Both are kept where
neither is so, and where the copy has other content but the original's size and time: a write, or a
loss of the disk's. Only a copy that the journal calls unfinished is removed unread: it never had a
name of the user's.

If nobody else was at work, a crash leaves one of these, by the steps of ``CopyPipeline.run``:

========  ========  ==================  ==========================================================
journal   its name  its temporary name  the crash came, and what is done
========  ========  ==================  ==========================================================
PENDING   original  nothing             before the names were committed: nothing to do
CREATING  original  nothing or a copy,  before the intent was committed: the copy is removed
                    whole or not
SWAPPING  original  the whole copy,     before the exchange, or a power cut undid it: the same; a
                    or nothing          further name of a file gets the copy only as its turn comes
SWAPPING  the copy  the original        after the exchange: the original is removed; one that was
                                        changed or is in use gets its name back
SWAPPING  the copy  nothing             after the original was removed: moved
MOVED     the copy  nothing             after the sync that followed
========  ========  ==================  ==========================================================

A file with several names has a row for each from SWAPPING on, and a power cut may leave each in
another state; if one has the copy for good, the others get it, too. Where names can't be exchanged,
the original waits at the temporary name with KEEP_SUFFIX. Any other state was made by other
processes: their files get their names back, or both versions are kept.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine import content, swap
from zconsole.rebalance.engine.directories import OURS, Directories, MovedError, OpenDirectory
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.item import KEEP_SUFFIX, StopJobError, is_ours, own_prefix
from zconsole.rebalance.engine.journal import (
    UNSETTLED,
    FileRow,
    Journal,
    Result,
    State,
    again,
)
from zconsole.rebalance.engine.link_names import LinkNames, NameJoiner, ReplacedNowError
from zconsole.rebalance.engine.swap import GRACE, RENAMED
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.versions import (
    LeasedError,
    Version,
    Versions,
    is_as_copied,
    is_copy,
    is_doubtful,
    replaceable,
)

CHANGING_UNTIL = "changing_until"
"""Key in the journal: the time up to which our changes of directories may be (epoch seconds)."""
FOREIGN = 30.0
"""Seconds after CHANGING_UNTIL in which a change counts as ours if a power cut followed.

The cut may have undone the last updates of that key. Later changes are another process's.
"""
Verdict = tuple[State, str | None] | None
"""State of a file and the reason; None if they are decided when its copy is removed."""


class GivenBack(NamedTuple):
    """A file whose name has the original again; the copy waits at the temporary name for GRACE."""

    row: FileRow
    copy: Version
    state: State
    """State of the file once the copy is removed."""
    reason: str | None


@dataclass(slots=True)
class Recovery:
    """Settles files left unfinished by a crash.

    ``tick`` gets the bytes read. It may wait, or raise StopJobError: the next recovery goes on.
    """

    sys: Sys
    journal: Journal
    directories: Directories
    tick: Callable[[int], None]
    now: Callable[[], float]
    """Epoch seconds."""
    booted: Callable[[], float]
    """When this machine was started, epoch seconds."""
    sync: Callable[[], None]
    """Makes everything done so far durable: a power cut must not bring back a name that the journal
    no longer has."""
    sleep: Callable[[float], None]
    users: Users = field(default_factory=Users)
    _results: list[Result] = field(default_factory=list)
    _links: LinkNames = field(init=False)
    _versions: Versions = field(init=False)
    _given_back: list[GivenBack] = field(default_factory=list)
    _waiting: list[FileRow] = field(default_factory=list)
    """Files whose originals may be removed after GRACE."""
    _joiner: NameJoiner = field(init=False)
    _unreadable: dict[int, MovedError | OSError] = field(default_factory=dict)
    """Directories (numbers) that can't be opened or are gone, with the errors."""
    _failed: OSError | StopJobError | None = None
    """Raised once everything else is settled."""

    def __post_init__(self) -> None:
        self._links = LinkNames(self.sys, self.journal, self.directories)
        self._versions = Versions(self.sys, self.users, self.tick, self.sleep)
        self._joiner = NameJoiner(self.sys, self.directories, self._links, self._versions)

    def run(self) -> int:
        """Settle every unfinished file; return how many there were.

        Raises sqlite3.DatabaseError, before anything is touched, for a journal with a temporary
        name that is not ours to remove, or an impossible digest; OSError, after all that can be
        settled, if a filesystem is read-only or the time of a directory can't be restored; and
        StopJobError.
        """
        rows = self.journal.unfinished()
        for row in rows:
            if not is_ours(row.temp, row.number):
                raise sqlite3.DatabaseError(f"{row.temp!r} is not a temporary name of a job")
            if len(row.digest or bytes(32)) not in content.MAKERS:
                raise sqlite3.DatabaseError(f"{row.digest!r} is not a digest")
        self._links.add(rows)
        for row in rows:
            self.directories.own(own_prefix(row.temp or b""))
        # Note the times before any name is changed: recovery itself may be killed.
        times = self._wanted_times(rows)
        self.journal.record([], directories=times)
        if rows:
            self.sleep(GRACE)  # an engine of this process may have exchanged names just now
        self._settle_all(rows)
        self._restore_times()
        # Sync before the results: the journal must not forget a file that a power cut brings back.
        try:
            if rows:
                self.sync()
        except (ZconsoleError, OSError):
            if self._failed is None:
                raise
        else:
            self.journal.record(self._whole_files(rows))
        self.directories.close()
        if self._failed is not None:
            raise self._failed
        return len(rows)

    def _settle_all(self, rows: Sequence[FileRow]) -> None:
        # Names with the original last: before they are queued again, they may yet have to get the
        # copy, if that was changed under another name.
        try:
            for row in sorted(rows, key=self._links.has_original):
                self.tick(0)
                self._settle(row, self._settle_in)
            self._settle_waiting()
            self._remove_given_back()
        except StopJobError as error:
            self._failed = error

    def _whole_files(self, rows: Sequence[FileRow]) -> list[Result]:
        """Return the results of files all of whose names have one.

        A name can't be settled later without what the journal says of the others: if one of them
        could not be settled, none of the file's counts as settled.
        """
        results, key = {result.number: result for result in self._results}, self._links.key
        left = {key(row) for row in rows if row.number not in results}
        unsettled = {
            key(row): result.reason
            for row in rows
            if (result := results.get(row.number)) and (result.reason or "").endswith(UNSETTLED)
        }
        return [
            Result(row.number, State.FAILED, unsettled[key(row)], row.temp)
            if key(row) in unsettled
            else results[row.number]
            for row in rows
            if key(row) not in left
        ]

    def _restore_times(self) -> None:
        try:
            self.directories.restore_times()
        except OSError as error:
            if error.errno != errno.EROFS:  # read-only by now: the times have to stay
                self._failed = self._failed or error

    def _settle(self, row: FileRow, settle: Callable[[OpenDirectory, FileRow], Verdict]) -> None:
        try:
            # Names of one file are settled together: a name that can't be read may have the copy.
            for name in self._links.of(row):
                if (unreadable := self._unreadable.get(name.directory)) is not None:
                    raise unreadable
            verdict = settle(self.directories.get(row.directory), row)
        except ReplacedNowError:
            self._waiting.append(row)
            return
        except LeasedError:
            verdict = State.FAILED, f"leased by another process{UNSETTLED}"
        except (MovedError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EROFS:
                self._failed = error
                return  # the file stays unfinished until the filesystem can be changed again
            word = error.strerror if isinstance(error, OSError) else str(error)
            verdict = State.FAILED, f"{word}; {os.fsdecode(row.temp or b'')} may be left{UNSETTLED}"
        if verdict is not None:
            state, reason = verdict
            kept = row.temp if state is State.FAILED else None
            self._results.append(Result(row.number, state, reason, kept))

    def _settle_waiting(self) -> None:
        """Settle the files whose originals had to be kept for GRACE, unless they are used by now.

        A file stays unfinished if another of its names is replaced meanwhile.
        """
        if self._waiting:
            self.sleep(GRACE)
            self.users.look()
        rows, self._waiting = self._waiting, []
        self._joiner.replaced.clear()
        for row in rows:
            self._settle(row, self._settle_in)

    def _remove_given_back(self) -> None:
        """Remove the copies of originals that got their names back, unless used by now."""
        if self._given_back:
            self.sleep(GRACE)
            self.users.look()
        for given in self._given_back:
            self._settle(given.row, partial(self._remove_copy, given))

    def _remove_copy(self, given: GivenBack, directory: OpenDirectory, row: FileRow) -> Verdict:
        temp = row.temp or b""
        if self._links.inode(directory.fd, temp) == row.new:
            with self._versions.version(directory.fd, row, temp) as copy:
                same = copy.digest == given.copy.digest and copy.meta.same(given.copy.meta)
                if not same or not self._is_dropped(copy, row):
                    return State.FAILED, self._other(copy, row, temp)
                self._unlink_copy(directory, row)
        return given.state, given.reason

    def _settle_in(self, directory: OpenDirectory, row: FileRow) -> Verdict:
        """Decide on a file by the inodes at its name and at our two temporary names."""
        temp, fd = row.temp or b"", directory.fd
        keep = temp + KEEP_SUFFIX
        if row.state is State.CREATING:
            # If the original is there, others have linked it to this name, and we leave it.
            if self._links.inode(fd, temp) not in (None, row.old):
                self._unlink(directory, temp)
            return again(row).state, None
        self._joiner.join(directory, row)
        at_name, at_temp, at_keep = (self._links.inode(fd, n) for n in (row.name, temp, keep))
        if at_keep is not None and at_keep in (at_name, at_temp):
            self._joiner.unlink_original(directory, row, keep)
        elif at_keep is not None and at_temp is None:
            # From here on as after an exchange: names may be exchangeable by now, or the file may
            # be another process's, to be handed back.
            with self.directories.changing(directory):
                self.sys.rename(fd, keep, temp)
            at_temp = at_keep
        if at_temp not in (None, row.old, row.new):
            return self._hand_back(directory, row, at_name)
        return self._settle_swapping(directory, row, at_name, at_temp)

    def _settle_swapping(
        self, directory: OpenDirectory, row: FileRow, at_name: int | None, at_temp: int | None
    ) -> Verdict:
        temp, fd, spoiled = row.temp or b"", directory.fd, None
        if at_temp is not None and at_temp == row.new:
            if at_name != row.new:  # others may have renamed the copy from another name to this one
                spoiled = self._spoiled(fd, row, row.name if at_name == row.old else None)
            if not spoiled:
                self._unlink_copy(directory, row)
                if self._links.inode(fd, temp + KEEP_SUFFIX) is not None:
                    return self._settle_in(directory, row)  # the temporary name is free for it
        if at_name == row.old:
            if at_temp == row.old:  # others have linked it over the copy
                self._joiner.unlink_original(directory, row, temp)
            return self._settle_original(row, spoiled)
        if spoiled:
            keep = temp + KEEP_SUFFIX
            kept = f" and {os.fsdecode(keep)}" if self._links.inode(fd, keep) is not None else ""
            return State.FAILED, f"{spoiled}{kept}"
        original = temp if at_temp == row.old else None
        return self._settle_replaced(directory, row, at_name, original)

    def _settle_original(self, row: FileRow, spoiled: str | None) -> Verdict:
        """Settle a file whose name holds the original."""
        if spoiled is None and self._links.has_moved(row):  # others have removed names of ours
            spoiled = "no longer one file with its other names"
        return (State.FAILED, spoiled) if spoiled else (again(row).state, None)

    def _settle_replaced(
        self, directory: OpenDirectory, row: FileRow, at_name: int | None, original: bytes | None
    ) -> Verdict:
        """Settle a name without the original, which is at ``original``, or gone (None)."""
        if original is None:
            return (State.MOVED, None) if at_name == row.new else (State.SKIPPED, "changed")
        if at_name == row.new:
            return self._choose(directory, row, original)
        if renamed := self.sys.name_of(directory.fd, row.new or 0, self._links.ours(row)):
            return self._follow(directory, row, original, renamed)
        return self._let_go(directory, row, original)

    def _hand_back(self, directory: OpenDirectory, row: FileRow, at_name: int | None) -> Verdict:
        """Give the name back to a file of another process, which is at our temporary name.

        That process put it at the name just before the exchange.
        """
        temp = row.temp or b""
        if at_name == row.new:
            with self._versions.version(directory.fd, row, row.name) as copy:
                unwanted = is_as_copied(copy, row) and self._is_dropped(copy, row)
                changed = GivenBack(row, copy, State.SKIPPED, "changed")
                if unwanted and self._put_back(directory, temp, changed):
                    return None
        left = [n for n in (temp, temp + KEEP_SUFFIX) if self._links.inode(directory.fd, n)]
        return State.FAILED, _other(b" and ".join(left), "replaced")

    def _follow(
        self, directory: OpenDirectory, row: FileRow, original: bytes, renamed: bytes
    ) -> Verdict:
        """Settle a file whose copy somebody renamed: keep the copy if the original is not needed.

        The copy has a name that the journal does not know, so the original never gets that.
        """
        verdict = self._choose(directory, row._replace(name=renamed), original)
        if verdict == (State.MOVED, None):
            return State.SKIPPED, RENAMED
        changed = State.SKIPPED, "changed"
        return changed if verdict == changed else (State.FAILED, _other(original, "renamed"))

    def _let_go(self, directory: OpenDirectory, row: FileRow, original: bytes) -> Verdict:
        """Settle a file whose copy others replaced, removed or moved.

        The original is removed if it still is as it was copied, and nobody uses it.
        """
        with self._versions.version(directory.fd, row, original) as old:
            alone = not self._links.has_other_names(old.fd, row) and not self._versions.in_use(old)
            if alone and is_as_copied(old, row) and self._versions.quiet(old):
                self._joiner.unlink_original(directory, row, original)
                return State.SKIPPED, "changed"
        return State.FAILED, _other(original)

    def _choose(self, directory: OpenDirectory, row: FileRow, original: bytes) -> Verdict:
        """Settle a file whose copy has the name and whose original exists.

        The version that was written to is kept, or both.
        """
        fd = directory.fd
        with (
            self._versions.version(fd, row, original) as old,
            self._versions.version(fd, row, row.name) as new,
        ):
            if is_copy(self.sys, new.fd, row):
                return self._choose_of(directory, row, original, old, new)
        return self._let_go(directory, row, original)

    def _choose_of(
        self, directory: OpenDirectory, row: FileRow, original: bytes, old: Version, new: Version
    ) -> Verdict:
        versions = self._versions
        if is_doubtful(new, old, row):
            return State.FAILED, self._other(new, row, original, "damaged or written to")
        # Is the original unneeded, that is, is nothing lost without it?
        unneeded = replaceable(old, new, row) and versions.quiet(old)
        used = unneeded and versions.in_use(old, directory=directory.fd)
        unneeded = unneeded and not used
        # If the copy must stay, as another name has it for good or somebody uses or changed it,
        # the file's other names must get it, too.
        stays = unneeded and self._links.has_moved(row)
        if stays or (unneeded and not (is_as_copied(new, row) and self._is_dropped(new, row))):
            self._joiner.go_on(row, new)
        if unneeded and not self._links.has_other_names(old.fd, row) and versions.quiet(old):
            self._joiner.unlink_original(directory, row, original)
            self._links.moved(row)
            return State.MOVED, None
        # Otherwise give the original its name back, if nothing is lost without the copy.
        unwanted = replaceable(new, old, row) and self._is_dropped(new, row)
        unwanted = unwanted and not self._links.has_moved(row)  # they would be two files
        queued = GivenBack(row, new, again(row).state, None)
        if unwanted and self._put_back(directory, original, queued):
            self._links.originals_changed(row, -1)
            return None
        return State.FAILED, self._other(new, row, original, "used" if used else "written to")

    def _spoiled(self, fd: int, row: FileRow, original: bytes | None) -> str | None:
        """Return a reason if something would be lost with a copy at its temporary name, or None.

        The copy may have had the file's name for a while, and been left there by an engine that
        found it changed.
        """
        temp = row.temp or b""
        with self._versions.version(fd, row, temp) as new:
            spare = self._is_dropped(new, row)
            if spare and not is_as_copied(new, row):
                spare = False
                if original is not None:  # both may have been changed alike, as by chown -R
                    with self._versions.version(fd, row, original) as old:
                        spare = replaceable(new, old, row)
            return None if spare else self._other(new, row, temp)

    def _is_dropped(self, copy: Version, row: FileRow) -> bool:
        """Whether nobody uses or changes a copy, and it has no names but those of the journal."""
        alone = self._links.is_copy_alone(copy.fd, row)
        return alone and self._versions.quiet(copy) and not self._versions.in_use(copy)

    def _other(self, copy: Version, row: FileRow, name: bytes, what: str = "written to") -> str:
        """Return the reason for keeping two versions, with the name of the other."""
        linked = not self._links.is_copy_alone(copy.fd, row)
        return _other(name, "linked" if linked else what)

    def _unlink(self, directory: OpenDirectory, name: bytes) -> None:
        with self.directories.changing(directory):
            self.sys.unlink(directory.fd, name)

    def _unlink_copy(self, directory: OpenDirectory, row: FileRow) -> None:
        self._unlink(directory, row.temp or b"")
        self._links.copies_changed(row, -1)

    def _put_back(self, directory: OpenDirectory, temp: bytes, given: GivenBack) -> bool:
        row = given.row
        with self.directories.changing(directory):
            back = swap.put(self.sys, directory.fd, temp, row.name, row.new)
        if back:
            self._joiner.settled.add(self._links.key(row))
            self._given_back.append(given)
            if self._links.inode(directory.fd, row.temp or b"") != row.new:
                self._links.copies_changed(row, -1)  # names cannot be exchanged
        return back

    def _wanted_times(self, rows: Sequence[FileRow]) -> dict[int, tuple[int, float]]:
        """Return what ``Journal.record`` notes of each directory we work in, by number."""
        noted = self.journal.open_directories()
        until = self.journal.get(CHANGING_UNTIL, float) or 0.0
        wanted = {}
        for number in {*noted, *(row.directory for row in rows)}:
            try:
                directory = self.directories.get(number)
                self.directories.begin(directory)
            except (MovedError, OSError) as error:
                self._unreadable[number] = error
                if number in noted:
                    wanted[number] = noted[number]
                continue
            if number in noted:
                mtime_ns, since = noted[number]
                if directory.mtime_ns / 1e9 <= self._last_change(max(since, until)):
                    self.directories.take_up(directory, mtime_ns)
            if not directory.foreign:
                wanted[number] = directory.mtime_ns, self.now()
        self.journal.keep_noted(self._unreadable)
        return wanted

    def _last_change(self, until: float) -> float:
        """Return the latest time that a change of ours can have, if the journal says ``until``."""
        if until > self.now() + OURS:  # the clock was set back: changes since may be another's
            return 0.0
        booted = self.booted()
        return min(until + FOREIGN, booted) if until < booted else until


def _other(name: bytes, what: str = "written to") -> str:
    return f"{what} during the move; the other version is {os.fsdecode(name)}"
