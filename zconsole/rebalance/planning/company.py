"""What a plan says of others that use the files: whom a copy touches, and who cannot be seen."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from zconsole.rebalance.engine import holders
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.holders import PROC
from zconsole.rebalance.planning.engine_choice import COPIES
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.system import mounts
from zconsole.system.patient import NoAnswerError, Patient

INITIAL = 0xEFFFFFFC
"""Inode of the namespace that all processes are in (PROC_PID_INIT_INO, linux/proc_ns.h)."""
_GUESTS = ("virtiofsd", "virtfs-proxy-he")
"""Programs that share a directory with a virtual machine, cut to the 15 characters of comm."""
_VIRTUAL = ("qemu", "kvm")
_SHARING = (b"-virtfs", b"-fsdev")
_STACKED = frozenset({0x794C7630, 0xF15F, 0x6A656A62, 0x61756673})
"""Types of overlay, ecryptfs (linux/magic.h), shiftfs and aufs, as statfs(2) gives them."""
_STATFS = 256
"""Bytes that hold a struct statfs, whose first member is the type, a long."""
_libc = ctypes.CDLL(None)


def notes(look: FilesInUse, plans: Sequence[DirectoryPlan], proc: Path = PROC) -> Iterator[str]:
    """What to know before files are copied; nothing for files that are rewritten in place."""
    copied = [plan for plan in plans if plan.choice.engine == "copy"]
    if not copied:
        return
    yield COPIES
    if who := _hidden(look.holders.hidden, proc):
        yield f"no permission to see the open files of {who}: such files are moved"
    if _in_container(proc):
        yield "in a container: files that processes outside it hold open are not seen"
    if look.unseen:
        yield f"{look.unseen} mount namespaces have no process: files mounted in them are not seen"
    if look.lost:
        yield (
            f"{look.lost} overlays are made of directories that are not found: unmount those made"
            " of directories here, or what is written through them is lost"
        )
    if process := _in_unmounted_overlay(look, proc):
        yield (
            f"{holders.name_of(process, proc)} may use an overlay that is mounted nowhere: end it,"
            " or what it writes to files here is lost"
        )
    if any(plan.shared for plan in copied):
        yield "exported over NFS or SMB: files that other hosts hold open are not seen"
    if _shares_with_guests(proc):
        yield "a directory is shared with a virtual machine: files it has cached are not seen"


def _hidden(processes: Sequence[str], proc: Path) -> str:
    """Whose open files are not seen; from root, too, a kernel hides those of who may do more."""
    if not (proc / "1").exists():
        return "other users"
    if len(processes) == 1:
        return holders.name_of(processes[0], proc)
    return f"{len(processes)} processes" if processes else ""


def _in_container(proc: Path) -> bool:
    """Whether /proc is that of a namespace in which only some processes are."""
    try:
        return (proc / "1/ns/pid").stat().st_ino != INITIAL
    except OSError:
        return (proc / "self/ns/pid").stat().st_ino != INITIAL


def _shares_with_guests(proc: Path) -> bool:
    with holders.opened(str(proc)) as table:
        return any(_is_sharing(proc / process) for process in holders.processes(table))


def _is_sharing(process: Path) -> bool:
    try:
        name = (process / "comm").read_text(errors="replace").strip()
        if name.startswith(_VIRTUAL):
            line = Patient().call((process / "cmdline").read_bytes)  # of its memory: may hang
            return any(word in _SHARING for word in line.split(b"\0"))
    except NoAnswerError:
        return True
    except OSError:
        return False  # it ended
    return name in _GUESTS


def _in_unmounted_overlay(look: FilesInUse, proc: Path) -> str | None:
    """A process that has something of an overlay which no mount table has; None without one.

    It lives on after ``umount -l``, and before move_mount(2). The kernel tells nobody what it is
    made of. To ask for the mount of a working directory may ask its server, which may be dead:
    the process at which the deadline ended counts.
    """
    at = [""]
    try:
        return Patient().call(lambda: _first_in_overlay(look, proc, at))
    except NoAnswerError:
        return at[-1]


def _first_in_overlay(look: FilesInUse, proc: Path, at: list[str]) -> str | None:
    known = {number for view in look.views for number in view.mounts}
    held = [each for group in look.holders.by_inode.values() for each in group]
    links = [(each.process, each.link) for each in held if each.mount not in known]
    with holders.opened(str(proc)) as table:
        for process in holders.processes(table):
            for place in holders.places(table, process, holders.KCMP_FS):
                links += [(process, f"{place}/cwd"), (process, f"{place}/root")]
        for process, link in links:
            at.append(process)
            with contextlib.suppress(OSError):  # it ended, or may not be looked at
                if _is_in_overlay(table, link, known):
                    return process
    return None


def _is_in_overlay(table: int, link: str, known: set[int]) -> bool:
    fd = os.open(link, os.O_PATH | os.O_CLOEXEC, dir_fd=table)
    try:
        status = ctypes.create_string_buffer(_STATFS)
        if mounts.mount_number(fd) in known or _libc.fstatfs(fd, status):
            return False
        return ctypes.c_long.from_buffer(status).value in _STACKED
    finally:
        os.close(fd)
