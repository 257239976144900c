"""When files that found no space, or may not be changed any more, end the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.rebalance.engine.item import FileOutcome, StopJobError

NO_SPACE = "No space left on device"
QUOTA = "Disk quota exceeded"
NO_WRITING = "Read-only file system"
READ_ONLY = "mounted read-only"
MOST = 3
"""Batches in a row without space before the job stops."""


@dataclass(slots=True)
class SpaceErrors:
    """Counts batches that met a full filesystem. ``room`` tells its free bytes as of now.

    A quota of one user, group or project is none: the files of others still have room.
    """

    room: Callable[[], int]
    _count: int = 0

    def judge(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take in what became of a batch. Raises StopJobError."""
        if any(NO_WRITING in (done.reason or "") for done in outcomes):
            raise StopJobError(READ_ONLY)
        if self._full(outcomes):
            self._count += 1
            if self._count >= MOST:
                raise StopJobError("no space left")
        elif outcomes:
            self._count = 0

    def _full(self, outcomes: Sequence[FileOutcome]) -> bool:
        if any(done.reason == NO_SPACE for done in outcomes):
            return True
        over = [done.row.size for done in outcomes if done.reason == QUOTA]
        return bool(over) and self.room() < max(over)
