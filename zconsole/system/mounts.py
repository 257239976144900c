"""Mount tables of processes (proc_pid_mountinfo(5)), and the files that paths in them lead to.

Reading a mount table asks no filesystem anything, so a dead server can't delay it. Places are
compared by the device of the filesystem and the path within it. The kernel makes both from its own
directory entries, so they are the same in every mount namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

LOCAL = frozenset(
    b"zfs ext2 ext3 ext4 xfs btrfs bcachefs f2fs jfs nilfs2 tmpfs ramfs devtmpfs rootfs"
    b" squashfs erofs iso9660 udf vfat exfat ntfs3".split()
)
"""Filesystems that may be asked about a name, as no server or other process answers for them.

Overlays are not among them: their layers may be on a server, or be served by a process (FUSE).
"""
LINKS = 40
"""Symbolic links followed in one path, as in the kernel (MAXSYMLINKS, linux/namei.h)."""
PATH_MAX = 4096
"""Bytes of a path that a system call takes, with the 0 at its end (linux/limits.h)."""
SELF = Path("/proc/self")
_STATFS = 256
"""Bytes, more than enough, for a struct statfs, whose first member is the type, a long."""
_libc = ctypes.CDLL(None)
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Spot(NamedTuple):
    """A place in a filesystem: its device number (``8:1``) and the absolute path within it."""

    device: bytes
    path: bytes

    def holds(self, other: Spot) -> bool:
        """Return whether ``other`` is the same place, or inside it."""
        return self.device == other.device and is_inside(other.path, self.path)


@dataclass(frozen=True, slots=True)
class MountPoint:
    """A mount, as a line of a mount table describes it."""

    number: int
    parent: int
    device: bytes
    root: bytes
    """Path of the mounted directory within its filesystem."""
    point: bytes
    """Path of the mount point, as the process sees it."""
    kind: bytes
    """Type of the filesystem: ``zfs``."""
    options: bytes
    """Options of the filesystem, with escapes."""
    source: bytes = b""
    """Device, or dataset on ZFS."""
    read_only: bool = False
    """Whether the mount or the whole filesystem is read-only."""
    idmapped: bool = False
    """Whether owners are mapped to others (mount_setattr(2))."""

    def spot(self, path: bytes) -> Spot:
        """Return the place in the filesystem of a path, which must be in this mount."""
        return Spot(self.device, _joined(self.root, path[len(self.point.rstrip(b"/")) :]))


@dataclass(slots=True)
class View:
    """The mounts that a process sees; ``process`` is its directory in /proc."""

    process: Path
    mounts: dict[int, MountPoint]
    _at: dict[tuple[int, bytes], MountPoint] = field(default_factory=dict)
    """Mounts, by the mount and the path that they are mounted on; the last one covers others."""
    _root: MountPoint | None = None
    _by_device: dict[bytes, list[MountPoint]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.mounts.values():
            self._at[each.parent, each.point] = each
            self._by_device.setdefault(each.device, []).append(each)
            # The root's parent is not in the table: it is outside what the process sees. Mounts on
            # top of the root have a parent in it.
            if each.point == b"/" and each.parent not in self.mounts:
                self._root = each

    def seen_by(self, process: Path) -> View:
        """Return the same mounts as a view of another process; links are read in its root."""
        return View(process, self.mounts)

    def top(self, path: bytes) -> MountPoint | None:
        """Return the mount of a path, which must have no symbolic links; None if it is not seen."""
        return self._way(path)[-1]

    def local_path(self, spot: Spot) -> bytes | None:
        """Return a path to a place that leads only through LOCAL filesystems.

        None without one that is short enough to be used.
        """
        for mount in self._by_device.get(spot.device, ()):
            path = self.path_through(mount, spot)
            if path is None or len(path) >= PATH_MAX:
                continue
            if all(each and each.kind in LOCAL for each in self._way(path)):
                return path
        return None

    def path_through(self, mount: MountPoint, spot: Spot) -> bytes | None:
        """Return the path of a place through a mount; None if it is not in it, or covered."""
        if not is_inside(spot.path, mount.root):
            return None
        path = _joined(mount.point, spot.path[len(mount.root.rstrip(b"/")) :])
        return path if self.top(path) is mount else None

    def spots(self) -> Iterator[Spot]:
        """Yield the root of each mount that is not a whole filesystem, and what mounts cover."""
        for mount in self.mounts.values():
            if mount.root != b"/":
                yield Spot(mount.device, mount.root)
            if below := self.below(mount):
                yield below

    def _way(self, path: bytes) -> list[MountPoint | None]:
        """Return the mounts along a path without symbolic links: the root's, and each name's."""
        way, at = [self._start[1]], b""
        for name in path.split(b"/"):
            if name:
                at += b"/" + name
                way.append(self._crossed(way[-1], at))
        return way

    def below(self, mount: MountPoint) -> Spot | None:
        """Return the directory that a mount covers; None if the process doesn't see its parent."""
        parent = self.mounts.get(mount.parent)
        if parent is None or not is_inside(mount.point, parent.point):
            return None
        return parent.spot(mount.point)

    def follow(self, path: bytes, sure: bool = False) -> Spot | None:
        """Return the place an absolute path leads to, following links; None if there is none.

        No name is looked up on or beyond a filesystem that is not LOCAL, as that may hang: names
        there are taken not to be links, or with ``sure``, not to exist.
        """
        todo, links = path.split(b"/")[::-1], 0
        at, mount, asks = self._start
        while todo and mount is not None and links <= LINKS:
            name = todo.pop()
            here = at.rpartition(b"/")[0] if name == b".." else at + b"/" + name
            if name in (b"", b".") or here == at:  # the latter: ".." in the root is the root
                continue
            # Once a filesystem on the way is not LOCAL, nothing beyond it is asked either: the
            # kernel would ask that one first.
            asks = asks and mount.kind in LOCAL
            inner = self.top(here) if name == b".." else self._crossed(mount, here)
            # Only a name within the same mount can be a link: a mount point is none.
            target = b"" if inner is not mount else self._link(here, asks, sure)
            if target is None:
                return None
            if target:
                links, todo = links + 1, [*todo, *target.split(b"/")[::-1]]
                at, mount, asks = self._start if target.startswith(b"/") else (at, mount, asks)
            else:
                at, mount = here, inner
        return mount.spot(at) if mount and not todo else None

    @property
    def _start(self) -> tuple[bytes, MountPoint | None, bool]:
        return b"", self._crossed(self._root, b""), True

    def _crossed(self, mount: MountPoint | None, path: bytes) -> MountPoint | None:
        """Return the topmost mount at a path in a mount; that mount itself if none covers it."""
        while mount is not None:
            covering = self._at.get((mount.number, path or b"/"))
            if covering is None or covering is mount:
                break
            mount = covering
        return mount

    def _link(self, path: bytes, asks: bool, sure: bool) -> bytes | None:
        """Return the target of a symbolic link, empty for anything else; None if it is missing.

        Without ``asks`` the filesystem is not asked: None with ``sure``, else empty.
        """
        if not asks:
            return None if sure else b""
        whole = Path(os.fsdecode(os.fsencode(self.process / "root") + path))
        try:
            return os.fsencode(whole.readlink())
        except OSError as error:
            return b"" if error.errno == errno.EINVAL else None


def rows(table: bytes) -> Iterator[MountPoint]:
    """Yield the mounts of a table, in order."""
    # Not splitlines(): a name may contain other characters that end lines, such as \r.
    return (each for each in map(_mount, table.split(b"\n")) if each is not None)


def parse(table: bytes) -> dict[int, MountPoint]:
    """Return the mounts of a table, by number."""
    return {each.number: each for each in rows(table)}


def table_of(process: Path) -> bytes:
    """Return the mount table of a process. Raises OSError."""
    return (process / "mountinfo").read_bytes()


def mount_number(fd: int) -> int:
    """Return the number of the mount through which an open file was opened. Raises OSError."""
    text = (SELF / f"fdinfo/{fd}").read_bytes()
    return int(text.partition(b"mnt_id:")[2].split(maxsplit=1)[0])


def filesystem_type(fd: int) -> int:
    """Return the type of an open file's filesystem, as in statfs(2); 0 if that fails."""
    # os.fstatvfs() doesn't have the type.
    status = ctypes.create_string_buffer(_STATFS)
    return 0 if _libc.fstatfs(fd, status) else ctypes.c_ulong.from_buffer(status).value


def mount_at(path: bytes) -> int:
    """Return the number of the mount through which a directory is reached. Raises OSError."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return mount_number(fd)
    finally:
        os.close(fd)


def mounts_below(root: bytes, process: Path = SELF) -> list[MountPoint]:
    """Return the mounts that a process sees inside a directory. Raises OSError."""
    every = rows(table_of(process))
    return [each for each in every if is_inside(each.point, root) and each.point != root]


def plain(text: bytes) -> bytes:
    r"""Return text of a mount table with escapes such as ``\040`` replaced."""
    return (
        _OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), text) if b"\\" in text else text
    )


def is_inside(path: bytes, directory: bytes) -> bool:
    """Return whether an absolute path is a directory, or inside it."""
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


def ancestors(path: bytes) -> Iterator[bytes]:
    """Yield the directories above a path; the root, as an empty path, is last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _mount(line: bytes) -> MountPoint | None:
    # A number of optional fields, which are not used, ends with " - ".
    left, _, right = line.partition(b" - ")
    fields, rest = left.split(b" "), right.split(b" ")
    if len(fields) < 6 or len(rest) < 3:
        return None
    number, parent, device, root, point, own = fields[:6]
    return MountPoint(
        number=int(number),
        parent=int(parent),
        device=device,
        root=plain(root),
        point=plain(point),
        kind=rest[0],
        options=rest[2],
        source=plain(rest[1]),
        read_only=b"ro" in own.split(b",") + rest[2].split(b","),
        idmapped=b"idmapped" in own.split(b","),
    )


def _joined(root: bytes, rest: bytes) -> bytes:
    return (root.rstrip(b"/") + b"/" + rest.strip(b"/")).rstrip(b"/") or b"/"
