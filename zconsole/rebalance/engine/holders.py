"""Which processes have which inodes open, by any descriptor: /proc/PID/fd and /proc/PID/fdinfo.

Nothing here can hang on a dead server. ``readlink`` of a descriptor prints a path out of the
kernel's memory, and fdinfo the numbers of the mount and of the inode; neither asks the filesystem.
To stat a descriptor would: that revalidates the file, even with AT_STATX_DONT_SYNC (complete_walk
calls d_weak_revalidate, fs/namei.c; NFS asks its server). It is done on kernels before 5.14 only,
which print no inode number, and there only on the filesystems that the job works on.

What a process has mapped is not looked at: a shared mapping that can be written to keeps its file
open for writing, which refuses the lease; one that cannot never becomes writable (VM_MAYWRITE,
mm/mmap.c). Neither are running programs: nobody writes to those (ETXTBSY).

A thread may have descriptors, or a root and mounts, of its own (unshare(2)). Which do is asked of
kcmp(2), as reading them all would cost a process of a hundred threads a hundred times as much.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTEN = 256
"""Descriptors between two moments for others: a process may have a million."""
_NO_FILES = re.compile(r"/(?:memfd:.*|SYSV[0-9a-f]{8}) \(deleted\)|/dmabuf:.*", re.DOTALL)
"""Paths that are none: what has no name in any filesystem (d_dname, simple_dname)."""
_NAMESPACE = "mnt:["
"""What a descriptor on a mount namespace begins with."""
KCMP_FILES, KCMP_FS = 2, 3
"""Descriptors; root and, as setns(2) and unshare(2) see to it, mounts (linux/kcmp.h)."""
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
"""Number of the call (asm/unistd.h); elsewhere all threads are read."""
_SINGLE = 3
"""Links of ``task`` in a process of one thread (proc_task_getattr, fs/proc/base.c)."""
_libc = ctypes.CDLL(None)


class HeldFile(NamedTuple):
    """A descriptor on something that has a path."""

    process: str
    mount: int
    """Number of the mount it was opened through."""
    link: str
    """Where it is, below /proc."""
    inode: int | None
    """None: this kernel does not say."""


@dataclass(slots=True)
class Holders:
    """Every descriptor on a file of all processes but some, at one moment."""

    by_inode: defaultdict[int | None, list[HeldFile]] = field(
        default_factory=lambda: defaultdict(list)
    )
    proc: Path = PROC
    hidden: list[str] = field(default_factory=list)
    """Processes that may not be looked at."""
    namespaces: set[str] = field(default_factory=set)
    """Mount namespaces that descriptors keep, as ``mnt:[1]``."""

    @classmethod
    def look(
        cls, but: Container[str], listen: Callable[[], None] = lambda: None, proc: Path = PROC
    ) -> Holders:
        """Look at all processes now, ``but`` those; ``listen`` is called now and then."""
        found = cls(proc=proc)
        with opened(os.fspath(proc)) as table:
            for process in processes(table):
                listen()
                if process in but:
                    continue
                hidden = False
                for place in places(table, process, KCMP_FILES):
                    try:
                        found._read(table, place, process, listen)
                        hidden = False
                    except PermissionError:
                        hidden = True
                        # A first thread that has ended is root's (task_dump_owner, fs/proc/base.c):
                        # its descriptors are those of the others, who may be looked at.
                        if place != process:
                            break
                    except (FileNotFoundError, ProcessLookupError):
                        continue  # it ended
                if hidden:
                    found.hidden.append(process)
        return found

    def _read(self, table: int, place: str, process: str, listen: Callable[[], None]) -> None:
        with opened(f"{place}/fd", table) as links:
            numbers = names(links)
            for at, number in enumerate(numbers):
                if at % LISTEN == LISTEN - 1:
                    listen()
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    link = _link(links, number)
                    if link.startswith(_NAMESPACE):
                        self.namespaces.add(link)
                    if _is_file(link):
                        held = _held(table, place, number, process)
                        self.by_inode[held.inode].append(held)


@contextlib.contextmanager
def opened(path: str, directory: int | None = None) -> Iterator[int]:
    """A directory, open meanwhile. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def names(directory: int) -> list[str]:
    """What is in an open directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries]


def processes(table: int) -> list[str]:
    """The numbers of all processes that can be seen in /proc, which is open. Raises OSError."""
    return [name for name in names(table) if name.isdecimal()]


def places(table: int, process: str, what: int) -> Iterator[str]:
    """A process and its threads that share no descriptors (KCMP_FILES) or mounts (KCMP_FS) with it.

    They are named below /proc, which is open. A first thread that has ended, as others may go on
    without it, shares nothing. All threads are given where the kernel does not tell.
    """
    yield process
    try:
        if os.stat(f"{process}/task", dir_fd=table).st_nlink == _SINGLE:
            return
        with opened(f"{process}/task", table) as tasks:
            others = [name for name in names(tasks) if name != process]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return  # it ended, or may not be looked at
    number = _KCMP.get(platform.machine()) if _is_ours(table) else None
    for name in others:
        if number is None or _libc.syscall(number, int(process), int(name), what, 0, 0):
            yield f"{process}/task/{name}"


def _is_ours(table: int) -> bool:
    """Whether the numbers in /proc, which is open, are those that system calls take."""
    return sys.maxsize > 2**32 and os.readlink("self", dir_fd=table) == str(os.getpid())


def name_of(process: str, proc: Path) -> str:
    """``name (pid 1)``, at most 30 characters.

    Those that a terminal obeys are left out, as a process may call itself what it likes.
    """
    try:
        name = (proc / process / "comm").read_bytes().rstrip(b"\n").decode(errors="replace")
    except OSError:
        name = ""
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return f"{shown[:15] or 'a process'} (pid {process})"


def _link(links: int, number: str) -> str:
    """What a descriptor is on; the root where the path is longer than the kernel tells (d_path)."""
    try:
        return os.readlink(number, dir_fd=links)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return "/"


def _is_file(link: str) -> bool:
    """Whether a descriptor is on something in a filesystem: no pipe, no socket."""
    return link.startswith("/") and not _NO_FILES.fullmatch(link)


def _held(table: int, place: str, number: str, process: str) -> HeldFile:
    flags = os.O_RDONLY | os.O_CLOEXEC
    fd = os.open(f"{place}/fdinfo/{number}", flags, dir_fd=table)
    try:
        text = os.read(fd, 256)
    finally:
        os.close(fd)
    mount, inode = _value(text, b"mnt_id:"), _value(text, b"\nino:")
    return HeldFile(process, -1 if mount is None else mount, f"{place}/fd/{number}", inode)


def _value(text: bytes, name: bytes) -> int | None:
    at = text.find(name)
    return int(text[at + len(name) :].split(maxsplit=1)[0]) if at >= 0 else None
