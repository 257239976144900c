"""The audit log of changes, and of who made them: a JSON object per line, append-only, private.

A record ``begun`` is written before a change, ``ended`` after it. If the file can't be written, the
lines go to the system log. Either may hang: the file may be on a hung pool, and the reader of
/dev/log may hang as well.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import pwd
import socket
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.system.patient import Patient, Worker
from zconsole.system.records import parse_json, value_of
from zconsole.system.state_dir import open_private, read_end, state_dir

NAME = "audit.jsonl"
SYSLOG = Path("/dev/log")
PRIORITY = 10 * 8 + 5
"""Facility authpriv, severity notice (RFC 5424, 6.2.1)."""

LONGEST = 8000
"""Bytes of a message to the system log: rsyslog cuts longer ones, and a socket may refuse them."""
SAID = 40
"""Bytes of a message reserved for the note that it was cut."""

SENDING = 1.0
"""Seconds to wait for a full queue of the system log, in the sending thread."""

PATIENCE = 3.0
"""Seconds that one place may take to write a line."""

TAIL = 2**18
"""Bytes at the end of the file that are read to show the newest records."""

SETTLE = 1.0
"""Seconds to wait for pending lines at the end of a command."""


Place = Callable[[str], None]
"""Function that writes a line; it may hang, and any exception means the line was not written."""


class AuditError(ZconsoleError):
    """A line could be written to no place."""


def whoami() -> dict[str, Any]:
    """Return the current user, and the user who became that one by sudo, for records."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # no entry in passwd, as in some containers
        name = str(uid)
    return {"uid": uid, "user": name, "sudo_user": os.environ.get("SUDO_USER")}


@dataclass(slots=True)
class MemoryLog:
    """An audit log in memory, for simulated pools."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def write(self, at: float, event: str, **fields: Any) -> None:
        """Append one record (``at``: epoch seconds)."""
        self.records.append({"t": at, "event": event, **fields})

    note = write

    def by(self, _: str | None) -> MemoryLog:
        """Return this log: its records name nobody."""
        return self

    def recent(self) -> list[dict[str, Any]]:
        """Return all records, oldest first."""
        return list(self.records)


class Audit:
    """An audit log that writes each line to the first place that takes it."""

    def __init__(
        self,
        who: Mapping[str, Any],
        places: Mapping[str, Place],
        patience: float = PATIENCE,
        recall: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        """Write for ``who`` to ``places``, the best first, each with ``patience`` seconds a line.

        ``recall`` reads the newest records back.
        """
        self._recall = recall
        self._who = who
        self._places = {name: (place, Patient()) for name, place in places.items()}
        self._patience = patience
        self._worker = Worker("audit")

    def write(self, at: float, event: str, **fields: Any) -> None:
        """Append one record (``at``: epoch seconds); it is stored when this returns.

        May take some seconds. Raises AuditError, with the reason of each place, if all fail.
        """
        self._put(self._line(at, event, fields))

    def note(self, at: float, event: str, **fields: Any) -> None:
        """Append one record (``at``: epoch seconds) later; returns at once and raises nothing.

        A daemon thread writes these records, in order. What it can't write is lost.
        """
        line = self._line(at, event, fields)

        def _noted() -> None:
            with contextlib.suppress(ZconsoleError):
                self._put(line)

        with contextlib.suppress(ZconsoleError):  # lost if no thread can be started
            self._worker.put(_noted)

    def recent(self) -> list[dict[str, Any]]:
        """Return the newest records of this user, oldest first.

        May hang with the disk. Raises StateError or OSError.
        """
        return self._recall()

    def by(self, sudo_user: str | None) -> Audit:
        """Return this log for changes ordered by somebody else, who became root by sudo."""
        found = copy(self)
        found._who = {**self._who, "sudo_user": sudo_user}
        return found

    def settle(self, patience: float = SETTLE) -> bool:
        """Wait at most ``patience`` seconds for all notes; return whether they are written."""
        return self._worker.settle(patience)

    def _line(self, at: float, event: str, fields: Mapping[str, Any]) -> str:
        """Format a record as ASCII: no control character in a name can end or hide a line."""
        return json.dumps({"t": at, "who": self._who, "event": event, **fields})

    def _put(self, line: str) -> None:
        reasons: list[str] = []
        for name, (place, patient) in self._places.items():
            try:
                patient.call(partial(place, line), self._patience)
            except Exception as error:  # of any kind: the next place may take the line
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                reasons.append(f"{name}: {why}")
            else:
                return
        raise AuditError(f"audit log not writable ({'; '.join(reasons)})")


Log = Audit | MemoryLog
"""A log of changes, on disk or in memory."""


def audit_log(directory: Callable[[], Path] | None = None, syslog: Path = SYSLOG) -> Audit:
    """Return the audit log of the current user: a file in the state directory, else the system log.

    ``directory`` returns another directory. It is called for every line, in the thread that writes,
    as it may hang or fail. At exit, the program waits SETTLE seconds for notes to be written.
    """

    def append(line: str) -> None:
        append_line((directory() if directory else state_dir(create=True)) / NAME, line)

    places: dict[str, Place] = {NAME: append, "syslog": partial(send_line, address=syslog)}
    audit = Audit(whoami(), places, recall=lambda: recall(state_dir(create=False) / NAME))
    atexit.register(audit.settle)
    return audit


def append_line(path: Path, line: str) -> None:
    """Append one line, which is on disk when this returns. Raises StateError or OSError.

    If a crash or a full disk has cut off the line before, a new line is begun first.
    """
    handle = open_private(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        # Several processes append: nothing may come between looking at the last byte and writing.
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        cut_off = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = ("\n" * cut_off + line + "\n").encode("ascii")
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def recall(path: Path, most: int = TAIL) -> list[dict[str, Any]]:
    """Return the records in the last ``most`` bytes of a file, oldest first; empty without a file.

    Lines that are cut off or are not records are left out. Raises StateError or OSError.
    """
    try:
        lines = read_end(path, most).splitlines()
    except FileNotFoundError:
        return []
    return [record for line in lines if (record := _record(line)) is not None]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = parse_json(line)
        value_of(float, found["t"], "t")
    except (ValueError, LookupError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def send_line(line: str, address: Path) -> None:
    """Send one line to the system log, in the format of RFC 3164. Raises OSError if that fails.

    syslog(3) itself is no use: it doesn't report a missing /dev/log, and waits for a reader that
    hangs.
    """
    message = f"<{PRIORITY}>zconsole[{os.getpid()}]: {line}".encode("ascii")
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as channel:
        channel.settimeout(SENDING)
        channel.connect(os.fspath(address))
        if (over := len(message) - LONGEST) > 0:
            message = message[: LONGEST - SAID] + b"... (%d bytes cut)" % (over + SAID)
        channel.send(message)
