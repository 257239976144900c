"""What other processes use: inodes they hold locks on, rely on staying the one, or want to open."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LOCK = re.compile(
    r"^\d+:(?: ->)? (?:FLOCK|POSIX|OFDLCK) .* ([0-9a-f]+):([0-9a-f]+):(\d+) \S+ \S+$", re.MULTILINE
)


def locked_inodes(table: Path = Path("/proc/locks")) -> frozenset[tuple[int, int]]:
    """Device and inode of every file with a flock or POSIX lock (proc_locks(5)); leases are not."""
    try:
        text = table.read_text()
    except FileNotFoundError:
        return frozenset()
    return frozenset(
        (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        for major, minor, inode in _LOCK.findall(text)
    )


class Alarm:
    """Raised by SIGIO: somebody wants to open a leased file for writing."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, *_: object) -> None:
        """The signal handler."""
        self.raised = True
