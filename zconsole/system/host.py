"""The machine: its clocks, boot id, user, small files of /proc and /sys, and marks of processes.

Whatever a file of /sys contains, its readers return a value fit for display, or an empty one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zconsole.system.printable import clean

ROOT = Path("/")
PAGE = 4096
"""Largest size of a sysfs attribute in bytes."""
LONGEST = 64
"""Characters kept of a word; names of slots, models and serial numbers are shorter."""
MOST_ENTRIES = 1 << 16
"""Most entries of a folder that are read.

It is more than a machine has disks, with paths, multipath devices, partitions and volumes.
"""


def steady_clock() -> float:
    """Return seconds of a clock that never jumps and, where there is one, also counts suspend."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks that code may use, so that tests can replace them."""

    wall: Callable[[], float] = time.time
    """Returns epoch seconds."""
    steady: Callable[[], float] = steady_clock
    """Returns seconds of a clock that never jumps, for measuring time."""


def is_due(now: float, last: float, wait: float) -> bool:
    """Return whether ``wait`` seconds have passed since ``last``, or the clock was set back."""
    return not 0 <= now - last < wait


def boot_id(root: Path = ROOT) -> str | None:
    """Return the id of this boot; None if the system has none."""
    return text_in(root / "proc/sys/kernel/random/boot_id") or None


def utc_offset(at: float) -> float:
    """Return the seconds that the local time zone is ahead of UTC at ``at`` (epoch seconds)."""
    return float(time.localtime(at).tm_gmtoff)


def is_root() -> bool:
    """Return whether this is root, who may change pools, follow events and name damaged files."""
    return os.geteuid() == 0


def text_in(path: Path) -> str:
    """Return the contents of a file, stripped; empty if it is missing or not readable."""
    try:
        return bytes_in(path).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def bytes_in(path: str | Path, most: int | None = None) -> bytes:
    """Return the contents of a small kernel file, or at most ``most`` bytes. Raises OSError."""
    # Each sample reads many of these: a file object would make five times as many system calls.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(handle, most or _PIECE)
        while most is None and (more := os.read(handle, _PIECE)):
            found += more
        return found
    finally:
        os.close(handle)


def number_in(path: Path) -> int | None:
    """Return the whole number in a file; None if there is none, or it has more than 64 bits."""
    text = text_in(path)
    # Not int() alone: it also accepts signs, underscores and digits of other scripts.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def process_mark(pid: int, proc: Path = Path("/proc")) -> str | None:
    """Return ``pid:start`` of a process, which no later process shares; None if it is gone.

    The start time is field 22 of /proc/PID/stat (proc_pid_stat(5)).
    """
    fields = _fields(str(pid), proc)
    return f"{pid}:{fields[19]}" if len(fields) > 19 else None


def alive(mark: str, proc: Path = Path("/proc")) -> bool:
    """Return whether the process of a mark still runs.

    A killed one does not, even if one of its threads is still in the kernel; neither does a zombie,
    for which its parent has not waited.
    """
    pid, _, start = mark.partition(":")
    fields = _fields(pid, proc) if pid.isdigit() else []
    return fields[19:20] == [start] and fields[0] not in ("Z", "X", "x")


def _fields(pid: str, proc: Path) -> list[str]:
    """Return the fields of /proc/PID/stat from the third one, the state, on."""
    # The second field, the name in parentheses, may itself contain blanks and parentheses.
    return text_in(proc / pid / "stat").rpartition(")")[2].split()


def word(path: Path) -> str:
    """Return the text of an attribute, fit for display; empty if missing or unreadable."""
    try:
        return tidy(bytes_in(path, PAGE).decode("utf-8", "surrogateescape"))
    except OSError:
        return ""


def tidy(text: str) -> str:
    """Return text as one line without padding and control characters, cut at LONGEST."""
    return clean(" ".join(text.replace("\0", " ").split()))[:LONGEST]


def names_in(folder: Path) -> tuple[str, ...]:
    """Return the sorted names in a folder; () if missing or unreadable."""
    try:
        return tuple(sorted(each.name for each in folder.iterdir())[:MOST_ENTRIES])
    except OSError:
        return ()


def real(path: Path) -> Path:
    """Return the target of a link; a circle of links gives some path in it."""
    return Path(os.path.realpath(path))
