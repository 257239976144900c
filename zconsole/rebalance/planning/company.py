"""What a plan says of others that use the files: whom a copy touches, and who cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from zconsole.rebalance.engine import holders
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.holders import PROC
from zconsole.rebalance.planning.engine_choice import COPIES
from zconsole.rebalance.planning.plan_model import DirectoryPlan
from zconsole.system.patient import NoAnswerError, Patient

INITIAL = 0xEFFFFFFC
"""Inode of the namespace that all processes are in (PROC_PID_INIT_INO, linux/proc_ns.h)."""
_GUESTS = ("virtiofsd", "virtfs-proxy-he")
"""Programs that share a directory with a virtual machine, cut to the 15 characters of comm."""
_VIRTUAL = ("qemu", "kvm")
_SHARING = (b"-virtfs", b"-fsdev")


def notes(look: FilesInUse, plans: Sequence[DirectoryPlan], proc: Path = PROC) -> Iterator[str]:
    """What to know before files are copied; nothing for files that are rewritten in place."""
    copied = [plan for plan in plans if plan.choice.engine == "copy"]
    if not copied:
        return
    yield COPIES
    if look.holders.hidden or not (proc / "1").exists():
        yield "no permission to see what other users' processes hold open: such files are moved"
    if _in_container(proc):
        yield "in a container: files that processes outside it hold open are not seen"
    if look.unseen:
        yield f"{look.unseen} mount namespaces have no process: files mounted in them are not seen"
    if look.lost:
        yield (
            f"{look.lost} overlays are made of directories that are not found: unmount those made"
            " of directories here, or what is written through them is lost"
        )
    if any(plan.shared for plan in copied):
        yield "exported over NFS or SMB: files that other hosts hold open are not seen"
    if _shares_with_guests(proc):
        yield "a directory is shared with a virtual machine: files it has cached are not seen"


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
