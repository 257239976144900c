"""Which processes have which inodes open, by any descriptor: /proc/PID/fd and /proc/PID/fdinfo.

Nothing here can hang on a dead server. ``readlink`` of a descriptor prints a path out of the
kernel's memory, and fdinfo the numbers of the mount and of the inode; neither asks the filesystem.
To stat a descriptor would: that revalidates the file, even with AT_STATX_DONT_SYNC (complete_walk
calls d_weak_revalidate, fs/namei.c; NFS asks its server). It is done on kernels before 5.14 only,
which print no inode number, and there only on the filesystems that the job works on.

What a process has mapped is not looked at: a shared mapping that can be written to keeps its file
open for writing, which refuses the lease; one that cannot never becomes writable (VM_MAYWRITE,
mm/mmap.c). Neither are running programs: nobody writes to those (ETXTBSY). A thread that has left
the descriptors or mounts of its process is not looked at, unless the process's first thread ended.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTEN = 256
"""Descriptors between two moments for others: a process may have a million."""
_NO_FILES = ("/memfd:", "/dmabuf:", "/SYSV")
"""Beginnings of paths that are none: what has no name in any filesystem (d_dname)."""


class Held(NamedTuple):
    """A descriptor on something that has a path."""

    process: str
    mount: int
    """Number of the mount it was opened through."""
    link: str
    """Where it is told of."""
    inode: int | None
    """None: this kernel does not say."""


@dataclass(slots=True)
class Holders:
    """Every descriptor on a file of all processes but some, at one moment."""

    by_inode: defaultdict[int | None, list[Held]] = field(default_factory=lambda: defaultdict(list))
    hidden: int = 0
    """Processes that may not be looked at."""

    @classmethod
    def look(
        cls, but: Container[str], listen: Callable[[], None] = lambda: None, proc: Path = PROC
    ) -> Holders:
        """Look at all processes now, ``but`` those; ``listen`` is called now and then."""
        found = cls()
        for process in processes(proc):
            listen()
            if process in but:
                continue
            try:
                found._read(proc / process, process, listen)
            except PermissionError:
                found.hidden += 1
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended
        return found

    def _read(self, place: Path, process: str, listen: Callable[[], None]) -> None:
        for task in alive(place):
            with opened(f"{task}/fd") as links, opened(f"{task}/fdinfo") as infos:
                for at, number in enumerate(names(links)):
                    if at % LISTEN == LISTEN - 1:
                        listen()
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        if is_file(os.readlink(number, dir_fd=links)):
                            held = _held(infos, number, f"{task}/fd/{number}", process)
                            self.by_inode[held.inode].append(held)


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """A directory, open meanwhile. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def names(directory: int) -> list[str]:
    """What is in an open directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries]


def alive(place: Path) -> list[Path]:
    """Where /proc tells of a process; of its other threads where the first one has ended.

    That one has no namespaces any more, and no descriptors. Raises OSError.
    """
    with opened(os.fspath(place)) as process:
        try:
            os.readlink("ns/mnt", dir_fd=process)
        except FileNotFoundError:
            return [task for task in (place / "task").iterdir() if task.name != place.name]
    return [place]


def processes(proc: Path = PROC) -> Iterator[str]:
    """The numbers of all processes that can be seen."""
    with opened(os.fspath(proc)) as directory:
        found = names(directory)
    return (name for name in found if name.isdecimal())


def is_file(link: str) -> bool:
    """Whether a descriptor's link names something in a filesystem: no pipe, no socket."""
    return link.startswith("/") and not link.startswith(_NO_FILES)


def name_of(process: str, proc: Path = PROC) -> str:
    """``name (pid 1)``, without characters that a terminal obeys; the name is of its choice."""
    try:
        name = (proc / process / "comm").read_bytes().rstrip(b"\n").decode(errors="replace")
    except OSError:
        name = ""
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return f"{shown or 'a process'} (pid {process})"


def _held(infos: int, number: str, link: str, process: str) -> Held:
    fd = os.open(number, os.O_RDONLY | os.O_CLOEXEC, dir_fd=infos)
    try:
        text = os.read(fd, 256)
    finally:
        os.close(fd)
    mount, inode = _value(text, b"mnt_id:"), _value(text, b"\nino:")
    return Held(process, -1 if mount is None else mount, link, inode)


def _value(text: bytes, name: bytes) -> int | None:
    at = text.find(name)
    return int(text[at + len(name) :].split(maxsplit=1)[0]) if at >= 0 else None
