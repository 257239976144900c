"""What a job leaves behind: why it died, what it did not move and why; from its log and journal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.job.job_store import Record
from zconsole.system import state_dir

GONE = "its process is gone"
SOON = 5.0
"""Seconds by which the clock may have been set back since the job wrote its status."""
TAIL = 4096
_OURS = "zconsole: "
_OUTCOMES = {State.SKIPPED: "skipped", State.FAILED: "failed"}


def cause(record: Record, since: float | None) -> str:
    """Why a dead job is: of its log, unless that is older than ``since`` (epoch seconds)."""
    return f"{_last(record.log, since or 0.0) or GONE}; resume it"


def _last(log: Path, since: float) -> str:
    """The last line of a log if it is a message of ours that came later; else nothing."""
    try:
        lines = state_dir.read_end(log, TAIL).decode(errors="surrogateescape").splitlines()
        late = log.stat().st_mtime >= since - SOON
    except (OSError, state_dir.StateError):
        return ""
    last = lines[-1] if lines and late else ""
    return last.removeprefix(_OURS) if last.startswith(_OURS) else ""


def skipped(journal: Journal) -> dict[str, int]:
    """Skipped files by reason, names that the walk left out included."""
    found = dict(journal.get("walk_skipped", dict) or {})
    for reason, files in journal.reasons(State.SKIPPED).items():
        found[reason] = found.get(reason, 0) + files
    return found


def failed(journal: Journal) -> dict[str, int]:
    """Failed files by reason."""
    return journal.reasons(State.FAILED)


def files(journal: Journal, most: int) -> list[dict[str, Any]]:
    """The first files, failed ones before skipped ones, with their reasons."""
    return [
        {
            "path": f"{_directory(journal, number)}/{os.fsdecode(name)}",
            "outcome": _OUTCOMES[state],
            "reason": reason,
        }
        for number, name, state, reason in journal.left_out(most)
    ]


def _directory(journal: Journal, number: int) -> str:
    parts: list[bytes] = []
    parent: int | None = number
    while parent is not None:
        row = journal.directory(parent)
        parts.append(row.name)
        parent = row.parent
    return os.fsdecode(b"/".join([parts[-1].rstrip(b"/"), *reversed(parts[:-1])]))
