"""Where lines of the audit log go: a file in the state directory, or the system's log.

Either call may hang: a pool that hangs may hold the file, and the reader of /dev/log may hang as
well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path

from zconsole.system.state_dir import open_private

SYSLOG = Path("/dev/log")
PRIORITY = 10 * 8 + 5
"""Facility authpriv, severity notice (RFC 5424, 6.2.1)."""

LONGEST = 8000
"""Bytes of one message: rsyslog cuts longer ones, and a socket may refuse them."""

SENDING = 1.0
"""Seconds a full queue of the system's log is waited for, in the thread that sends."""


def append_line(path: Path, line: str) -> None:
    """Append one line, on disk when this returns. Raises StateError or OSError.

    A line that a crash or a full disk cut off doesn't swallow this one.
    """
    handle = open_private(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        cut_off = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        _write_all(handle, ("\n" * cut_off + line + "\n").encode("ascii"))
        os.fsync(handle)
    finally:
        os.close(handle)


def send_line(line: str, address: Path = SYSLOG) -> None:
    """Send one line to the system's log (syslog(3), RFC 3164). Raises OSError when it can't.

    Not syslog(3) itself: it says nothing of a missing /dev/log, and waits for a reader that hangs.
    """
    message = f"<{PRIORITY}>zconsole[{os.getpid()}]: {line}".encode("ascii")
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as channel:
        channel.settimeout(SENDING)
        channel.connect(os.fspath(address))
        channel.send(message[:LONGEST])


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
