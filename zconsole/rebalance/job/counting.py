"""Counting the files of a new job into its journal: steered as a running job is.

What is counted is committed a portion at a time, so that the journal is free in between for who
pauses or stops the job. Until the last commit it is a journal whose walk was not finished.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.item import StopJobError
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.job.job import JobClocks
from zconsole.rebalance.job.pacer import LOOK, SLICE
from zconsole.rebalance.planning.survey import Ages
from zconsole.rebalance.planning.walk import Portion

WALKING = "counting files"
"""What a job says that is still being planned by the process that will run it."""
KEPT = 4000
"""Rows that are kept back for one commit."""

Row = tuple[int, bytes, int, int, int, int]


@dataclass(slots=True)
class WalkSink:
    """Writes a walk into a journal. Raises StopJobError when the job is told to stop."""

    journal: Journal
    clocks: JobClocks = field(default_factory=JobClocks)
    last: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    _directories: list[DirectoryRow] = field(default_factory=list)
    _files: list[Row] = field(default_factory=list)
    _looked: float = float("-inf")

    def __call__(self, portion: Portion, ages: Ages) -> None:
        """Store a portion, every file with its rank in the order of work; obey."""
        row = portion.directory
        if row.number > self.last:
            self.last = row.number
            self._directories.append(row)
        for _, reason in portion.skipped:
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self._files += [
            (
                row.number, name, status.st_ino, status.st_size, status.st_nlink,
                _rank(status, ages.addition),
            )
            for name, status in portion.files
        ]  # fmt: skip
        if len(self._files) + len(self._directories) >= KEPT:
            self.flush()
        if self.clocks.monotonic() - self._looked >= LOOK:
            self.obey()

    def flush(self) -> None:
        """Commit what was kept back."""
        self.journal.begin()
        for row in self._directories:
            self.journal.add_directory(row)
        self.journal.add_files(self._files)
        self.journal.commit()
        self._directories, self._files = [], []

    def obey(self) -> None:
        """Wait while the job is paused. Raises StopJobError."""
        self._looked = self.clocks.monotonic()
        if not self.journal.others_wrote():
            return
        if (order := order_of(self.journal)) == "pause":
            self._tell("paused", "paused")
            while (order := order_of(self.journal)) == "pause":
                self.clocks.sleep(SLICE)
            self._tell("running", WALKING)
        if order == "stop":
            self._tell("stopped", "stop")
            raise StopJobError("stop")

    def _tell(self, state: str, why: str) -> None:
        self.journal.set("status", {"state": state, "why": why, "t": self.clocks.epoch()})


def order_of(journal: Journal) -> str:
    """What the operator wants of a job: run, pause or stop."""
    order: str = (journal.get("control") or {}).get("order", "run")
    return order


def _rank(status: os.stat_result, addition: float | None) -> int:
    """Files older than the newest vdev first, then large before small."""
    newer = addition is not None and status.st_ctime >= addition
    return (64 if newer else 0) + 63 - status.st_size.bit_length()
