"""Check early, then periodically, whether moved blocks actually leave the vdevs they were on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from zconsole.errors import UnavailableError
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.job.accounts import INTERVAL, JobAccounts
from zconsole.rebalance.job.job import Job
from zconsole.rebalance.planning.facts import Dataset, FactsReader, Listed
from zconsole.system.patient import Patient
from zconsole.system.safe_path import StateError

FILES = 3
SMALLEST = 128 << 10
"""Least bytes of a file to sample; a smaller one may have no block to compare."""
LARGEST = 256 << 20
"""Most bytes of a file to sample: larger ones have too many blocks to list."""
TRIES = 3
"""Consecutive batches to sample if zdb tells nothing about the earlier ones."""
AGAIN = 3600.0
"""Seconds until the next sample: a property set meanwhile may keep blocks in place."""


@dataclass(slots=True)
class Samples:
    """Samples of files whose blocks ``zdb`` lists before and after a batch (root only).

    The first batch is sampled, then one every AGAIN seconds; if none of its files could be judged,
    the next one as well. Unlike the allocation of vdevs, this is not disturbed by other writers.
    """

    reader: FactsReader
    root: bytes
    dataset: Dataset
    path: Callable[[FileRow], str]
    clock: Callable[[], float]
    _due: float = -inf
    _left: int = TRIES
    _patient: Patient = field(default_factory=Patient)
    """For paths: a directory on the way may be a link by now, to a server that is dead."""
    _before: Listed = field(default_factory=dict)
    _moved: list[FileRow] = field(default_factory=list)

    def note(self, rows: Sequence[FileRow]) -> None:
        """Record where the blocks of some of the files are before a batch."""
        self._before, self._moved = {}, []
        if self.clock() < self._due or os.geteuid() != 0:
            return
        root = os.fsdecode(self.root).rstrip("/") + "/"
        fit = (r for r in rows if SMALLEST <= r.size <= LARGEST and self.path(r).startswith(root))
        chosen = [row for row, _ in zip(fit, range(FILES), strict=False)]
        if chosen:
            self._try(self._left - 1)
            self._before = self._blocks([row.ino for row in chosen])

    def finished(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take note of the sampled files that were moved; a skipped one is no evidence."""
        if self._before:
            self._moved += [
                done.row
                for done in outcomes
                if done.outcome == "moved" and done.row.ino in self._before
            ]

    def stayed(self) -> bool:
        """Return after a batch whether every block of every sampled file is still in its place."""
        before, moved, self._before = self._before, self._moved, {}
        if not moved:
            return False
        try:
            self.reader.sync(self.dataset.pool)
            # A copy has a new inode, a file rewritten in place keeps its own.
            paths = [self.path(row) for row in moved]
            inodes = self._patient.call(lambda: [os.lstat(path).st_ino for path in paths])
        except (OSError, UnavailableError, StateError):
            return False
        after = self._blocks(inodes)
        if not after:
            return False
        self._try(0)
        return all(
            sorted(before[row.ino]) == sorted(after.get(inode, []))
            for row, inode in zip(moved, inodes, strict=True)
        )

    def _try(self, left: int) -> None:
        """Set how many more batches to sample; 0: none for AGAIN seconds."""
        self._left = left or TRIES
        if left == 0:
            self._due = self.clock() + AGAIN

    def _blocks(self, inodes: Sequence[int]) -> Listed:
        found = self.reader.blocks(self.dataset.name, inodes)
        return {inode: file for inode, file in found.items() if file}


STAYED = "nothing moves: blocks stay where they were"
NOTHING_MOVES = "nothing moves: vdev sizes don't change"


class BenefitCheck:
    """Ends a job that moves nothing; checked after every portion and within long files."""

    def __init__(self, job: Job, accounts: JobAccounts) -> None:
        self.accounts = accounts
        self._clock, settings = job.clocks.monotonic, job.terms.settings
        # Blocks that -S and -C spare stay on purpose, and may be all blocks of a portion.
        moves_all = not {"S", "C"} & set(settings.rewrite_options)
        # One per directory: only one of their datasets may keep its blocks in place.
        self.samples = [
            Samples(job.reader, place.root, place.dataset, accounts.path, self._clock)
            for place in job.places
            if moves_all and place.dataset
        ]
        # With another aim, the allocation of the vdevs need not change.
        self._balancing = settings.aim == "balance" and moves_all
        self._checked, self._moved = -inf, 0
        self._patient = Patient()

    def begin(self, rows: Sequence[FileRow]) -> None:
        """Record where blocks are before a portion."""
        self.accounts.begin()
        for sample in self.samples:
            sample.note(rows)

    def finished(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take note of finished files, and add up the bytes moved."""
        for sample in self.samples:
            sample.finished(outcomes)
        if self._balancing and self.accounts.watch.pool:
            self._moved += self._stored([(done.row, done.bytes) for done in outcomes if done.bytes])

    def portion(self) -> None:
        """Check after a portion. Raises StopJobError if nothing moves."""
        if any(sample.stayed() for sample in self.samples):
            raise StopJobError(STAYED)
        self._check()

    def chunk(self) -> None:
        """Check within a file rewritten in place. Raises StopJobError if nothing moves."""
        if self._clock() - self._checked >= INTERVAL:
            self._check()

    def _check(self) -> None:
        self._checked = self._clock()
        row, begun = self.accounts.current, self.accounts.unfinished
        moved = self._moved + (self._stored([(row, begun)]) if row and begun else 0)
        if self._balancing and self.accounts.watch.moves_nothing(moved):
            raise StopJobError(NOTHING_MOVES)
        self.accounts.day()

    def _stored(self, done: Sequence[tuple[FileRow, int]]) -> int:
        """Convert bytes of files to bytes of their blocks: fewer if compressed or with holes.

        0 for a file that is gone, and for all of them if a path gives no answer.
        """
        pairs = [(self.accounts.path(row), size) for row, size in done]
        try:
            return self._patient.call(lambda: sum(_blocks_of(path, size) for path, size in pairs))
        except StateError:
            return 0


def _blocks_of(path: str, size: int) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return round(size * status.st_blocks * 512 / max(1, status.st_size))
