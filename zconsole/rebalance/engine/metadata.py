"""Metadata of files: read in full, applied to a copy, and compared.

Owner, mode, times in nanoseconds, every extended attribute this process may see (POSIX ACLs and
capabilities are attributes too), inode flags, project id and, on ZFS, the DOS attributes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from zconsole.rebalance.engine import syscalls
from zconsole.rebalance.engine.syscalls import Sys

IMMUTABLE = 0x10 | 0x20
"""FS_IMMUTABLE_FL and FS_APPEND_FL (linux/fs.h)."""
UNCOPYABLE = 0x0010_0000
"""FS_VERITY_FL: a copy can't carry the signature."""
KEPT_FLAGS = 0x000B_C4FF | 0x0080_0000 | 0x0200_0000 | 0x2000_0000
"""Inode flags that a copy must have, and chattr(1) can set.

FS_FL_USER_MODIFIABLE, NOCOMP, JOURNAL_DATA, EXTENT, NOCOW, DAX, PROJINHERIT.
"""
SHOWN_FLAGS = 0x0000_2800 | 0x4000_0000
"""IMAGIC, ENCRYPT and CASEFOLD: a copy has them from its directory, or is discarded.

The remaining flags of linux/fs.h tell how a filesystem has stored something: COMPRBLK, INDEX,
HUGE_FILE, EA_INODE, EOFBLOCKS, INLINE_DATA.
"""
KEPT_HINTS = 0x1 | 0x800 | 0x2000 | 0x4000 | 0x1_0000
"""FS_XFLAG_REALTIME, EXTSIZE, NODEFRAG, FILESTREAM and COWEXTSIZE.

ZFS before 2.3 shows its FS_*_FL in the same place; none of them uses one of these bits
(zpl_ioctl_getxattr).
"""
_EXTSIZE, _COWEXTSIZE = 0x800, 0x1_0000
NO_UNLINK = 0x20 << 32
"""ZFS_NOUNLINK (sys/zfs_znode.h): no name of the file may be removed (zfs_zaccess_delete)."""
PRIVATE = 0o600
"""Permissions of a copy while others might be able to read too much of it."""
NONE: Mapping[str, bytes] = MappingProxyType({})
Hints = tuple[int, int, int]
"""FS_XFLAG_* of KEPT_HINTS, then the sizes in bytes for EXTSIZE and COWEXTSIZE."""
_ABSENT = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
"""Errors of a filesystem that does not have an ioctl."""
_FSX = struct.Struct("=5I8x")
"""struct fsxattr (linux/fs.h): flags, extent size, number of extents, project, CoW extent size."""
_REFUSED = (*_ABSENT, errno.EPERM, errno.EACCES)
_LONG = struct.Struct("=l4x") if struct.calcsize("l") == 4 else struct.Struct("l")
"""Buffer for FS_IOC_GETFLAGS and SETFLAGS, which are declared for a long."""


@dataclass(slots=True)
class Abilities:
    """Which ioctls a filesystem supports; learned from the first file on it."""

    flags: bool = True
    project: bool = True
    dos: bool = True
    extents: bool = True


class Marks(NamedTuple):
    """Marks that take effect, or can be set, only before the first write to a file."""

    flags: int = 0
    project: int = 0
    hints: Hints = (0, 0, 0)


class Metadata(NamedTuple):
    """The metadata that a copy must share with its original; times in nanoseconds."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    atime_ns: int
    marks: Marks = Marks()
    dos: int = 0
    xattrs: Mapping[str, bytes] = NONE

    @property
    def flags(self) -> int:
        """The inode flags, FS_*_FL."""
        return self.marks.flags

    def same(self, other: Metadata) -> bool:
        """Whether nothing differs but perhaps the access time, which any reader changes."""
        return self == other or self == other._replace(atime_ns=self.atime_ns)

    def digest(self) -> bytes:
        """Return a hash (16 bytes) that is equal for metadata that is ``same``."""
        values = self._replace(atime_ns=0, xattrs=dict(sorted(self.xattrs.items())))
        return hashlib.blake2b(ascii(tuple(values)).encode(), digest_size=16).digest()

    def difference(self, other: Metadata) -> str | None:
        """Return the name of the first thing that differs; None if nothing does."""
        if self == other:
            return None
        pairs = {
            "mode": self.mode == other.mode,
            "owner": (self.uid, self.gid) == (other.uid, other.gid),
            "size": self.size == other.size,
            "times": (self.mtime_ns, self.atime_ns) == (other.mtime_ns, other.atime_ns),
            "flags": (self.flags, self.dos) == (other.flags, other.dos),
            "extent size": self.marks.hints == other.marks.hints,
            "project": self.marks.project == other.marks.project,
        }
        return next((word for word, equal in pairs.items() if not equal), "xattrs")


def read(sys: Sys, fd: int, abilities: Abilities) -> tuple[Metadata, os.stat_result]:
    """Return the metadata and status of an open file. Raises OSError.

    The status is read before the rest: a change of any of it afterwards shows in a later ctime.
    """
    status = sys.fstat(fd)
    marks = _marks(sys, fd, abilities)
    return _complete(sys, fd, status, marks, dos(sys, fd, abilities)), status


def reread(sys: Sys, fd: int, marks: Marks, dos: int) -> tuple[Metadata, os.stat_result]:
    """Return the metadata and status of a file whose marks and DOS attributes are known."""
    status = sys.fstat(fd)
    return _complete(sys, fd, status, marks, dos), status


def _complete(sys: Sys, fd: int, status: os.stat_result, marks: Marks, dos: int) -> Metadata:
    """Read the extended attributes, the last that is missing, and return all."""
    names = sys.listxattr(fd)
    return Metadata(
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_atime_ns,
        marks,
        dos,
        {name: sys.getxattr(fd, name) for name in names} if names else NONE,
    )


def first_mode(wanted: Metadata, born: Metadata | None) -> int:
    """Return the permissions with which to create a copy: the original's, or PRIVATE for now.

    To begin with the original's saves a chmod of each file. They allow nobody more than they do on
    the original if the copy is created with the same owner and group, and neither has extended
    attributes, as access lists are; and only the owner may write to a copy before it is checked.
    ``born`` is the metadata that new files in the directory begin with, None if not known yet.
    """
    mode = stat.S_IMODE(wanted.mode)
    alike = born is not None and (born.uid, born.gid) == (wanted.uid, wanted.gid)
    plain = alike and not wanted.xattrs and not (born and born.xattrs)
    return mode if plain and mode & ~0o755 == 0 else PRIVATE


def mark(sys: Sys, fd: int, wanted: Metadata, abilities: Abilities) -> Marks | None:
    """Give an empty copy its inode flags, project and extent sizes.

    Returns the copy's marks if they were right already. Returns None if they had to be changed,
    or could not be: comparing the finished copy shows what differs. Raises OSError.
    """
    found = _marks(sys, fd, abilities)
    if (found.flags ^ wanted.flags) & KEPT_FLAGS:
        raw = _LONG.unpack(sys.ioctl(fd, syscalls.FS_IOC_GETFLAGS, bytes(_LONG.size)))[0]
        word = (raw & ~KEPT_FLAGS) | (wanted.flags & KEPT_FLAGS)
        _set(sys, fd, syscalls.FS_IOC_SETFLAGS, _LONG.pack(word))
    if found[1:] != wanted.marks[1:]:
        fields = list(_FSX.unpack(sys.ioctl(fd, syscalls.FS_IOC_FSGETXATTR, bytes(_FSX.size))))
        hints, extent, cow = wanted.marks.hints
        fields[0] = (fields[0] & ~KEPT_HINTS) | hints
        fields[1], fields[3], fields[4] = extent, wanted.marks.project, cow
        _set(sys, fd, syscalls.FS_IOC_FSSETXATTR, _FSX.pack(*fields))
    return found if found == wanted.marks else None


def _set(sys: Sys, fd: int, request: int, value: bytes) -> None:
    try:
        sys.ioctl(fd, request, value)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise


def apply(sys: Sys, fd: int, wanted: Metadata, fresh: Metadata, abilities: Abilities) -> None:
    """Put owner, attributes, mode, DOS flags and times onto a written copy, which has ``fresh``.

    The order must not change: owner first, as that clears setuid bits and capabilities; times
    last. Raises OSError.
    """
    owned = (fresh.uid, fresh.gid) == (wanted.uid, wanted.gid)
    if not owned:
        sys.fchown(fd, wanted.uid, wanted.gid)
    for name in fresh.xattrs:
        if name not in wanted.xattrs:
            _remove(sys, fd, name)
    for name, value in wanted.xattrs.items():
        # One that is there already may have no room a second time; a new owner drops capabilities.
        if not owned or fresh.xattrs.get(name) != value:
            sys.setxattr(fd, name, value)
    # Also after ACLs, even if the mode looked right: setting or removing one changes the mode.
    if fresh.mode != wanted.mode or wanted.xattrs or fresh.xattrs:
        sys.fchmod(fd, wanted.mode & 0o7777)
    if abilities.dos and fresh.dos != wanted.dos:
        sys.ioctl(fd, syscalls.ZFS_IOC_SETDOSFLAGS, struct.pack("=Q", wanted.dos))
    sys.set_times(fd, wanted.atime_ns, wanted.mtime_ns)


def brought(before: Metadata, after: Metadata, onto: Metadata) -> Metadata:
    """Return ``onto`` with the changes between ``before`` and ``after`` that ``apply`` can make."""
    xattrs = dict(onto.xattrs)
    for name in before.xattrs.keys() | after.xattrs.keys():
        value = after.xattrs.get(name)
        if value is None:
            xattrs.pop(name, None)
        elif value != before.xattrs.get(name):
            xattrs[name] = value
    return onto._replace(
        mode=onto.mode if after.mode == before.mode else after.mode,
        uid=onto.uid if after.uid == before.uid else after.uid,
        gid=onto.gid if after.gid == before.gid else after.gid,
        mtime_ns=onto.mtime_ns if after.mtime_ns == before.mtime_ns else after.mtime_ns,
        xattrs=xattrs,
    )


def _remove(sys: Sys, fd: int, name: str) -> None:
    try:
        sys.removexattr(fd, name)
    except OSError as error:
        # XFS shows an ACL under two names; removing one may have removed the other.
        if error.errno != errno.ENODATA:
            raise


def flags_of(sys: Sys, fd: int, abilities: Abilities) -> int:
    """Return the inode flags that matter of an open file or directory; 0 without support."""
    if not abilities.flags:
        return 0
    try:
        raw = sys.ioctl(fd, syscalls.FS_IOC_GETFLAGS, bytes(_LONG.size))
    except OSError as error:
        abilities.flags = _still_there(error)
        return 0
    return int(_LONG.unpack(raw)[0]) & (KEPT_FLAGS | SHOWN_FLAGS | IMMUTABLE | UNCOPYABLE)


def _marks(sys: Sys, fd: int, abilities: Abilities) -> Marks:
    flags = flags_of(sys, fd, abilities)
    if not abilities.project:
        return Marks(flags)
    try:
        raw = sys.ioctl(fd, syscalls.FS_IOC_FSGETXATTR, bytes(_FSX.size))
    except OSError as error:
        abilities.project = _still_there(error)
        return Marks(flags)
    hints, extent, _, project, cow = _FSX.unpack(raw)
    sizes = (extent if hints & _EXTSIZE else 0, cow if hints & _COWEXTSIZE else 0)
    return Marks(flags, project, (hints & KEPT_HINTS, *sizes))


def dos(sys: Sys, fd: int, abilities: Abilities) -> int:
    """Return the DOS attributes of an open file; 0 without support. Raises OSError."""
    if not abilities.dos:
        return 0
    try:
        raw = sys.ioctl(fd, syscalls.ZFS_IOC_GETDOSFLAGS, bytes(8))
    except OSError as error:
        abilities.dos = _still_there(error)
        return 0
    return int(struct.unpack("=Q", raw)[0])


def _still_there(error: OSError) -> bool:
    """Return False if the error means a filesystem without the ioctl; else raise the error."""
    if error.errno in _ABSENT:
        return False
    raise error
