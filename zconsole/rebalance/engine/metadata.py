"""Everything a file carries besides its content: read, put onto a copy, and compared.

Owner, mode, times in nanoseconds, every extended attribute this process may see (POSIX ACLs and
capabilities are attributes too), inode flags, project id and, on ZFS, the DOS attributes.
"""

from __future__ import annotations

import errno
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
"""FS_VERITY_FL: a copy cannot carry the signature."""
KEPT_FLAGS = 0x0003_80FF | 0x0080_0000 | 0x0200_0000 | 0x2000_0000
"""What a user may set on a file (FS_FL_USER_MODIFIABLE), and NOCOW, DAX, PROJINHERIT."""
PRIVATE = 0o600
"""Permissions of a copy as long as it might show too much."""
NONE: Mapping[str, bytes] = MappingProxyType({})
Marks = tuple[int, int]
"""Inode flags and project id."""
_ABSENT = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_FSX = struct.Struct("=5I8x")
_LONG = struct.Struct("=l4x") if struct.calcsize("l") == 4 else struct.Struct("l")


@dataclass(slots=True)
class Abilities:
    """Which of the flag ioctls a filesystem answers; learnt from the first file asked."""

    flags: bool = True
    project: bool = True
    dos: bool = True
    extents: bool = True


class Metadata(NamedTuple):
    """What a copy must have like its original. Times are nanoseconds."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    atime_ns: int
    flags: int = 0
    project: int = 0
    dos: int = 0
    xattrs: Mapping[str, bytes] = NONE

    def same(self, other: Metadata) -> bool:
        """Whether nothing differs; access time aside, which any reader may move."""
        return self == other or self == other._replace(atime_ns=self.atime_ns)

    def difference(self, other: Metadata) -> str | None:
        """What differs, in a word; None when nothing does."""
        if self == other:
            return None
        pairs = {
            "mode": self.mode == other.mode,
            "owner": (self.uid, self.gid) == (other.uid, other.gid),
            "size": self.size == other.size,
            "times": (self.mtime_ns, self.atime_ns) == (other.mtime_ns, other.atime_ns),
            "flags": (self.flags, self.dos) == (other.flags, other.dos),
            "project": self.project == other.project,
        }
        return next((word for word, equal in pairs.items() if not equal), "xattrs")


def read(sys: Sys, fd: int, abilities: Abilities) -> tuple[Metadata, os.stat_result]:
    """The metadata and status of an open file. Raises OSError.

    The status is from before all else is read: whoever changes any of it afterwards leaves another
    ctime.
    """
    status = sys.fstat(fd)
    flags, project = flags_of(sys, fd, abilities), _project(sys, fd, abilities)
    found, _ = reread(sys, fd, flags, project, dos(sys, fd, abilities))
    return found, status


def reread(
    sys: Sys, fd: int, flags: int, project: int, dos: int
) -> tuple[Metadata, os.stat_result]:
    """The metadata and status of a file whose flags and project are known already."""
    status = sys.fstat(fd)
    names = sys.listxattr(fd)
    found = Metadata(
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_atime_ns,
        flags,
        project,
        dos,
        {name: sys.getxattr(fd, name) for name in names} if names else NONE,
    )
    return found, status


def first_mode(wanted: Metadata, born: Metadata | None) -> int:
    """Permissions to create a copy with, when files are ``born`` like that beside the original.

    Its own at once where they let nobody do more than the original does, and only its owner
    write; else private, until it has its owner and access lists.
    """
    mode = stat.S_IMODE(wanted.mode)
    alike = born is not None and (born.uid, born.gid) == (wanted.uid, wanted.gid)
    plain = alike and not wanted.xattrs and not (born and born.xattrs)
    return mode if plain and mode & ~0o755 == 0 else PRIVATE


def mark(sys: Sys, fd: int, wanted: Metadata, abilities: Abilities) -> Marks | None:
    """Give an empty copy its inode flags and project: some count only before the first write.

    Returns those it has where they were right already; None where they had to be changed.
    """
    flags, project = flags_of(sys, fd, abilities), _project(sys, fd, abilities)
    changed = False
    if (flags ^ wanted.flags) & KEPT_FLAGS:
        raw = _LONG.unpack(sys.ioctl(fd, syscalls.FS_IOC_GETFLAGS, bytes(_LONG.size)))[0]
        word = (raw & ~KEPT_FLAGS) | (wanted.flags & KEPT_FLAGS)
        sys.ioctl(fd, syscalls.FS_IOC_SETFLAGS, _LONG.pack(word))
        changed = True
    if project != wanted.project:
        fields = list(_FSX.unpack(sys.ioctl(fd, syscalls.FS_IOC_FSGETXATTR, bytes(_FSX.size))))
        fields[3] = wanted.project
        sys.ioctl(fd, syscalls.FS_IOC_FSSETXATTR, _FSX.pack(*fields))
        changed = True
    return None if changed else (flags, project)


def apply(sys: Sys, fd: int, wanted: Metadata, fresh: Metadata, abilities: Abilities) -> None:
    """Put owner, attributes, mode, DOS flags and times onto a written copy, in the safe order.

    Owner first (it clears setuid bits and capabilities), times last. Raises OSError.
    """
    if (fresh.uid, fresh.gid) != (wanted.uid, wanted.gid):
        sys.fchown(fd, wanted.uid, wanted.gid)
    for name in fresh.xattrs:
        if name not in wanted.xattrs:
            _remove(sys, fd, name)
    for name, value in wanted.xattrs.items():
        sys.setxattr(fd, name, value)
    if fresh.mode != wanted.mode or wanted.xattrs or fresh.xattrs:
        sys.fchmod(fd, wanted.mode & 0o7777)
    if abilities.dos and fresh.dos != wanted.dos:
        sys.ioctl(fd, syscalls.ZFS_IOC_SETDOSFLAGS, struct.pack("=Q", wanted.dos))
    sys.set_times(fd, wanted.atime_ns, wanted.mtime_ns)


def _remove(sys: Sys, fd: int, name: str) -> None:
    try:
        sys.removexattr(fd, name)
    except OSError as error:
        # XFS shows an ACL under two names, of which the other may be gone with it.
        if error.errno != errno.ENODATA:
            raise


def flags_of(sys: Sys, fd: int, abilities: Abilities) -> int:
    """The inode flags that matter, of an open file or directory; 0 where there are none."""
    if not abilities.flags:
        return 0
    try:
        raw = sys.ioctl(fd, syscalls.FS_IOC_GETFLAGS, bytes(_LONG.size))
    except OSError as error:
        abilities.flags = _still_there(error)
        return 0
    return int(_LONG.unpack(raw)[0]) & (KEPT_FLAGS | IMMUTABLE | UNCOPYABLE)


def _project(sys: Sys, fd: int, abilities: Abilities) -> int:
    if not abilities.project:
        return 0
    try:
        raw = sys.ioctl(fd, syscalls.FS_IOC_FSGETXATTR, bytes(_FSX.size))
    except OSError as error:
        abilities.project = _still_there(error)
        return 0
    return int(_FSX.unpack(raw)[3])


def dos(sys: Sys, fd: int, abilities: Abilities) -> int:
    """The DOS attributes of an open file; 0 where there are none. Raises OSError."""
    if not abilities.dos:
        return 0
    try:
        raw = sys.ioctl(fd, syscalls.ZFS_IOC_GETDOSFLAGS, bytes(8))
    except OSError as error:
        abilities.dos = _still_there(error)
        return 0
    return int(struct.unpack("=Q", raw)[0])


def _still_there(error: OSError) -> bool:
    """False for a filesystem without the ioctl; any other error is a failure of this file."""
    if error.errno in _ABSENT:
        return False
    raise error
