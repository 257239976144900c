"""Which inodes other processes hold locks on: their users rely on one inode staying the one."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LOCK = re.compile(r"\d+:(?: ->)? (?:FLOCK|POSIX|OFDLCK) .* ([0-9a-f]+):([0-9a-f]+):(\d+) \S+ \S+")


def locked_inodes(table: Path = Path("/proc/locks")) -> frozenset[tuple[int, int]]:
    """Device and inode of every file with a flock or POSIX lock (proc_locks(5)); leases are not."""
    try:
        text = table.read_text()
    except FileNotFoundError:
        return frozenset()
    found = (_LOCK.match(line) for line in text.splitlines())
    return frozenset(
        (os.makedev(int(m[1], 16), int(m[2], 16)), int(m[3])) for m in found if m is not None
    )
