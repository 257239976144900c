"""Does moving move anything? Looked at early and again and again; and the line of each day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal
from zconsole.rebalance.job.accounts import RunProgress
from zconsole.rebalance.job.block_samples import Samples
from zconsole.rebalance.job.move_effect import INTERVAL, MoveEffect

STAYED = "nothing moves: the blocks are where they were"
IN_VAIN = "nothing moves: every vdev holds what it held"


@dataclass(slots=True)
class BenefitCheck:
    """Judges a job by its effect, after every portion and within a file that takes long."""

    journal: Journal
    progress: RunProgress
    samples: Sequence[Samples]
    """One a directory of the job: they may be on datasets of which one keeps its blocks."""
    watching: MoveEffect | None
    balancing: bool
    """Whether the job is to even out the vdevs; with another aim they need not change."""
    clock: Callable[[], float]
    local: Callable[[], datetime]
    _already: int | None = None
    """Bytes that the runs before this one moved."""
    _moved: int = 0
    _told: float = field(default=float("-inf"))

    def begin(self, rows: Sequence[FileRow]) -> None:
        """Before a portion."""
        if self._already is None:
            self._already = self.journal.moved_bytes()
        for sample in self.samples:
            sample.note(rows)

    def finished(self, outcomes: Sequence[FileOutcome]) -> None:
        """What became of files."""
        self._moved += sum(done.bytes for done in outcomes if done.outcome == "moved")
        for sample in self.samples:
            sample.finished(outcomes)

    def portion(self) -> None:
        """After a portion. Raises StopJobError when nothing moves."""
        if any(sample.stayed() for sample in self.samples):
            raise StopJobError(STAYED)
        self._look()

    def chunk(self) -> None:
        """Within a file that is rewritten in place. Raises StopJobError when nothing moves."""
        if self.clock() - self._told >= INTERVAL:
            self._look()

    def _look(self) -> None:
        self._told = self.clock()
        if self.watching and self.balancing and self.watching.in_vain(self._worked):
            raise StopJobError(IN_VAIN)
        self.day()

    @property
    def _worked(self) -> int:
        """Bytes this run has moved."""
        return self._moved + self.progress.unfinished

    def day(self) -> None:
        """Write the line of today; nothing for a run that has moved nothing."""
        if self._already is None:
            return
        day = self.local().strftime("%Y-%m-%d")
        line = {"day": day, "moved_bytes": self._already + self._worked, **self._line()}
        self.journal.add_day(day, line)

    def _line(self) -> dict[str, Any]:
        progress, watching = self.progress, self.watching
        spaces = watching.look() if watching else None
        return {
            "files_done": progress.files_done,
            "files_skipped": progress.files_skipped,
            "files_failed": progress.files_failed,
            "fragmentation": watching.fragmentation if watching else None,
            "spread": watching.spread() if watching else None,
            "free_bytes": round(sum(space.free for space in spaces)) if spaces else None,
            "eta_seconds": progress.as_json()["eta_seconds"],
        }
