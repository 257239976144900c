"""What a job that is gone has said last: why it died, where it could still tell."""

from __future__ import annotations

from pathlib import Path

from zconsole.rebalance.job.job_store import Record
from zconsole.system import state_dir

GONE = "its process is gone"
SOON = 5.0
"""Seconds by which the clock may have been set back since it told of itself in its journal."""
TAIL = 4096
_OURS = "zconsole: "


def cause(record: Record, since: float | None) -> str:
    """Why a dead job is: of its log, unless that is older than ``since`` (epoch seconds)."""
    logs = [record.log]
    if record.journal.parent == record.file.parent:  # a console's jobs have theirs beside it
        logs.append(record.journal.with_suffix(".log"))
    said = next((words for log in logs if (words := _last(log, since or 0.0))), GONE)
    return f"{said}; resume it"


def _last(log: Path, since: float) -> str:
    """The last line of a log if it is a message of ours that came later; else nothing."""
    try:
        lines = state_dir.read_end(log, TAIL).decode(errors="surrogateescape").splitlines()
        late = log.stat().st_mtime >= since - SOON
    except (OSError, state_dir.StateError):
        return ""
    last = lines[-1] if lines and late else ""
    return last.removeprefix(_OURS) if last.startswith(_OURS) else ""
