"""The audit log: one JSON object a line, only ever appended to, private to its owner."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zconsole.model import Pool
from zconsole.state import open_private

NAME = "audit.jsonl"


@dataclass(frozen=True, slots=True)
class Who:
    """Who acts: the effective user, and who became that user through sudo."""

    uid: int
    user: str
    sudo_user: str | None = None


def whoami(environ: Mapping[str, str] = os.environ) -> Who:
    """The person at the keyboard, as far as the system tells."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Who(uid, name, environ.get("SUDO_USER"))


class Audit:
    """Appends to one log file; a line is written whole and is on disk when ``write`` returns."""

    def __init__(self, directory: Path, who: Who) -> None:
        self.path = directory / NAME
        self._who = who

    def write(self, t: float, event: str, **fields: Any) -> None:
        """Append one line: when (epoch seconds), who, what.

        Raises StateError or OSError when it cannot.
        """
        record = {"t": t, "who": asdict(self._who), "event": event, **fields}
        line = json.dumps(record, ensure_ascii=True) + "\n"
        handle = open_private(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _write_all(handle, line.encode("ascii"))
            os.fsync(handle)
        finally:
            os.close(handle)


def evidence(pool: Pool) -> dict[str, Any]:
    """What clearing would erase: counters of every vdev, the error list, the status message."""
    return {
        "pool": pool.name,
        "guid": pool.guid,
        "state": pool.state,
        "message": pool.message,
        "error_count": pool.error_count,
        "errors": None if pool.errors is None else list(pool.errors),
        "vdevs": [
            {
                "name": v.name,
                "guid": v.guid,
                "path": v.path,
                "state": v.state,
                "note": v.note,
                **v.errors._asdict(),
            }
            for v in pool.root.walk()
        ],
    }


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
