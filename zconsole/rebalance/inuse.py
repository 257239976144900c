"""Which inodes other processes hold locks on: their users rely on one inode staying the one."""

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
