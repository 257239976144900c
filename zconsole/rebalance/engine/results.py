"""Results of files, held back from the journal until the files are on the disks.

A power cut may undo an exchange or a removal that was not synced. Then the journal must still list
the file as unfinished, and know the temporary name of its other version.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow, Intent, Journal, Result, State

STATES = {"moved": State.MOVED, "skipped": State.SKIPPED, "failed": State.FAILED}


@dataclass(slots=True)
class Results:
    """Collects results, and commits those that are on the disks."""

    journal: Journal
    waiting: dict[int, list[Result]] = field(default_factory=lambda: defaultdict(list))
    """Results not in the journal yet, by device, as each device is synced by itself."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    """Outcomes of the current batch, for the report."""
    unsynced: set[int] = field(default_factory=set)
    """Devices on which names were replaced or removed since their last sync."""
    _synced: dict[int, int] = field(default_factory=dict)
    """Number of waiting results that are on the disks, by device."""

    def add(
        self, names: Sequence[FileRow], outcome: str, reason: str | None, size: int = 0
    ) -> None:
        """Add the result of all names of one inode; its bytes count once."""
        for row in names:
            self._wait(row, Result(row.number, STATES[outcome], reason))
            self.outcomes.append(FileOutcome(row, outcome, size, reason))
            size = 0

    def leave(self, names: Sequence[FileRow], outcome: str, reason: str | None) -> None:
        """Report an outcome of files that stay unfinished in the journal, for recovery."""
        self.outcomes += [FileOutcome(row, outcome, 0, reason) for row in names]

    def keep(self, row: FileRow, reason: str, kept: bytes) -> None:
        """Add the result of a name of which two versions remain, the other at ``kept``."""
        self._wait(row, Result(row.number, State.FAILED, reason, kept))
        self.outcomes.append(FileOutcome(row, "failed", 0, reason))

    def _wait(self, row: FileRow, result: Result) -> None:
        self.waiting[self.journal.directory(row.directory).dev].append(result)

    def syncing(self, devices: Collection[int]) -> None:
        """Note that syncs of these devices begin: when they end, all results so far are durable."""
        self.unsynced -= set(devices)
        self._synced = {device: len(self.waiting[device]) for device in devices}

    def commit(
        self, intents: Sequence[Intent], directories: Mapping[int, tuple[int, float]]
    ) -> None:
        """Commit the next intents, and with them the results that are on the disks."""
        synced = [r for device, n in self._synced.items() for r in self.waiting[device][:n]]
        self.journal.record(synced, intents, directories)
        for device, count in self._synced.items():
            del self.waiting[device][:count]
        self._synced = {}

    def flush(self) -> None:
        """Commit all results; the caller has synced what was ``unsynced``."""
        self.unsynced.clear()
        # Also notes in the journal that the times of all directories are restored.
        if any(self.waiting.values()):
            self.journal.record([r for each in self.waiting.values() for r in each], directories={})
            self.waiting.clear()
            self._synced = {}
