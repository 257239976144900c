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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine import content, metadata, swapping
from zconsole.rebalance.engine.directories import Directories, MovedError
from zconsole.rebalance.engine.inuse import Users
from zconsole.rebalance.engine.item import KEEP_SUFFIX
from zconsole.rebalance.engine.journal import FileRow, Journal, Result, State
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

FOREIGN = 30.0
"""A directory changed this many seconds after our intent was changed by somebody else."""


@dataclass(slots=True)
class Version:
    """One of the two versions of a file, as found under some name; open, leased if possible."""

    fd: int
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
        """Settle every unfinished file; returns how many there were. Raises OSError."""
        rows = self.journal.unfinished()
        self._names = self._by_inode(rows)
        times = self._wanted_times(rows)
        self.journal.record([], directories={n: (t, self.now()) for n, t in times.items()})
        for row in rows:
            self._settle(row)
        for number, mtime_ns in times.items():
            self._set_time(number, mtime_ns)
        if rows:
            self.sync()
        self.journal.record(self._results)
        self.directories.close()
        return len(rows)

    def _set_time(self, number: int, mtime_ns: int) -> None:
        fd = self.directories.get(number).fd
        try:
            self.sys.set_times(fd, self.sys.fstat(fd).st_atime_ns, mtime_ns)
        except OSError as error:
            # Somebody else's directory, or none that anything can be changed in.
            if error.errno not in (errno.EPERM, errno.EACCES, errno.EROFS):
                raise

    def _settle(self, row: FileRow) -> None:
        try:
            fd = self.directories.get(row.directory).fd
            state, reason = self._settle_in(fd, row)
        except (MovedError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EROFS:
                raise  # what is there stays unfinished until it can be changed again
            word = error.strerror if isinstance(error, OSError) else str(error)
            state, reason = State.FAILED, f"{word}; {os.fsdecode(row.temp or b'')} may be left"
        if state is State.FAILED:
            self.kept.append((row, reason or ""))
        kept = row.temp if state is State.FAILED else None
        self._results.append(Result(row.number, state, reason, kept))

    def _settle_in(self, fd: int, row: FileRow) -> tuple[State, str | None]:
        temp = row.temp or b""
        keep = temp + KEEP_SUFFIX
        at_name, at_temp, at_keep = (self._inode(fd, n) for n in (row.name, temp, keep))
        if row.state is State.CREATING:
            if at_temp not in (None, row.old):
                self.sys.unlink(fd, temp)
            return self._again(row)
        if at_temp not in (None, row.old, row.new):
            return self._hand_back(fd, row, at_name)
        if at_name == row.old:
            self._discard(fd, temp, at_temp, row.new)
            self._discard(fd, keep, at_keep, row.old)
            return self._again(row)
        self._discard(fd, temp, at_temp, row.new if at_name != row.new else None)
        original = temp if at_temp == row.old else keep if at_keep == row.old else None
        if original is None:
            return (State.MOVED, None) if at_name == row.new else (State.SKIPPED, "changed")
        if at_name != row.new:
            return self._let_go(fd, row, original)
        return self._choose(fd, row, original)

    def _hand_back(self, fd: int, row: FileRow, at_name: int | None) -> tuple[State, str | None]:
        """A file of others, put at the name just before the exchange, is where ours was."""
        temp = row.temp or b""
        if at_name == row.new and swapping.put_back(self.sys, fd, temp, row.name, row.new):
            return State.SKIPPED, "changed"
        return State.FAILED, f"replaced during the move; the other version is {os.fsdecode(temp)}"

    def _let_go(self, fd: int, row: FileRow, original: bytes) -> tuple[State, str | None]:
        """Our copy was replaced, removed or renamed: the original goes if it is what was copied."""
        with self._version(fd, original, _maker(row)) as old:
            alone = not self._has_other_names(old, row)
            if alone and old.digest == row.digest and self._quiet(old):
                self.sys.unlink(fd, original)
                return State.SKIPPED, "changed"
        return State.FAILED, _other(original)

    def _again(self, row: FileRow) -> tuple[State, str | None]:
        """Back into the queue; a name that only follows another waits for that one."""
        first = self.journal.is_first(row)
        return (State.PENDING if first else State.LINKED), None

    def _choose(self, fd: int, row: FileRow, original: bytes) -> tuple[State, str | None]:
        """Both versions exist and the copy has the name: keep the one that was written to."""
        make = _maker(row)
        with self._version(fd, original, make) as old, self._version(fd, row.name, make) as new:
            if self.sys.fstat(new.fd).st_ino != row.new:
                return State.FAILED, _other(original)
            halfway = self._has_other_names(old, row) or self._in_use(old, directory=fd)
            if not halfway and _replaceable(old, new, row.digest) and self._quiet(old):
                self.sys.unlink(fd, original)
                return State.MOVED, None
            unwanted = _replaceable(new, old, row.digest) and self._quiet(new)
            unwanted = unwanted and not self._in_use(new)
            if unwanted and swapping.put_back(self.sys, fd, original, row.name, row.new):
                return self._again(row)
        return State.FAILED, _other(original)

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
        file = self.sys.open(name, SOURCE | os.O_NOATIME, dir_fd=fd)
        try:
            leased = self._lease(file)
            meta, status = metadata.read(self.sys, file, Abilities())
            digest = content.digest(self.sys, file, status.st_size, self.tick, make)
            yield Version(file, digest, meta, status.st_ctime_ns, leased)
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

    def _discard(self, fd: int, name: bytes, found: int | None, ours: int | None) -> None:
        if found is not None and found == ours:
            self.sys.unlink(fd, name)

    def _inode(self, fd: int, name: bytes) -> int | None:
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None

    def _wanted_times(self, rows: Sequence[FileRow]) -> dict[int, int]:
        """Modification time (ns) that each directory we work in is to have afterwards."""
        noted = self.journal.open_directories()
        wanted = {}
        for number in {*noted, *(row.directory for row in rows)}:
            try:
                now = self.directories.get(number).mtime_ns
            except MovedError:
                continue
            mtime_ns, since = noted.get(number, (now, 0.0))
            wanted[number] = mtime_ns if now / 1e9 <= since + FOREIGN else now
        return wanted


def _maker(row: FileRow) -> content.Maker:
    return content.MAKERS[len(row.digest or bytes(32))]


def _other(name: bytes) -> str:
    return f"written to during the move; the other version is {os.fsdecode(name)}"


def _replaceable(version: Version, by: Version, digest: bytes | None) -> bool:
    """Whether nothing would be lost with ``version``: it is what was copied, and not the newer."""
    if version.digest != digest or not version.leased:
        return False
    same = version.meta.same(by.meta)
    return same or by.digest != digest or version.ctime_ns <= by.ctime_ns
