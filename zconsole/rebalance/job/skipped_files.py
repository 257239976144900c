"""What a job left as it was, or failed to move, and why: from its journal."""

from __future__ import annotations

import os
from typing import Any

from zconsole.rebalance.engine.journal import Journal, State

MOST = 100
"""Files that are named; all of them are counted."""
_OUTCOMES = {State.SKIPPED: "skipped", State.FAILED: "failed"}


def skipped(journal: Journal) -> dict[str, int]:
    """Skipped files by reason, names that the walk left out included."""
    found = dict(journal.get("walk_skipped") or {})
    for reason, files in journal.reasons(State.SKIPPED).items():
        found[reason] = found.get(reason, 0) + files
    return found


def failed(journal: Journal) -> dict[str, int]:
    """Failed files by reason."""
    return journal.reasons(State.FAILED)


def files(journal: Journal, most: int = MOST) -> list[dict[str, Any]]:
    """The first files, failed ones before skipped ones, with their reasons."""
    return [
        {
            "path": f"{_directory(journal, number)}/{os.fsdecode(name)}",
            "outcome": _OUTCOMES[state],
            "reason": reason,
        }
        for number, name, state, reason in journal.left_out(most)
    ]


def as_json(journal: Journal) -> dict[str, Any]:
    """Counts by reason, and the first MOST files."""
    return {"skipped": skipped(journal), "failed": failed(journal), "left_out": files(journal)}


def _directory(journal: Journal, number: int) -> str:
    parts: list[bytes] = []
    parent: int | None = number
    while parent is not None:
        row = journal.directory(parent)
        parts.append(row.name)
        parent = row.parent
    return os.fsdecode(b"/".join([parts[-1].rstrip(b"/"), *reversed(parts[:-1])]))
