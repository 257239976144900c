"""Replacing an original by its verified copy, checking the result, and undoing it.

A name always holds the original or the copy, unless others replace it. The original waits for GRACE
at the temporary name, or at a second link where names can't be exchanged. Leases on both inodes,
where the filesystem grants them, show every process that opens one of them for writing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
from collections.abc import Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine import metadata
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.item import KEEP_SUFFIX, FileName, Item, SkipError, UnsupportedError
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import Sys

GRACE = 0.1
"""Least seconds between an exchange of names and the removal of an inode that lost its name.

In this time a process that had looked the name up before shows itself by breaking the lease; where
there are no leases, nothing is waited for. Between lookup and lease it executes some microseconds
of open(2). A write is lost if it is kept right there for all of this time: by a preemptible kernel
that gives its processor to others, or by a permission check that waits for a disk. The kernel shows
no such process to anybody, so only waiting helps; a batch waits once, and once more if names were
given back. chmod(2) and link(2) break no lease, and may sleep for longer: ``finish`` checks for
their effects once the original has no name of ours.
"""
NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a kernel or filesystem that can't exchange names."""
ROUNDS = 64
"""How often others may replace a name that we restore before it is left to recovery."""
RENAMED = "renamed meanwhile"


class ConflictError(Exception):
    """Original and copy are both needed, for the reason in the message: both are kept."""

    def __init__(self, why: str = "written to during the move") -> None:
        super().__init__(why)


class UnfinishedError(Exception):
    """The copy is in place, but a name of the original, or a change of it, is left over."""


@dataclass(slots=True)
class Swapper:
    """Replaces originals by their copies on one filesystem, and undoes or finishes that."""

    sys: Sys
    directories: Directories
    abilities: Abilities
    accept_races: bool
    exchange: bool = True
    """Whether names can be exchanged; set to False on the first refusal."""

    def replace(self, item: Item) -> None:
        """Put the copy at every name of the item. On any exception, call ``undo``.

        A process that watches the directory may have changed the copy by its temporary name since
        it was verified, so the copy's metadata is checked first; its ctime would not show a change
        within one tick of the kernel's clock.

        Raises SkipError if somebody changed original or copy, UnsupportedError, OSError.
        """
        now = self.sys.fstat(item.source)
        if (now.st_ctime_ns, now.st_nlink) != (item.status.st_ctime_ns, item.status.st_nlink):
            raise SkipError("changed")
        try:
            self._need_pristine(item)
        except ConflictError as error:
            raise SkipError("changed") from error
        for place in item.places:
            self._replace_name(item, place)
        after, status = metadata.read(self.sys, item.source, self.abilities)
        if not item.meta.same(after) or status.st_nlink != len(item.places):
            raise SkipError("changed")
        if not self._undisturbed(item):
            raise SkipError("open for writing")
        item.swapped_ctime = status.st_ctime_ns

    def finish(self, item: Item) -> None:
        """Remove the original's last names, checking it before, between and after; closes nothing.

        Raises SkipError if the original was changed or opened for writing after all (call
        ``undo``), ConflictError if both were, and OSError if that can't be told. Raises
        UnfinishedError if a call fails later: recovery removes the names that are left, but a
        change of the original that was to be brought along is lost.
        """
        # Compare all metadata: two changes within one tick of the kernel's clock leave one ctime.
        meta, status = metadata.read(self.sys, item.source, self.abilities)
        untouched = (status.st_ctime_ns, status.st_nlink) == (item.swapped_ctime, len(item.places))
        untouched = untouched and item.meta.same(meta)
        if not untouched or not self._quiet(item.source, item.leased):
            self._need_pristine(item)
            raise SkipError("open for writing")
        try:
            for number, place in enumerate(item.places):
                # Who opens it between two removals can still have it: it has a name left.
                if number and not self._quiet(item.source, item.leased):
                    self._link_original(item, item.places[:number])
                    raise SkipError("open for writing")
                with self.directories.changing(place.directory):
                    self._remove(place, place.kept, item.old)
            self._bring_along(item)
        except OSError as error:
            raise UnfinishedError from error

    def _bring_along(self, item: Item) -> None:
        """Apply to the copy the changes of the original made while its names were removed.

        A chmod or link by path breaks no lease and may wait in the kernel for longer than GRACE,
        for instance for a transaction of a busy pool. One that has the inode locked meanwhile ends
        before the removal does; one that gets the lock only later, as when it waits for a frozen
        filesystem, is lost. Raises OSError, and SkipError if the original was linked and names can
        be exchanged: then it has its names again, for ``undo``.
        """
        marks, dos = item.meta.marks, item.meta.dos  # these can't be changed by path
        last, status = metadata.reread(self.sys, item.source, marks, dos)
        # Not without exchange: NFS renames an open file instead of removing it (.nfs…), so a link
        # is left in any case.
        if status.st_nlink and self.exchange:
            self._link_original(item, item.places)
            raise SkipError("changed")
        if not item.meta.same(last):
            found, _ = metadata.read(self.sys, item.copy, self.abilities)
            wanted = metadata.brought(item.meta, last, found)
            if found.mode != wanted.mode:
                # Others can open the copy: a new owner must not have what only the old one was
                # allowed, and a failing call must not leave them what has been forbidden.
                self.sys.fchmod(item.copy, found.mode & wanted.mode & 0o7777)
            metadata.apply(self.sys, item.copy, wanted, found, self.abilities)

    def _link_original(self, item: Item, places: Sequence[FileName]) -> None:
        """Give the original the names back at which it waited."""
        for place in places:
            with self.directories.changing(place.directory):
                self.sys.link_fd(item.source, place.directory.fd, place.kept)

    def undo(self, item: Item) -> None:
        """Give every name back to the original.

        The copy keeps its temporary names until ``discard``, which must come later by GRACE if
        the copy was ``seen``: the order of the two must not change.

        Raises OSError, and ConflictError if somebody changed the copy meanwhile, or opened it for
        writing.
        """
        for place in item.places if item.new else ():
            self._look_again(item, place)
        if item.in_place:
            self._need_pristine(item)
        for place in reversed(item.places):
            if place.swapped:
                with self.directories.changing(place.directory):
                    self._restore_name(item, place)

    def discard(self, item: Item) -> None:
        """Remove the temporary names of a copy. Raises as ``undo`` does."""
        if not any(place.linked for place in item.places):
            return
        if item.new == 0:
            item.new = self._unfinished_copy(item)
        if item.seen:
            self._need_pristine(item)
        elif not self._copy_untouched(item):
            raise ConflictError
        for place in reversed(item.places):
            if place.linked:
                with self.directories.changing(place.directory):
                    self._remove(place, place.temp, item.new)
                place.linked = False

    def _unfinished_copy(self, item: Item) -> int:
        """Return the inode number of an unfinished copy; 0 if there is none.

        There may be one even if the call that was to create it failed.
        """
        if item.made:
            return self.sys.fstat(item.copy).st_ino
        place = item.places[0]
        found = self._inode(place.directory.fd, place.temp)
        return 0 if found in (None, item.old) else found

    def _look_again(self, item: Item, place: FileName) -> None:
        """Update the state of a name: a call that failed may have taken effect, or half of it."""
        if place.swapped:
            return
        fd, keep = place.directory.fd, place.temp + KEEP_SUFFIX
        at_name, at_temp = self._inode(fd, place.row.name), self._inode(fd, place.temp)
        place.linked = place.linked or at_temp == item.new
        kept = place.temp if at_temp == item.old else keep
        if at_name == item.new and self._inode(fd, kept) == item.old:
            place.swapped = item.seen = True
            place.linked, place.kept = kept == place.temp, kept
        elif not self.exchange:
            with self.directories.changing(place.directory):
                self._remove(place, keep, item.old)  # no rename has followed this link
            place.kept = b""

    def _replace_name(self, item: Item, place: FileName) -> None:
        with self.directories.changing(place.directory):
            self._link_copy(item, place)
            if self.exchange:
                self._exchange_name(item, place)
            if not self.exchange:
                self._rename_name(item, place)

    def _link_copy(self, item: Item, place: FileName) -> None:
        if not place.linked:
            self.sys.link_fd(item.copy, place.directory.fd, place.temp)
            place.linked = True
        elif self.sys.lstat(place.directory.fd, place.temp).st_ino != item.new:
            raise SkipError("changed")

    def _exchange_name(self, item: Item, place: FileName) -> None:
        fd, name = place.directory.fd, place.row.name
        try:
            self.sys.exchange(fd, place.temp, name)
        except OSError as error:
            if error.errno not in NO_EXCHANGE:
                raise
            if not self.accept_races:
                raise UnsupportedError("names cannot be exchanged on this filesystem") from error
            self.exchange = False
            return
        place.swapped, place.kept, item.seen = True, place.temp, True
        displaced = self.sys.lstat(fd, place.temp).st_ino
        if displaced != item.old:
            self._give_back(item, place, item.new, displaced)
            raise SkipError("changed")

    def _give_back(self, item: Item, place: FileName, put: int, displaced: int) -> None:
        """Restore a name at which another process had just put its file, until nobody intervenes.

        ``put`` is the inode that we put at the name, ``displaced`` the one that was there. If that
        process has renamed ours, its file gets the new name. A copy that is at the temporary name
        again stays there, for ``discard``.
        """
        fd, name = place.directory.fd, place.row.name
        for _ in range(ROUNDS):
            try:
                self.sys.exchange(fd, place.temp, name)
            except FileNotFoundError:
                renamed = self._renamed(item, place, put)
                if renamed is None:
                    raise FileNotFoundError(errno.ENOENT, "no longer in its directory") from None
                name = renamed
                continue
            last, put = put, displaced
            displaced = self.sys.lstat(fd, place.temp).st_ino
            if displaced == last:
                place.swapped = False
                if last != item.new:
                    self._remove(place, place.temp, last)
                    place.linked = False
                return
        raise OSError(errno.EBUSY, "the name keeps being replaced")

    def _renamed(self, item: Item, place: FileName, inode: int) -> bytes | None:
        """Return the name that others gave an inode in the directory of a place; None if none."""
        ours = {name for p in item.places for name in (p.row.name, p.temp, p.kept)}
        return self.sys.name_of(place.directory.fd, inode, ours)

    def _rename_name(self, item: Item, place: FileName) -> None:
        fd, name = place.directory.fd, place.row.name
        keep = place.temp + KEEP_SUFFIX
        # First a second link to the original: the rename replaces its name.
        self.sys.link(fd, name, keep)
        place.kept = keep
        if self.sys.lstat(fd, keep).st_ino != item.old:  # others had just replaced the name
            self.sys.unlink(fd, keep)
            raise SkipError("changed")
        self.sys.rename(fd, place.temp, name)
        place.swapped, place.linked, item.seen = True, False, True

    def _restore_name(self, item: Item, place: FileName) -> None:
        """Give the original its name back, or the name to which somebody has renamed the copy."""
        fd = place.directory.fd
        for _ in range(ROUNDS):
            name: bytes | None = place.row.name
            if self._inode(fd, place.row.name) != item.new:
                name = self._renamed(item, place, item.new)
            if name is not None and self._inode(fd, place.kept) is None:
                with contextlib.suppress(FileNotFoundError):  # the original has no name left
                    self.sys.link_fd(item.source, fd, place.kept)
            if name is None or self._inode(fd, place.kept) != item.old:
                self._give_up_name(item, place)
                return
            with contextlib.suppress(FileNotFoundError):  # just renamed: try again
                self._take_name(item, place, name)
                if name != place.row.name:
                    item.reason = RENAMED
                return
        raise OSError(errno.EBUSY, "the name keeps being replaced")

    def _take_name(self, item: Item, place: FileName, name: bytes) -> None:
        fd = place.directory.fd
        if place.kept != place.temp:
            self.sys.rename(fd, place.kept, name)
            place.swapped = False
            return
        self.sys.exchange(fd, place.temp, name)
        place.swapped = False
        displaced = self.sys.lstat(fd, place.temp).st_ino
        if displaced != item.new:
            self._give_back(item, place, item.old, displaced)

    def _give_up_name(self, item: Item, place: FileName) -> None:
        """Remove the original, as another process has replaced or removed our copy at its name.

        Raises ConflictError if the copy lives on elsewhere, or a file of others would be removed.
        """
        under = self._inode(place.directory.fd, place.kept)
        if under == item.new:  # the copy came back to its temporary name
            place.swapped = False
            return
        if under is not None and (under != item.old or self._has_other_names(item, place)):
            raise ConflictError("renamed during the move")
        self._remove(place, place.kept, item.old)
        place.swapped = place.linked = False

    def _remove(self, place: FileName, name: bytes, expected: int) -> None:
        """Remove one of our names if it still holds the inode that we put there."""
        if self._inode(place.directory.fd, name) == expected:
            self.sys.unlink(place.directory.fd, name)

    def _inode(self, fd: int, name: bytes) -> int | None:
        try:
            return self.sys.lstat(fd, name).st_ino
        except FileNotFoundError:
            return None

    def _undisturbed(self, item: Item) -> bool:
        return not item.leased or self.sys.leased(item.source)

    def _quiet(self, fd: int, leased: bool) -> bool:
        """Whether no process has opened a file for writing, or is about to break its lease.

        The kernel counts a writer before it breaks leases (do_dentry_open, fs/open.c), and taking
        the lease again fails once one is counted (check_conflicting_open, fs/locks.c).
        """
        if not leased:
            return True
        if not self.sys.leased(fd):
            return False
        try:
            self.sys.lease(fd, fcntl.F_RDLCK)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            return False
        return True

    def _has_other_names(self, item: Item, place: FileName) -> bool:
        """Whether the copy has a name that is not ours, as another process renamed or linked it."""
        ours = sum(p is not place and (p.swapped or p.linked) for p in item.places)
        return self.sys.fstat(item.copy).st_nlink > ours

    def _copy_untouched(self, item: Item) -> bool:
        """Whether no process has opened the copy for writing, or is about to (``_quiet``)."""
        return not item.copy_opened and self._quiet(item.copy, item.copy_leased)

    def _need_pristine(self, item: Item) -> None:
        """Raise ConflictError unless the copy is as we made it and has no names but ours.

        It may have fewer: others may remove or replace names.
        """
        if not self._copy_untouched(item):
            raise ConflictError
        meta, status = metadata.read(self.sys, item.copy, self.abilities)
        ours = sum(place.swapped or place.linked for place in item.places)
        if not item.meta.same(meta):
            raise ConflictError
        if status.st_nlink > ours:
            raise ConflictError("linked during the move")


@dataclass(slots=True)
class Swappers:
    """The swappers of a job, one for each filesystem, as each learns what that can do."""

    sys: Sys
    directories: Directories
    accept_races: bool
    _by_device: dict[int, Swapper] = field(default_factory=dict)

    def of(self, item: Item) -> Swapper:
        """Return the swapper of the filesystem that an item is on."""
        return self._on(item.places[0])

    def abilities(self, place: FileName) -> Abilities:
        """Return the ioctls that the filesystem of a name supports, as learned so far."""
        return self._on(place).abilities

    def _on(self, place: FileName) -> Swapper:
        device = place.directory.dev
        if device not in self._by_device:
            swapper = Swapper(self.sys, self.directories, Abilities(), self.accept_races)
            self._by_device[device] = swapper
        return self._by_device[device]


def put(
    sys: Sys, directory: int, temp: bytes, name: bytes, displaced: int | None, keep: bytes = b""
) -> bool:
    """Give the file at ``temp`` the name that inode ``displaced`` has.

    The displaced inode is at ``temp`` then; where names can't be exchanged, it is at ``keep``, or
    loses the name if that is empty. Returns False if the name holds another inode: that one keeps
    it, or a still newer one that takes its place meanwhile. Raises OSError.
    """
    ours = sys.lstat(directory, temp).st_ino
    try:
        sys.exchange(directory, temp, name)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
    else:
        taken = sys.lstat(directory, temp).st_ino
        if taken == displaced:
            return True
        for _ in range(ROUNDS):
            sys.exchange(directory, temp, name)
            # What was taken has the name again, unless the name was replaced once more.
            expected, ours = ours, taken
            taken = sys.lstat(directory, temp).st_ino
            if taken == expected:
                return False
        raise OSError(errno.EBUSY, "the name keeps being replaced")
    if keep:
        sys.link(directory, name, keep)
    if sys.lstat(directory, keep or name).st_ino != displaced:
        if keep:
            sys.unlink(directory, keep)
        return False
    sys.rename(directory, temp, name)
    return True
