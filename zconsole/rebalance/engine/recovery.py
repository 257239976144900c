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

from zconsole.rebalance.engine import content, metadata, swap
from zconsole.rebalance.engine.directories import Directories, MovedError, OpenDirectory
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.item import KEEP_SUFFIX, is_ours, own_prefix
from zconsole.rebalance.engine.journal import FileRow, Journal, Result, State
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

CHANGING_UNTIL = "changing_until"
"""In the journal: our changes of directories have times up to this one (epoch seconds)."""
FOREIGN = 30.0
"""A directory changed this many seconds before a power cut was changed by somebody else: the cut
may have taken back what the journal was told last."""


@dataclass(slots=True)
class Version:
    """One of the two versions of a file, as found under some name; open, leased if possible."""

    fd: int
    directory: int
    digest: bytes
    meta: metadata.Metadata
    ctime_ns: int
    leased: bool
    """False while another process has it open for writing."""


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
    users: Users = field(default_factory=Users)
    kept: list[tuple[FileRow, str]] = field(default_factory=list)
    """Files of which two versions remain, and under which name the other is."""
    _results: list[Result] = field(default_factory=list)
    _names: Mapping[tuple[int, int | None], Sequence[FileRow]] = field(default_factory=dict)
    """The unfinished names of every inode, by device and number."""

    def run(self) -> int:
        """Settle every unfinished file; returns how many there were.

        Raises OSError; sqlite3.DatabaseError, before anything is touched, for a journal that gives
        a file a temporary name that is not ours to remove.
        """
        rows = self.journal.unfinished()
        for row in rows:
            if not is_ours(row.temp, row.number):
                raise sqlite3.DatabaseError(f"{row.temp!r} is not a temporary name of a job")
        self._names = self._by_inode(rows)
        for row in rows:
            self.directories.own(own_prefix(row.temp or b""))
        times = self._wanted_times(rows)
        self.journal.record([], directories={n: (t, self.now()) for n, t in times.items()})
        for row in rows:
            self._settle(row)
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

    def _settle(self, row: FileRow) -> None:
        try:
            state, reason = self._settle_in(self.directories.get(row.directory), row)
        except (MovedError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EROFS:
                raise  # what is there stays unfinished until it can be changed again
            word = error.strerror if isinstance(error, OSError) else str(error)
            state, reason = State.FAILED, f"{word}; {os.fsdecode(row.temp or b'')} may be left"
        if state is State.FAILED:
            self.kept.append((row, reason or ""))
        kept = row.temp if state is State.FAILED else None
        self._results.append(Result(row.number, state, reason, kept))

    def _settle_in(self, directory: OpenDirectory, row: FileRow) -> tuple[State, str | None]:
        temp, fd = row.temp or b"", directory.fd
        keep = temp + KEEP_SUFFIX
        at_name, at_temp, at_keep = (self._inode(fd, n) for n in (row.name, temp, keep))
        if row.state is State.CREATING:
            if at_temp not in (None, row.old):
                self._unlink(directory, temp)
            return self._again(row)
        if at_temp not in (None, row.old, row.new):
            return self._hand_back(directory, row, at_name)
        if at_name == row.old:
            if at_temp is not None and at_temp == row.new and not self._is_spare(fd, row):
                return State.FAILED, _other(temp)
            self._discard(directory, temp, at_temp, row.new)
            self._discard(directory, keep, at_keep, row.old)
            return self._again(row)
        self._discard(directory, temp, at_temp, row.new if at_name != row.new else None)
        original = temp if at_temp == row.old else keep if at_keep == row.old else None
        if original is None:
            return (State.MOVED, None) if at_name == row.new else (State.SKIPPED, "changed")
        if at_name != row.new:
            return self._let_go(directory, row, original)
        return self._choose(directory, row, original)

    def _hand_back(
        self, directory: OpenDirectory, row: FileRow, at_name: int | None
    ) -> tuple[State, str | None]:
        """A file of others, put at the name just before the exchange, is where ours was."""
        temp = row.temp or b""
        if at_name == row.new:
            with self._version(directory.fd, row.name, _maker(row)) as copy:
                unwanted = copy.digest == row.digest and self._is_dropped(copy, row)
                if unwanted and self._put_back(directory, temp, row, copy):
                    return State.SKIPPED, "changed"
        return State.FAILED, f"replaced during the move; the other version is {os.fsdecode(temp)}"

    def _let_go(
        self, directory: OpenDirectory, row: FileRow, original: bytes
    ) -> tuple[State, str | None]:
        """Our copy was replaced, removed or renamed: the original goes if it is what was copied."""
        with self._version(directory.fd, original, _maker(row)) as old:
            alone = not self._has_other_names(old, row)
            if alone and old.digest == row.digest and self._quiet(old):
                self._unlink(directory, original)
                return State.SKIPPED, "changed"
        return State.FAILED, _other(original)

    def _again(self, row: FileRow) -> tuple[State, str | None]:
        """Back into the queue; a name that only follows another waits for that one."""
        first = self.journal.is_first(row)
        return (State.PENDING if first else State.LINKED), None

    def _choose(
        self, directory: OpenDirectory, row: FileRow, original: bytes
    ) -> tuple[State, str | None]:
        """Both versions exist and the copy has the name: keep the one that was written to."""
        make, fd = _maker(row), directory.fd
        with self._version(fd, original, make) as old, self._version(fd, row.name, make) as new:
            if self.sys.fstat(new.fd).st_ino != row.new:
                return State.FAILED, _other(original)
            halfway = self._has_other_names(old, row) or self._in_use(old, directory=fd)
            unneeded = _replaceable(old, new, row.digest) or self._is_let_go(old, row)
            if not halfway and unneeded and self._quiet(old):
                self._unlink(directory, original)
                return State.MOVED, None
            unwanted = _replaceable(new, old, row.digest) and self._is_dropped(new, row)
            if unwanted and self._put_back(directory, original, row, new):
                return self._again(row)
        return State.FAILED, _other(original)

    def _is_let_go(self, original: Version, row: FileRow) -> bool:
        """Whether an original has lost one of several names for its copy already: with it went what
        its ctime told, and the others follow."""
        fewer = self.sys.fstat(original.fd).st_nlink < len(self._names[self._inode_of(row)])
        return fewer and original.leased and original.digest == row.digest

    def _is_spare(self, fd: int, row: FileRow) -> bool:
        """Whether nothing is lost with a copy whose original has the name: it may have had that for
        a while, and be left by an engine that found it changed."""
        temp = row.temp or b""
        with self._opened(fd, temp) as copy, self._opened(fd, row.name) as original:
            metas = [metadata.read(self.sys, file, Abilities())[0] for file in (copy, original)]
            if metas[0].same(metas[1]) and self._is_ours_alone(copy, row) and self._lease(copy):
                return True
        make = _maker(row)
        with self._version(fd, temp, make) as new, self._version(fd, row.name, make) as old:
            return _replaceable(new, old, row.digest) and self._is_dropped(new, row)

    def _is_dropped(self, copy: Version, row: FileRow) -> bool:
        """Whether nobody uses a copy, nor has given it names besides those of the journal."""
        alone = self._is_ours_alone(copy.fd, row)
        return alone and self._quiet(copy) and not self._in_use(copy)

    def _is_as_read(self, copy: Version, row: FileRow) -> bool:
        meta, _ = metadata.read(self.sys, copy.fd, Abilities())
        return self._is_dropped(copy, row) and meta.same(copy.meta)

    def _is_ours_alone(self, copy: int, row: FileRow) -> bool:
        return self.sys.fstat(copy).st_nlink <= len(self._names[self._inode_of(row)])

    def _in_use(self, version: Version, directory: int | None = None) -> bool:
        """Whether others hold a version or have it mounted, or see its directory in an overlay."""
        look = self.users.recent()
        look.reach(version.directory)
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
            yield Version(file, fd, digest, meta, status.st_ctime_ns, leased)

    @contextlib.contextmanager
    def _opened(self, fd: int, name: bytes) -> Iterator[int]:
        file = self.sys.open(name, SOURCE | os.O_NOATIME, dir_fd=fd)
        try:
            yield file
        finally:
            self.sys.close(file)

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
        names = self._names[self._inode_of(row)]
        spare = len(names) - links
        for name in reversed(names) if links > 1 else ():  # the last were replaced last
            spare -= not self._keeps(name)
            if spare < 0:
                return True
        return False

    def _by_inode(self, rows: Sequence[FileRow]) -> Mapping[tuple[int, int | None], list[FileRow]]:
        names = defaultdict[tuple[int, int | None], list[FileRow]](list)
        for row in rows:
            names[self._inode_of(row)].append(row)
        return names

    def _keeps(self, row: FileRow) -> bool:
        """Whether one of our names beside this one holds the original."""
        temp = row.temp or b""
        with contextlib.suppress(MovedError, OSError):
            fd = self.directories.get(row.directory).fd
            return row.old in (self._inode(fd, temp), self._inode(fd, temp + KEEP_SUFFIX))
        return False

    def _inode_of(self, row: FileRow) -> tuple[int, int | None]:
        return self.journal.directory(row.directory).dev, row.old

    def _discard(
        self, directory: OpenDirectory, name: bytes, found: int | None, ours: int | None
    ) -> None:
        if found is not None and found == ours:
            self._unlink(directory, name)

    def _unlink(self, directory: OpenDirectory, name: bytes) -> None:
        with self.directories.changing(directory):
            self.sys.unlink(directory.fd, name)

    def _put_back(self, directory: OpenDirectory, temp: bytes, row: FileRow, copy: Version) -> bool:
        names = (directory.fd, temp, row.name)
        with self.directories.changing(directory):
            return swap.put_back(self.sys, *names, row.new, lambda: self._is_as_read(copy, row))

    def _inode(self, fd: int, name: bytes) -> int | None:
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None

    def _wanted_times(self, rows: Sequence[FileRow]) -> dict[int, int]:
        """Modification time (ns) that each directory we work in is to have afterwards."""
        noted = self.journal.open_directories()
        until = self.journal.get(CHANGING_UNTIL) or 0.0
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


def _other(name: bytes) -> str:
    return f"written to during the move; the other version is {os.fsdecode(name)}"


def _replaceable(version: Version, by: Version, digest: bytes | None) -> bool:
    """Whether nothing would be lost with ``version``: it is what was copied, and older.

    To exchange them gives both one ctime: what differs then was changed before, or at once after.
    """
    if version.digest != digest or not version.leased:
        return False
    same = version.meta.same(by.meta)
    return same or by.digest != digest or version.ctime_ns < by.ctime_ns
