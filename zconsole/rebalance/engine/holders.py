"""Inodes that processes hold open by any descriptor, from /proc/PID/fd and /proc/PID/fdinfo.

Nothing here can hang on a dead server. ``readlink`` of a descriptor prints a path from the
kernel's memory, and fdinfo the numbers of the mount and the inode; neither asks the filesystem.
A stat of the descriptor would: it revalidates the file, even with AT_STATX_DONT_SYNC (complete_walk
calls d_weak_revalidate, fs/namei.c; NFS asks its server). It is used on kernels before 5.14 only,
which print no inode number, and there only on local filesystems.

Mappings are not read: a shared mapping that can be written to keeps its file open for writing,
which refuses the lease; one that can't be never becomes writable (VM_MAYWRITE, mm/mmap.c). Running
programs are not read either: nobody can write to them (ETXTBSY).

A thread may have its own descriptors, or its own root and mounts (unshare(2)). kcmp(2) tells which
threads have: reading them all would cost a hundred times as much for a process of a hundred.
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
"""Descriptors read between two calls of ``listen``: a process may have a million."""
_NO_FILES = re.compile(r"/(?:memfd:.*|SYSV[0-9a-f]{8}) \(deleted\)|/dmabuf:.*", re.DOTALL)
"""Links that look like paths, of kernel objects without a name (d_dname, simple_dname).

A file in the root directory may be called the same: it is on a mount.
"""
ROUNDS = 5
"""Most listings of the processes in one look; new ones may appear for ever."""
_NAMESPACE = "mnt:["
"""Beginning of the link of a descriptor on a mount namespace."""
KCMP_FILES, KCMP_FS = 2, 3
"""Compare descriptors; or root directories (linux/kcmp.h).

Threads that share a root also share mounts: setns(2) and unshare(2) see to that.
"""
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
"""Number of the kcmp system call (asm/unistd.h); on other machines all threads are read."""
_SINGLE = 3
"""Link count of ``task`` in a process of one thread (proc_task_getattr, fs/proc/base.c)."""
_libc = ctypes.CDLL(None)


class HeldFile(NamedTuple):
    """A descriptor of a process on something that has a path."""

    process: str
    mount: int
    """Number of the mount it was opened through; -1 if unknown."""
    link: str
    """Path of the descriptor below /proc, such as ``1/fd/3``."""
    inode: int | None
    """None if this kernel does not tell."""
    nameless: bool
    """Whether it may have no name: then it is on no mount of any table."""


@dataclass(slots=True)
class Holders:
    """A snapshot of the descriptors that processes have on files."""

    by_inode: defaultdict[int | None, list[HeldFile]] = field(
        default_factory=lambda: defaultdict(list)
    )
    proc: Path = PROC
    hidden: list[str] = field(default_factory=list)
    """Processes whose descriptors we may not read."""
    namespaces: set[str] = field(default_factory=set)
    """Mount namespaces held by a descriptor, as ``mnt:[1]``."""

    @classmethod
    def look(
        cls, but: Container[str], listen: Callable[[], None] = lambda: None, proc: Path = PROC
    ) -> Holders:
        """Read all processes but those in ``but``; ``listen`` is called now and then."""
        found, seen = cls(proc=proc), set[str]()
        with opened(os.fspath(proc)) as table:
            # Again: one that is started meanwhile inherits the files of another, which may end.
            for _ in range(ROUNDS):
                if not (new := set(processes(table)) - seen):
                    break
                seen |= new
                for process in sorted(new, key=int):
                    listen()
                    if process not in but:
                        found._look_at(table, process, listen)
        return found

    def _look_at(self, table: int, process: str, listen: Callable[[], None]) -> None:
        hidden = False
        for place in places(table, process, KCMP_FILES):
            try:
                self._read(table, place, process, listen)
                hidden = False
            except PermissionError:
                hidden = True
                # A first thread that has ended is root's (task_dump_owner, fs/proc/base.c), but the
                # other threads, which we may read, have the same descriptors.
                if place != process:
                    break
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended
        if hidden:
            self.hidden.append(process)

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
                    if link.startswith("/"):  # something in a filesystem, no pipe or socket
                        nameless = _NO_FILES.fullmatch(link) is not None
                        held = _held(table, place, number, process, nameless)
                        self.by_inode[held.inode].append(held)


@contextlib.contextmanager
def opened(path: str, directory: int | None = None) -> Iterator[int]:
    """Open a directory for the time of the context. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def names(directory: int) -> list[str]:
    """Return the names in an open directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries]


def processes(table: int) -> list[str]:
    """Return the ids of all processes visible in an open /proc. Raises OSError."""
    return [name for name in names(table) if name.isdecimal()]


def places(table: int, process: str, what: int) -> Iterator[str]:
    """Yield a process, then its threads with descriptors (KCMP_FILES) or mounts (KCMP_FS) apart.

    They are paths below ``table``, an open /proc. A first thread that has ended, while others go
    on, shares nothing. Yields all threads if the kernel does not tell.
    """
    yield process
    try:
        if os.stat(f"{process}/task", dir_fd=table).st_nlink == _SINGLE:
            return
        with opened(f"{process}/task", table) as tasks:
            others = [name for name in names(tasks) if name != process]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return  # it ended, or we may not read it
    number = _KCMP.get(platform.machine()) if _is_ours(table) else None
    for name in others:
        if number is None or _libc.syscall(number, int(process), int(name), what, 0, 0):
            yield f"{process}/task/{name}"


def _is_ours(table: int) -> bool:
    """Whether the process ids in an open /proc are those that system calls take.

    They are not if /proc is of another PID namespace. A 32-bit Python has other system calls.
    """
    return sys.maxsize > 2**32 and os.readlink("self", dir_fd=table) == str(os.getpid())


def name_of(process: str, proc: Path) -> str:
    """Return ``name (pid 1)``, at most 30 characters.

    Control characters are replaced, as a process may call itself anything.
    """
    try:
        name = (proc / process / "comm").read_bytes().rstrip(b"\n").decode(errors="replace")
    except OSError:
        name = ""
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return f"{shown[:15] or 'a process'} (pid {process})"


def _link(links: int, number: str) -> str:
    """Return the path of a descriptor; ``/`` if it is longer than the kernel prints (d_path)."""
    try:
        return os.readlink(number, dir_fd=links)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return "/"


def _held(table: int, place: str, number: str, process: str, nameless: bool) -> HeldFile:
    flags = os.O_RDONLY | os.O_CLOEXEC
    fd = os.open(f"{place}/fdinfo/{number}", flags, dir_fd=table)
    try:
        text = os.read(fd, 256)  # pos, flags, mnt_id and ino are the first lines (seq_show)
    finally:
        os.close(fd)
    mount, inode = _value(text, b"mnt_id:"), _value(text, b"\nino:")
    link = f"{place}/fd/{number}"
    return HeldFile(process, -1 if mount is None else mount, link, inode, nameless)


def _value(text: bytes, name: bytes) -> int | None:
    at = text.find(name)
    return int(text[at + len(name) :].split(maxsplit=1)[0]) if at >= 0 else None
