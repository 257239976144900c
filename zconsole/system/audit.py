"""The audit log: one JSON object per line, append-only, private to its owner.

What was changed, and by whom: ``begun`` is written before a change, ``ended`` after it. If the file
can't be written, the lines go to the system log. Either may hang: the file may be on a hung pool,
and the reader of /dev/log may hang as well.
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
"""Bytes of one message: rsyslog cuts longer ones, and a socket may refuse them."""
SAID = 40
"""Bytes of it reserved for the note that it was cut."""

SENDING = 1.0
"""Seconds to wait for a full queue of the system log, in the sending thread."""

PATIENCE = 3.0
"""Seconds that one place may take to write a line."""

TAIL = 2**18
"""Bytes of the file's end that are read to show what was done last."""

SETTLE = 1.0
"""Seconds to wait for pending lines at the end of a command."""


Place = Callable[[str], None]
"""Writes a line; it may hang, and any error means that the line was not written."""


class AuditError(ZconsoleError):
    """A line could be written nowhere."""


def whoami() -> dict[str, Any]:
    """The person at the keyboard: the user, and who became that user through sudo."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return {"uid": uid, "user": name, "sudo_user": os.environ.get("SUDO_USER")}


@dataclass(slots=True)
class MemoryLog:
    """An audit log in memory, for simulated pools."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def write(self, t: float, event: str, **fields: Any) -> None:
        """See Audit.write."""
        self.records.append({"t": t, "event": event, **fields})

    note = write

    def by(self, _: str | None) -> MemoryLog:
        """See Audit.by; it names nobody."""
        return self

    def recent(self) -> list[dict[str, Any]]:
        """See Audit.recent."""
        return list(self.records)


class Audit:
    """Writes to one place, and to the next where that fails."""

    def __init__(
        self,
        who: Mapping[str, Any],
        places: Mapping[str, Place],
        patience: float = PATIENCE,
        recall: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        """``places`` by name, the best first; each is given ``patience`` seconds a line.

        ``recall`` reads the newest records back.
        """
        self._recall = recall
        self._who = who
        self._places = {name: (place, Patient()) for name, place in places.items()}
        self._patience = patience
        self._worker = Worker("audit")

    def write(self, t: float, event: str, **fields: Any) -> None:
        """Append one record (``t``: epoch seconds); it is kept once this returns.

        May take some seconds. Raises AuditError with each place's reason when none has the line.
        """
        self._put(self._line(t, event, fields))

    def note(self, t: float, event: str, **fields: Any) -> None:
        """Like ``write``, without waiting: returns at once and raises nothing.

        A daemon thread writes such lines, in their order.
        """
        line = self._line(t, event, fields)

        def _noted() -> None:
            with contextlib.suppress(ZconsoleError):
                self._put(line)

        with contextlib.suppress(ZconsoleError):  # where no thread can be started, it is lost
            self._worker.put(_noted)

    def recent(self) -> list[dict[str, Any]]:
        """The newest records of this user, oldest first; may hang. Raises StateError or OSError."""
        return self._recall()

    def by(self, sudo_user: str | None) -> Audit:
        """Return the same log for what somebody else has ordered, who became root by sudo."""
        found = copy(self)
        found._who = {**self._who, "sudo_user": sudo_user}
        return found

    def settle(self, patience: float = SETTLE) -> bool:
        """Wait at most ``patience`` seconds for all notes; returns whether they are written."""
        return self._worker.settle(patience)

    def _line(self, t: float, event: str, fields: Mapping[str, Any]) -> str:
        """ASCII only: no control character in a name can end or hide a line."""
        return json.dumps({"t": t, "who": self._who, "event": event, **fields})

    def _put(self, line: str) -> None:
        reasons: list[str] = []
        for name, (place, patient) in self._places.items():
            try:
                patient.call(partial(place, line), self._patience)
            except Exception as error:  # whatever it is, the next place may have the line
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                reasons.append(f"{name}: {why}")
            else:
                return
        raise AuditError(f"audit log not writable ({'; '.join(reasons)})")


Log = Audit | MemoryLog
"""Where changes are written down."""


def audit_log(directory: Callable[[], Path] | None = None, syslog: Path = SYSLOG) -> Audit:
    """The audit log of whoever runs this: a file in the state directory, else the system's log.

    ``directory``, instead of the state directory, is called for every line, in the thread that
    writes: either may hang or fail. Notes have a moment at the end of the program.
    """

    def append(line: str) -> None:
        append_line((directory() if directory else state_dir(create=True)) / NAME, line)

    places: dict[str, Place] = {NAME: append, "syslog": partial(send_line, address=syslog)}
    audit = Audit(whoami(), places, recall=lambda: recall(state_dir(create=False) / NAME))
    atexit.register(audit.settle)
    return audit


def append_line(path: Path, line: str) -> None:
    """Append one line, on disk when this returns. Raises StateError or OSError.

    A line that a crash or a full disk cut off doesn't swallow this one.
    """
    handle = open_private(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
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
    """The records in the last ``most`` bytes of a file, oldest first; empty without a file.

    Lines that are cut off or that nobody here wrote are left out. Raises StateError or OSError.
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
