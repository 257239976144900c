"""Tidying up after a death, from the journal alone.

For every file whose intent was committed, look at what its names hold now. A name that holds the
original keeps it; a name that holds the copy keeps that, unless the original was written to
since, or is in use. Nothing is removed that is neither our copy nor proven to equal what stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from zconsole.rebalance.engine import content, metadata, swap
from zconsole.rebalance.engine.directories import Directories, MovedError, OpenDirectory
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.item import KEEP_SUFFIX, is_ours, own_prefix
from zconsole.rebalance.engine.journal import UNSETTLED, FileRow, Journal, Result, State
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.swap import GRACE, RENAMED
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

CHANGING_UNTIL = "changing_until"
"""In the journal: our changes of directories have times up to this one (epoch seconds)."""
FOREIGN = 30.0
"""A directory changed this many seconds before a power cut was changed by somebody else: the cut
may have taken back what the journal was told last."""
PATIENCE, PAUSE = 10.0, 0.05
"""Seconds to wait for leases of other processes, all in all and at a time."""
Key = tuple[int, int | None]
"""Device and inode of an original."""
Verdict = tuple[State, str | None] | None
"""What became of a file and why; None where that is known when its copy is removed."""


@dataclass(slots=True)
class Version:
    """One of the two versions of a file, as found under some name; open, leased if possible."""

    fd: int
    digest: bytes
    meta: metadata.Metadata
    ctime_ns: int
    leased: bool
    """False while another process has it open for writing."""


class GivenBack(NamedTuple):
    """A file whose name has the original again; the copy is at the temporary name for GRACE."""

    row: FileRow
    copy: Version
    state: State
    reason: str | None


class LeasedError(Exception):
    """Another process has leased a file and does not let go of it."""


@dataclass(slots=True)
class Recovery:
    """Settles what a death left. ``tick`` may wait; it is called with bytes read."""

    sys: Sys
    journal: Journal
    directories: Directories
    tick: Callable[[int], None]
    now: Callable[[], float]
    """Epoch seconds."""
    booted: Callable[[], float]
    """When this machine was started, epoch seconds."""
    sync: Callable[[], None]
    """Makes everything done so far durable: the next power cut must not bring back a name that
    the journal has forgotten."""
    sleep: Callable[[float], None]
    users: Users = field(default_factory=Users)
    _patience: float = PATIENCE
    _results: list[Result] = field(default_factory=list)
    _names: Mapping[Key, Sequence[FileRow]] = field(default_factory=dict)
    """The unfinished names of every inode, by device and number of the original."""
    _copies: dict[Key, int] = field(default_factory=dict)
    """How many of its names and temporary names hold the copy; those that were asked for."""
    _given_back: list[GivenBack] = field(default_factory=list)

    def run(self) -> int:
        """Settle every unfinished file; returns how many there were.

        Raises OSError; sqlite3.DatabaseError, before anything is touched, for a journal that gives
        a file a temporary name that is not ours to remove.
        """
        rows = self.journal.unfinished()
        for row in rows:
            if not is_ours(row.temp, row.number):
                raise sqlite3.DatabaseError(f"{row.temp!r} is not a temporary name of a job")
            if len(row.digest or bytes(32)) not in content.MAKERS:
                raise sqlite3.DatabaseError(f"{row.digest!r} is not a digest")
        self._names = self._by_inode(rows)
        for row in rows:
            self.directories.own(own_prefix(row.temp or b""))
        times = self._wanted_times(rows)
        self.journal.record([], directories={n: (t, self.now()) for n, t in times.items()})
        if rows:
            self.sleep(GRACE)  # an engine of this process may have exchanged names just now
        for row in rows:
            self._settle(row, self._settle_in)
        self._remove_given_back()
        self._restore_times()
        if rows:
            self.sync()
        self.journal.record(self._results)
        self.directories.close()
        return len(rows)

    def _restore_times(self) -> None:
        try:
            self.directories.restore_times()
        except OSError as error:
            if error.errno != errno.EROFS:  # nothing can be changed any more
                raise

    def _settle(self, row: FileRow, settle: Callable[[OpenDirectory, FileRow], Verdict]) -> None:
        try:
            verdict = settle(self.directories.get(row.directory), row)
        except LeasedError:
            verdict = State.FAILED, f"leased by another process{UNSETTLED}"
        except (MovedError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EROFS:
                raise  # what is there stays unfinished until it can be changed again
            word = error.strerror if isinstance(error, OSError) else str(error)
            verdict = State.FAILED, f"{word}; {os.fsdecode(row.temp or b'')} may be left{UNSETTLED}"
        if verdict is not None:
            state, reason = verdict
            kept = row.temp if state is State.FAILED else None
            self._results.append(Result(row.number, state, reason, kept))

    def _remove_given_back(self) -> None:
        """Remove the copies of what was given back, unless somebody has come for one since."""
        if self._given_back:
            self.sleep(GRACE)
            self.users.look()
        for given in self._given_back:
            self._settle(given.row, partial(self._remove_copy, given))

    def _remove_copy(self, given: GivenBack, directory: OpenDirectory, row: FileRow) -> Verdict:
        temp = row.temp or b""
        if self._inode(directory.fd, temp) == row.new:
            with self._version(directory.fd, temp, _maker(row)) as copy:
                same = copy.digest == given.copy.digest and copy.meta.same(given.copy.meta)
                if not same or not self._is_dropped(copy, row):
                    return State.FAILED, self._other(copy, row, temp)
                self._unlink_copy(directory, row)
        return given.state, given.reason

    def _settle_in(self, directory: OpenDirectory, row: FileRow) -> Verdict:
        temp, fd = row.temp or b"", directory.fd
        keep = temp + KEEP_SUFFIX
        at_name, at_temp, at_keep = (self._inode(fd, n) for n in (row.name, temp, keep))
        if row.state is State.CREATING:
            if at_temp not in (None, row.old):
                self._unlink(directory, temp)
            return self._again(row)
        if at_temp not in (None, row.old, row.new):
            return self._hand_back(directory, row, at_name)
        if at_name != row.new and at_temp is not None and at_temp == row.new:
            original = row.name if at_name == row.old else None
            if spoiled := self._spoiled(fd, row, original):
                return State.FAILED, spoiled
            self._unlink_copy(directory, row)
        if at_name == row.old:
            self._discard(directory, keep, at_keep, row.old)
            return self._again(row)
        original = temp if at_temp == row.old else keep if at_keep == row.old else None
        if original is None:
            return (State.MOVED, None) if at_name == row.new else (State.SKIPPED, "changed")
        if at_name == row.new:
            return self._choose(directory, row, original)
        if renamed := self.sys.name_of(fd, row.new or 0, self._ours_in(row)):
            return self._follow(directory, row, original, renamed)
        return self._let_go(directory, row, original)

    def _hand_back(self, directory: OpenDirectory, row: FileRow, at_name: int | None) -> Verdict:
        """A file of others, put at the name just before the exchange, is where ours was."""
        temp = row.temp or b""
        if at_name == row.new:
            with self._version(directory.fd, row.name, _maker(row)) as copy:
                unwanted = copy.digest == row.digest and self._is_dropped(copy, row)
                changed = GivenBack(row, copy, State.SKIPPED, "changed")
                if unwanted and self._put_back(directory, temp, changed):
                    return None
        return State.FAILED, f"replaced during the move; the other version is {os.fsdecode(temp)}"

    def _follow(
        self, directory: OpenDirectory, row: FileRow, original: bytes, renamed: bytes
    ) -> Verdict:
        """Somebody has renamed our copy: the new name gets what the old one would have."""
        before = len(self._given_back)
        verdict = self._choose(directory, row._replace(name=renamed), original)
        self._given_back[before:] = [
            each._replace(row=row, state=State.SKIPPED, reason=RENAMED)
            for each in self._given_back[before:]
        ]
        return (
            verdict if verdict is None or verdict[0] is State.FAILED else (State.SKIPPED, RENAMED)
        )

    def _let_go(self, directory: OpenDirectory, row: FileRow, original: bytes) -> Verdict:
        """Our copy was replaced, removed or moved: the original goes if it is what was copied."""
        with self._version(directory.fd, original, _maker(row)) as old:
            alone = not self._has_other_names(old, row) and not self._in_use(old)
            if alone and old.digest == row.digest and self._quiet(old):
                self._unlink(directory, original)
                return State.SKIPPED, "changed"
        return State.FAILED, _other(original)

    def _again(self, row: FileRow) -> tuple[State, str | None]:
        """Back into the queue; a name that only follows another waits for that one."""
        first = self.journal.is_first(row)
        return (State.PENDING if first else State.LINKED), None

    def _choose(self, directory: OpenDirectory, row: FileRow, original: bytes) -> Verdict:
        """Both versions exist and the copy has the name: keep the one that was written to."""
        make, fd = _maker(row), directory.fd
        with self._version(fd, original, make) as old, self._version(fd, row.name, make) as new:
            if self.sys.fstat(new.fd).st_ino != row.new:
                return State.FAILED, _other(original)
            unneeded = _replaceable(old, new, row.digest) or self._is_let_go(old, row)
            unneeded = unneeded and not self._in_use(old, directory=fd) and self._quiet(old)
            if unneeded and not self._is_ours_alone(new.fd, row):
                self._go_on(row, new)
            if unneeded and not self._has_other_names(old, row) and self._quiet(old):
                self._unlink(directory, original)
                return State.MOVED, None
            unwanted = _replaceable(new, old, row.digest) and self._is_dropped(new, row)
            again = GivenBack(row, new, *self._again(row))
            if unwanted and self._put_back(directory, original, again):
                return None
            return State.FAILED, self._other(new, row, original)

    def _go_on(self, row: FileRow, copy: Version) -> None:
        """Replace the names of an original that still have it: somebody has made a link to the
        copy, which would stay a file of its own if the others were given back."""
        if any(self._key(given.row) == self._key(row) for given in self._given_back):
            return
        for other in self._names[self._key(row)]:
            directory = self.directories.get(other.directory)
            temp, fd = other.temp or b"", directory.fd
            if self._inode(fd, other.name) != row.old:
                continue
            with self.directories.changing(directory):
                if self._inode(fd, temp) is None:
                    self.sys.link_fd(copy.fd, fd, temp)
                    self._copies[self._key(row)] += 1
                if self._inode(fd, temp) != row.new:
                    return
                self.sys.exchange(fd, temp, other.name)
                if self._inode(fd, temp) != row.old:
                    self.sys.exchange(fd, temp, other.name)
                    return

    def _is_let_go(self, original: Version, row: FileRow) -> bool:
        """Whether an original has lost one of several names for its copy already: with it went what
        its ctime told, and the others follow."""
        fewer = self.sys.fstat(original.fd).st_nlink < len(self._names[self._key(row)])
        return fewer and original.leased and original.digest == row.digest

    def _spoiled(self, fd: int, row: FileRow, original: bytes | None) -> str | None:
        """What would be lost with a copy at its temporary name; None where that is nothing. It may
        have had the name for a while, and be left by an engine that found it changed."""
        temp = row.temp or b""
        with self._opened(fd, temp) as copy:
            if original is not None and self._is_ours_alone(copy, row) and self._lease(copy):
                with self._opened(fd, original) as other:
                    metas = [metadata.read(self.sys, f, Abilities())[0] for f in (copy, other)]
                if metas[0].same(metas[1]):
                    return None
        make = _maker(row)
        with self._version(fd, temp, make) as new:
            spare = self._is_dropped(new, row) and new.digest == row.digest
            if original is not None:
                with self._version(fd, original, make) as old:
                    spare = spare and _replaceable(new, old, row.digest)
            return None if spare else self._other(new, row, temp)

    def _is_dropped(self, copy: Version, row: FileRow) -> bool:
        """Whether nobody uses a copy, nor has given it names besides those of the journal."""
        alone = self._is_ours_alone(copy.fd, row)
        return alone and self._quiet(copy) and not self._in_use(copy)

    def _is_ours_alone(self, copy: int, row: FileRow) -> bool:
        key = self._key(row)
        if key not in self._copies:
            self._copies[key] = sum(self._holds(each, row.new) for each in self._names[key])
        return self.sys.fstat(copy).st_nlink <= self._copies[key]

    def _in_use(self, version: Version, directory: int | None = None) -> bool:
        """Whether others hold a version or have it mounted, or see its directory in an overlay."""
        look = self.users.recent()
        status = self.sys.fstat(version.fd)
        used = look.user(status.st_dev, status.st_ino)
        if used is None and directory is not None:
            used = look.inside_overlay(directory)
        return used is not None

    @contextlib.contextmanager
    def _version(self, fd: int, name: bytes, make: content.Maker) -> Iterator[Version]:
        with self._opened(fd, name) as file:
            leased = self._lease(file)
            meta, status = metadata.read(self.sys, file, Abilities())
            digest = content.digest(self.sys, file, status.st_size, self.tick, make)
            yield Version(file, digest, meta, status.st_ctime_ns, leased)

    @contextlib.contextmanager
    def _opened(self, fd: int, name: bytes) -> Iterator[int]:
        file = self._unleased(fd, name)
        try:
            yield file
        finally:
            self.sys.close(file)

    def _unleased(self, fd: int, name: bytes) -> int:
        """A file, open; another process may have to let go of its write lease first, which our
        asking makes the kernel tell it. Raises LeasedError, OSError."""
        while True:
            try:
                return self.sys.open(name, SOURCE | os.O_NOATIME, dir_fd=fd)
            except BlockingIOError:
                if self._patience <= 0:
                    raise LeasedError from None
            self._patience -= PAUSE
            self.sleep(PAUSE)
            self.tick(0)

    def _lease(self, fd: int) -> bool:
        """False only when somebody has the file open for writing."""
        try:
            self.sys.lease(fd, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno != errno.EAGAIN
        return True

    def _quiet(self, version: Version) -> bool:
        """Whether nobody has opened this version for writing since it was read."""
        if not version.leased:
            return False
        return self._lease(version.fd)

    def _has_other_names(self, original: Version, row: FileRow) -> bool:
        """Whether an original has names besides those we keep it by: of those it had several of,
        not all were replaced, or one had been renamed."""
        links = self.sys.fstat(original.fd).st_nlink
        names = self._names[self._key(row)]
        spare = len(names) - links
        for name in reversed(names) if links > 1 else ():  # the last were replaced last
            spare -= not self._keeps(name)
            if spare < 0:
                return True
        return False

    def _by_inode(self, rows: Sequence[FileRow]) -> Mapping[Key, list[FileRow]]:
        names = defaultdict[Key, list[FileRow]](list)
        for row in rows:
            names[self._key(row)].append(row)
        return names

    def _keeps(self, row: FileRow) -> bool:
        """Whether one of our names beside this one holds the original."""
        temp = row.temp or b""
        with contextlib.suppress(MovedError, OSError):
            fd = self.directories.get(row.directory).fd
            return row.old in (self._inode(fd, temp), self._inode(fd, temp + KEEP_SUFFIX))
        return False

    def _holds(self, row: FileRow, inode: int | None) -> int:
        """Of a name and its temporary name, how many an inode has."""
        with contextlib.suppress(MovedError, OSError):
            fd = self.directories.get(row.directory).fd
            return (self._inode(fd, row.name), self._inode(fd, row.temp or b"")).count(inode)
        return 0

    def _key(self, row: FileRow) -> Key:
        return self.journal.directory(row.directory).dev, row.old

    def _ours_in(self, row: FileRow) -> set[bytes]:
        """The names of an inode that the journal knows of."""
        rows = self._names[self._key(row)]
        return {name for each in rows for name in (each.name, each.temp or b"")}

    def _other(self, copy: Version, row: FileRow, name: bytes) -> str:
        """Why two versions are kept, and the name of the other."""
        linked = not self._is_ours_alone(copy.fd, row)
        return _other(name, "linked" if linked else "written to")

    def _discard(
        self, directory: OpenDirectory, name: bytes, found: int | None, ours: int | None
    ) -> None:
        if found is not None and found == ours:
            self._unlink(directory, name)

    def _unlink(self, directory: OpenDirectory, name: bytes) -> None:
        with self.directories.changing(directory):
            self.sys.unlink(directory.fd, name)

    def _unlink_copy(self, directory: OpenDirectory, row: FileRow) -> None:
        self._unlink(directory, row.temp or b"")
        if self._key(row) in self._copies:
            self._copies[self._key(row)] -= 1

    def _put_back(self, directory: OpenDirectory, temp: bytes, given: GivenBack) -> bool:
        row = given.row
        with self.directories.changing(directory):
            back = swap.put_back(self.sys, directory.fd, temp, row.name, row.new)
        if back:
            self._given_back.append(given)
        return back

    def _inode(self, fd: int, name: bytes) -> int | None:
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None

    def _wanted_times(self, rows: Sequence[FileRow]) -> dict[int, int]:
        """Modification time (ns) that each directory we work in is to have afterwards."""
        noted = self.journal.open_directories()
        until = self.journal.get(CHANGING_UNTIL, float) or 0.0
        wanted = {}
        for number in {*noted, *(row.directory for row in rows)}:
            try:
                directory = self.directories.get(number)
            except MovedError:
                continue
            self.directories.begin(directory)
            if number in noted:
                mtime_ns, since = noted[number]
                if directory.mtime_ns / 1e9 <= self._last_change(max(since, until)):
                    self.directories.take_up(directory, mtime_ns)
            wanted[number] = directory.mtime_ns
        return wanted

    def _last_change(self, until: float) -> float:
        """The latest time that a change of ours can have, noted to be ``until`` then."""
        booted = self.booted()
        return min(until + FOREIGN, booted) if until < booted else until


def _maker(row: FileRow) -> content.Maker:
    return content.MAKERS[len(row.digest or bytes(32))]


def _other(name: bytes, what: str = "written to") -> str:
    return f"{what} during the move; the other version is {os.fsdecode(name)}"


def _replaceable(version: Version, by: Version, digest: bytes | None) -> bool:
    """Whether nothing would be lost with ``version``: it is what was copied, and older.

    To exchange them gives both one ctime: what differs then was changed before, or at once after.
    """
    if version.digest != digest or not version.leased:
        return False
    same = version.meta.same(by.meta)
    return same or by.digest != digest or version.ctime_ns < by.ctime_ns
