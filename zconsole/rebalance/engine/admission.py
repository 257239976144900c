"""Admission to the copy engine: each file is opened, leased and checked before anything changes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.backend import REPLACED
from zconsole.rebalance.engine import extents, metadata
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.item import (
    FileName,
    Item,
    SkipError,
    own_prefix,
    temporary,
)
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.leases import take_lease
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.namespaces import Owners
from zconsole.rebalance.engine.syscalls import SOURCE, Sys

SIGNATURES = frozenset({"security.evm", "security.ima"})
"""Extended attributes with signatures, which a copy can't keep.

EVM's cover the inode number (evm_crypto.c, hmac_add_misc).
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """Features that the filesystem offers, and limits and risks that the operator has set."""

    accept_races: bool = False
    """Go on without leases or exchanges of names, though a write by others could be lost."""
    zfs: tuple[int, ...] | None = None
    """Version of the ZFS kernel module; None on another filesystem."""
    room: Callable[[int], int | None] = field(default=lambda _device: None)
    """Bytes that may be written to a device before the free-space floor; None: no limit."""
    copies: Callable[[int], int] = field(default=lambda _device: 1)
    """How many copies of each block a device keeps (zfsprops(7)); all count as allocated."""

    @property
    def direct(self) -> bool:
        """Whether copies are read back with O_DIRECT (ZFS 2.3), that is, from the disks."""
        return self.zfs is not None and self.zfs >= (2, 3)

    @property
    def ahead(self) -> bool:
        """Whether the filesystem is asked to prefetch files before their turn.

        ZFS before 2.2 reads them into the page cache only (zpl_fadvise, zpl_file.c 2.2.0).
        """
        return self.zfs is None or self.zfs >= (2, 2)


@dataclass(frozen=True, slots=True)
class Admission:
    """Opens originals, or raises the reason why a file is not moved."""

    sys: Sys
    directories: Directories
    policy: Policy
    abilities: Callable[[FileName], Abilities]
    """Returns the ioctls that the filesystem of a name supports, as learned so far."""
    secret: str = field(default_factory=lambda: secrets.token_hex(8))
    """Random part of this run's temporary names (16 hex digits)."""
    owners: Owners = field(default_factory=Owners)

    def open(self, names: Sequence[FileRow]) -> Item:
        """Return an item with its original open and leased, its names in the given order.

        Raises SkipError, MovedError, UnsupportedError, OSError.
        """
        places = self._places(names)
        try:
            source = self._open_source(places[0].directory.fd, names[0].name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR):
                raise SkipError("changed") from error
            # O_NONBLOCK (in SOURCE) makes open(2) fail instead of waiting for a write lease.
            if error.errno == errno.EAGAIN:
                raise SkipError("leased by another process") from error
            raise
        try:
            self._expect(source, places[0])
            policy = self.policy
            leased = take_lease(self.sys, source, policy.accept_races, policy.zfs or ())
            abilities = self.abilities(places[0])
            meta, status = metadata.read(self.sys, source, abilities)
            item = Item(places, source, status, meta, leased)
            self._admit(item)
            if extents.preallocated(self.sys, source, status, abilities):
                raise SkipError("preallocated blocks")
        except BaseException:
            self.sys.close(source)
            raise
        return item

    def _places(self, names: Sequence[FileRow]) -> list[FileName]:
        """Open the directories of all names."""
        get, secret = self.directories.get, self.secret
        try:
            return [FileName(r, get(r.directory), temporary(secret, r.number)) for r in names]
        except OSError as error:
            if error.errno == errno.EMFILE:  # ``Batches`` gives such a file a batch of its own
                raise SkipError("its names are in more directories than can be open") from error
            raise

    @property
    def prefix(self) -> bytes:
        """The prefix of our temporary names."""
        return own_prefix(temporary(self.secret, 0))

    def _open_source(self, directory: int, name: bytes) -> int:
        try:
            return self.sys.open(name, SOURCE | os.O_NOATIME, dir_fd=directory)
        except PermissionError:  # O_NOATIME is for the owner and root only (open(2))
            return self.sys.open(name, SOURCE, dir_fd=directory)

    def _expect(self, source: int, place: FileName) -> None:
        """Raise SkipError unless an open file is the one that was walked.

        Before anything is asked of it: a file that was mounted over the name may be on a filesystem
        without leases or flags, which says nothing about this one.
        """
        status = self.sys.fstat(source)
        if not stat.S_ISREG(status.st_mode) or status.st_dev != place.directory.dev:
            raise SkipError("changed")
        if status.st_ino != place.row.ino:
            raise SkipError(REPLACED)

    def _admit(self, item: Item) -> None:
        status = item.status
        if status.st_nlink != len(item.places):
            raise SkipError("hard links outside the set")
        if self.owners.hidden(item.source, status):
            raise SkipError("owner not mapped here")
        fixed = any(place.directory.fixed for place in item.places)
        if fixed or item.meta.flags & metadata.IMMUTABLE:
            raise SkipError("immutable or append-only")
        if item.meta.flags & metadata.UNCOPYABLE:
            raise SkipError("signed by fs-verity")
        if item.meta.dos & metadata.NO_UNLINK:
            raise SkipError("marked nounlink")
        if not SIGNATURES.isdisjoint(item.meta.xattrs):
            raise SkipError("signed by EVM or IMA")
        room = self.policy.room(status.st_dev)
        if room is not None and status.st_blocks * 512 > room:
            raise SkipError("too large for the free space")
        # The first name was opened; another one may have been replaced since the walk.
        for place in item.places[1:]:
            try:
                found = self.sys.lstat(place.directory.fd, place.row.name).st_ino
            except FileNotFoundError:
                found = None
            if found != status.st_ino:
                raise SkipError("changed")
