"""Every system call the engines make on users' files, behind one object.

Tests put a wrapper in its place that kills or fails the engine at the Nth call. Nothing here
copies data inside the kernel: copy_file_range, sendfile and reflinks clone blocks on ZFS 2.2+
and move nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Container
from pathlib import Path
from typing import Final

RENAME_EXCHANGE: Final = 2
AT_EMPTY_PATH: Final = 0x1000
FS_IOC_GETFLAGS: Final = 0x80086601
FS_IOC_SETFLAGS: Final = 0x40086602
FS_IOC_FSGETXATTR: Final = 0x801C581F
FS_IOC_FSSETXATTR: Final = 0x401C5820
FS_IOC_FIEMAP: Final = 0xC020660B
ZFS_IOC_GETDOSFLAGS: Final = 0x80088301
ZFS_IOC_SETDOSFLAGS: Final = 0x40088302
ZFS_IOC_REWRITE: Final = 0x40208303
"""``_IOW(0x83, 3, zfs_rewrite_args_t)``: off, len, flags, arg (include/sys/fs/zfs.h 2.3.4)."""

IN_NAMES: Final = 0x40 | 0x80 | 0x100 | 0x200
"""IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE (linux/inotify.h)."""
IN_Q_OVERFLOW: Final = 0x4000
_EVENTS = 1 << 16
_HANDLE = struct.Struct("=Ii")
_HANDLE_BYTES = 128
"""Length and type of a struct file_handle, and MAX_HANDLE_SZ (linux/exportfs.h)."""

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SOURCE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, name: bytes = b"") -> None:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.fsdecode(name) or None)


class Sys:
    """The calls themselves. Names are bytes, relative to a directory descriptor; errors OSError."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    lseek = staticmethod(os.lseek)
    """For estimates alone: a filesystem may say that there is a hole where there is data."""
    ftruncate = staticmethod(os.ftruncate)
    fchown = staticmethod(os.fchown)
    fchmod = staticmethod(os.fchmod)
    fadvise = staticmethod(os.posix_fadvise)
    fsync = staticmethod(os.fsync)
    sync = staticmethod(os.sync)
    listxattr = staticmethod(os.listxattr)
    ioctl: Final[Callable[[int, int, bytes], bytes]] = staticmethod(fcntl.ioctl)  # type: ignore[assignment]
    """An ioctl on a structure; returns the structure as the kernel left it."""

    def lstat(self, directory: int, name: bytes) -> os.stat_result:
        """The status of a name, links not followed."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
        """Access and modification time, in nanoseconds."""
        os.utime(fd, ns=(atime_ns, mtime_ns))

    def getxattr(self, fd: int, name: str) -> bytes:
        """The value of one extended attribute."""
        return os.getxattr(fd, name)

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        """Create or replace one extended attribute."""
        os.setxattr(fd, name, value)

    def removexattr(self, fd: int, name: str) -> None:
        """Remove one extended attribute."""
        os.removexattr(fd, name)

    def reopen(self, fd: int, flags: int) -> int:
        """A new open file description of the same inode, named or not."""
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        """Read into a buffer of whole pages, as O_DIRECT wants; returns the bytes read."""
        return os.preadv(fd, [buffer], offset)

    def open_new(self, directory: int, name: bytes, mode: int) -> int:
        """A file that did not exist before."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=directory)

    def link_fd(self, fd: int, directory: int, name: bytes) -> None:
        """Give the inode behind ``fd`` a name; fails with EEXIST where it is taken."""
        try:
            _check(_libc.linkat(fd, b"", directory, name, AT_EMPTY_PATH), name)
        except FileNotFoundError:  # what a process without CAP_DAC_READ_SEARCH is told
            path = f"/proc/self/fd/{fd}"
            os.link(path, name, dst_dir_fd=directory, follow_symlinks=True)

    def link(self, directory: int, name: bytes, other: bytes) -> None:
        """A second name in the same directory; a symbolic link is linked itself."""
        os.link(name, other, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)

    def rename(self, directory: int, name: bytes, other: bytes) -> None:
        """Replace ``other`` by ``name``, atomically."""
        os.rename(name, other, src_dir_fd=directory, dst_dir_fd=directory)

    def exchange(self, directory: int, name: bytes, other: bytes) -> None:
        """Swap two names, atomically (renameat2 with RENAME_EXCHANGE)."""
        _check(_libc.renameat2(directory, name, directory, other, RENAME_EXCHANGE), name)

    def unlink(self, directory: int, name: bytes) -> None:
        """Remove a name; never a directory."""
        os.unlink(name, dir_fd=directory)

    def syncfs(self, fd: int) -> None:
        """Return when everything written to this filesystem is durable."""
        try:
            _check(_libc.syncfs(fd))
        except OSError as error:
            with contextlib.suppress(OSError):  # a path longer than the kernel prints
                error.filename = os.fspath(Path(f"/proc/self/fd/{fd}").readlink())
            raise

    def lease(self, fd: int, kind: int) -> None:
        """Take or drop a lease (F_RDLCK, F_UNLCK); EAGAIN when another process writes the file."""
        fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)

    def leased(self, fd: int) -> bool:
        """Whether the read lease is still ours: False as soon as somebody opens it for writing."""
        return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK

    def handle(self, fd: int) -> bytes:
        """A file handle: unlike an inode number, never reused for another file.

        Empty where there are no handles (name_to_handle_at(2)).
        """
        found = ctypes.create_string_buffer(_HANDLE.pack(_HANDLE_BYTES, 0), 8 + _HANDLE_BYTES)
        mount = ctypes.c_int()
        if _libc.name_to_handle_at(fd, b"", found, ctypes.byref(mount), AT_EMPTY_PATH) == -1:
            return b""
        return found.raw[: 8 + _HANDLE.unpack_from(found)[0]]

    def name_of(self, directory: int, inode: int, but: Container[bytes] = ()) -> bytes | None:
        """A name that an inode has in a directory, as far as its listing tells.

        None where it has no name ``but`` those.
        """
        with os.scandir(directory) as entries:
            names = (os.fsencode(entry.name) for entry in entries if entry.inode() == inode)
            return next((name for name in names if name not in but), None)

    def watcher(self) -> int:
        """A queue of changes of names, which never blocks (inotify)."""
        queue = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        _check(queue)
        return int(queue)

    def watch(self, queue: int, directory: int) -> int:
        """Report names that come, go or change in a directory to the queue."""
        number = _libc.inotify_add_watch(queue, b"/proc/self/fd/%d" % directory, IN_NAMES)
        _check(number)
        return int(number)

    def changes(self, queue: int) -> bytes:
        """All events that wait in a queue, one after the other."""
        found = b""
        try:
            while data := os.read(queue, _EVENTS):
                found += data
        except BlockingIOError:
            return found
        return found

    def rewrite(self, fd: int, offset: int, length: int, flags: int) -> None:
        """Have ZFS write a range again in place; length 0 is to the end (zfs_rewrite, 2.3.4)."""
        fcntl.ioctl(fd, ZFS_IOC_REWRITE, struct.pack("=4Q", offset, length, flags, 0))
