"""Every system call that the engines make on users' files, behind one object.

Tests replace it by a wrapper that kills or fails the engine at the Nth call. No call here copies
data inside the kernel: copy_file_range, sendfile and reflinks clone blocks on ZFS 2.2+, so nothing
would move.
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
"""Set on the event that replaces those for which the queue had no room."""
_EVENTS = 1 << 16
"""Bytes of events read at once."""
_LARGEST_EVENT = 16 + 4096
"""Bytes of an event with the longest name: ZFS has names of up to 1,023 bytes, FUSE longer ones."""
_HANDLE = struct.Struct("=Ii")
"""Length and type, with which a struct file_handle begins."""
_HANDLE_BYTES = 128
"""MAX_HANDLE_SZ (linux/exportfs.h)."""

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SOURCE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, name: bytes = b"") -> None:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.fsdecode(name) or None)


class Sys:
    """The system calls. Names are bytes, relative to a directory descriptor; all raise OSError."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    ftruncate = staticmethod(os.ftruncate)
    fchown = staticmethod(os.fchown)
    fchmod = staticmethod(os.fchmod)
    fadvise = staticmethod(os.posix_fadvise)
    sync = staticmethod(os.sync)
    listxattr = staticmethod(os.listxattr)
    ioctl: Final[Callable[[int, int, bytes], bytes]] = staticmethod(fcntl.ioctl)  # type: ignore[assignment]
    """Call an ioctl on a structure; returns the structure as the kernel left it."""

    def lstat(self, directory: int, name: bytes) -> os.stat_result:
        """Return the status of a name; symbolic links are not followed."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
        """Set access and modification time, in nanoseconds."""
        os.utime(fd, ns=(atime_ns, mtime_ns))

    def getxattr(self, fd: int, name: str) -> bytes:
        """Return the value of one extended attribute."""
        return os.getxattr(fd, name)

    def setxattr(self, fd: int, name: str, value: bytes) -> None:
        """Create or replace one extended attribute."""
        os.setxattr(fd, name, value)

    def removexattr(self, fd: int, name: str) -> None:
        """Remove one extended attribute."""
        os.removexattr(fd, name)

    def reopen(self, fd: int, flags: int) -> int:
        """Open an inode again, whether it has a name or not; returns a new descriptor."""
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        """Read into a buffer of whole pages, as O_DIRECT requires; return the bytes read."""
        return os.preadv(fd, [buffer], offset)

    def open_new(self, directory: int, name: bytes, mode: int) -> int:
        """Create a file and open it; fails with EEXIST if the name is taken."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=directory)

    def link_fd(self, fd: int, directory: int, name: bytes) -> None:
        """Give the inode behind ``fd`` a name; fails with EEXIST if the name is taken."""
        try:
            _check(_libc.linkat(fd, b"", directory, name, AT_EMPTY_PATH), name)
        except FileNotFoundError:  # linkat(2): AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH
            path = f"/proc/self/fd/{fd}"
            os.link(path, name, dst_dir_fd=directory, follow_symlinks=True)

    def link(self, directory: int, name: bytes, other: bytes) -> None:
        """Add a name in the same directory; a symbolic link is linked itself, not its target."""
        os.link(name, other, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)

    def rename(self, directory: int, name: bytes, other: bytes) -> None:
        """Rename ``name`` to ``other``, replacing that atomically."""
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
        """Whether we have the read lease still: not once somebody opens the file for writing."""
        return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK

    def handle(self, fd: int) -> bytes:
        """Return a file handle, which unlike an inode number is never reused for another file.

        Empty if the filesystem has no handles (name_to_handle_at(2)).
        """
        found = ctypes.create_string_buffer(_HANDLE.pack(_HANDLE_BYTES, 0), 8 + _HANDLE_BYTES)
        mount = ctypes.c_int()
        if _libc.name_to_handle_at(fd, b"", found, ctypes.byref(mount), AT_EMPTY_PATH) == -1:
            return b""
        return found.raw[: 8 + _HANDLE.unpack_from(found)[0]]

    def name_of(self, directory: int, inode: int, but: Container[bytes] = ()) -> bytes | None:
        """Return a name that an inode has in a directory, other than those in ``but``.

        None if its listing has no such name.
        """
        with os.scandir(directory) as entries:
            names = (os.fsencode(entry.name) for entry in entries if entry.inode() == inode)
            return next((name for name in names if name not in but), None)

    def watcher(self) -> int:
        """Return a nonblocking queue for changes of names (inotify(7))."""
        queue = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        _check(queue)
        return int(queue)

    def watch(self, queue: int, directory: int) -> int:
        """Have names that come, go or change in a directory reported; return the watch's number."""
        number = _libc.inotify_add_watch(queue, b"/proc/self/fd/%d" % directory, IN_NAMES)
        _check(number)
        return int(number)

    def changes(self, queue: int) -> bytes:
        """Return all events that wait in a queue, as ``struct inotify_event`` in a row."""
        found, is_full = b"", True
        with contextlib.suppress(BlockingIOError):
            while is_full:
                data = os.read(queue, _EVENTS)
                found += data
                is_full = len(data) > _EVENTS - _LARGEST_EVENT
        return found

    def rewrite(self, fd: int, offset: int, length: int, flags: int) -> None:
        """Have ZFS rewrite a range in place; length 0 means to the end (zfs_rewrite, 2.3.4)."""
        fcntl.ioctl(fd, ZFS_IOC_REWRITE, struct.pack("=4Q", offset, length, flags, 0))
