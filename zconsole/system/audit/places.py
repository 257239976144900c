"""Where lines of the audit log go: a file in the state directory, or the system's log.

Neither keeps anybody waiting: a pool that hangs may hold the file, and the reader of /dev/log may
hang as well. A thread writes, and whoever waits for it gives up after a deadline.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from zconsole.system.patient import Patient
from zconsole.system.state_dir import open_private

SYSLOG = Path("/dev/log")
PRIORITY = 10 * 8 + 5
"""Facility authpriv, severity notice (RFC 5424, 6.2.1)."""

LONGEST = 8000
"""Bytes of one message: rsyslog cuts longer ones, and a socket may refuse them."""
SAID = 40
"""Bytes of that for what says that it was cut."""

SENDING = 1.0
"""Seconds a full queue of the system's log is waited for, in the thread that sends."""


class Place(Protocol):
    """Somewhere a line can be put."""

    def put(self, line: str, patience: float) -> str | None:
        """Put one line there within ``patience`` seconds; why not, None once it is there."""


class Threaded:
    """Puts each line with a call that may hang; see Patient."""

    def __init__(self, append: Callable[[str], None]) -> None:
        """``append`` raises an error with the reason when it fails."""
        self._append = append
        self._patient = Patient()

    def put(self, line: str, patience: float) -> str | None:
        """See Place.put."""
        try:
            self._patient.call(partial(self._append, line), patience)
        except OSError as error:
            return error.strerror or str(error)
        except Exception as error:  # anything at all means that the line isn't there
            return str(error) or type(error).__name__
        return None


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
        if (over := len(message) - LONGEST) > 0:
            message = message[: LONGEST - SAID] + b"... (%d bytes cut)" % (over + SAID)
        channel.send(message)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
