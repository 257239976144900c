"""The machine: clocks, boot, the current user, small kernel files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


def steady_clock() -> float:
    """Seconds that never jump and run on through suspend, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks."""

    wall: Callable[[], float] = time.time
    """Epoch seconds."""
    steady: Callable[[], float] = steady_clock


def boot_id(root: Path = ROOT) -> str | None:
    """The id of this boot; None if the system has none."""
    return text_in(root / "proc/sys/kernel/random/boot_id") or None


def utc_offset(t: float) -> float:
    """Seconds the local zone is ahead of UTC at ``t``."""
    return float(time.localtime(t).tm_gmtoff)


def is_root() -> bool:
    """Whether pools may be changed, events followed and damaged files named."""
    return os.geteuid() == 0


def text_in(path: Path) -> str:
    """Its contents, stripped; empty if it is missing or not readable."""
    try:
        return bytes_in(path).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def bytes_in(path: str | Path, most: int | None = None) -> bytes:
    """All that a small file of the kernel's holds, or its first bytes. Raises OSError."""
    # Samples read many: a file object would ask five times more of the kernel.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(handle, most or _PIECE)
        while most is None and (more := os.read(handle, _PIECE)):
            found += more
        return found
    finally:
        os.close(handle)


def number_in(path: Path) -> int | None:
    """The whole number in it; None without one, or for one of more than 64 bits."""
    text = text_in(path)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def process_mark(pid: int, proc: Path = Path("/proc")) -> str | None:
    """``pid:start`` of a process, which no later process shares; None when it is gone.

    Field 22 of /proc/PID/stat, counted after the parenthesised name (proc(5)).
    """
    fields = _fields(str(pid), proc)
    return f"{pid}:{fields[19]}" if len(fields) > 19 else None


def alive(mark: str, proc: Path = Path("/proc")) -> bool:
    """Whether the process of a mark still runs.

    One that was killed does not, though a thread of it may stay in the kernel, nor one that its
    parent has not waited for.
    """
    pid, _, start = mark.partition(":")
    fields = _fields(pid, proc) if pid.isdigit() else []
    return fields[19:20] == [start] and fields[0] not in ("Z", "X", "x")


def _fields(pid: str, proc: Path) -> list[str]:
    """/proc/PID/stat after the name, from the process's state on."""
    return text_in(proc / pid / "stat").rpartition(")")[2].split()
