"""Results of files, held back from the journal until the files are on the disks.

A power cut may undo an exchange or a removal that was not synced. The journal must know then that
the file is unfinished, and by which temporary name the other version is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow, Intent, Journal, Result, State

STATES = {"moved": State.MOVED, "skipped": State.SKIPPED, "failed": State.FAILED}


@dataclass(slots=True)
class Results:
    """Collects results, and commits those that are on the disks."""

    journal: Journal
    waiting: list[Result] = field(default_factory=list)
    """What the journal does not know yet."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    """Those of this batch, for the report."""
    unsettled: bool = False
    """Whether names were replaced or removed since the last sync."""
    _settled: int = 0
    """How many of those waiting are on the disks."""

    def add(
        self, names: Sequence[FileRow], outcome: str, reason: str | None, size: int = 0
    ) -> None:
        """Add the result of all names of one inode; its bytes count once."""
        for row in names:
            self.waiting.append(Result(row.number, STATES[outcome], reason))
            self.outcomes.append(FileOutcome(row, outcome, size, reason))
            size = 0

    def leave(self, names: Sequence[FileRow], outcome: str, reason: str | None) -> None:
        """The same of what the journal keeps as unfinished, for recovery."""
        self.outcomes += [FileOutcome(row, outcome, 0, reason) for row in names]

    def keep(self, row: FileRow, reason: str, kept: bytes) -> None:
        """Of this name two versions remain; ``kept`` is where the other is."""
        self.waiting.append(Result(row.number, State.FAILED, reason, kept))
        self.outcomes.append(FileOutcome(row, "failed", 0, reason))

    def syncing(self) -> None:
        """Everything so far is going to be on the disks once the sync that begins now has ended."""
        self.unsettled, self._settled = False, len(self.waiting)

    def commit(
        self, intents: Sequence[Intent], directories: Mapping[int, tuple[int, float]]
    ) -> None:
        """Commit the next intents, and with them the results that are on the disks."""
        self.journal.record(self.waiting[: self._settled], intents, directories)
        del self.waiting[: self._settled]
        self._settled = 0

    def flush(self) -> None:
        """Commit all results; the caller has synced what was ``unsettled``."""
        self.unsettled = False
        if self.waiting:
            self.journal.record(self.waiting, directories={})
            self.waiting.clear()
            self._settled = 0
