"""Do the blocks of moved files move? ``zdb`` on a few, before and after, now and then (root).

This is what other writers do not disturb, as they do the allocation of the vdevs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zconsole.errors import UnavailableError
from zconsole.rebalance.engine.item import FileOutcome
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.planning import zdb
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.rebalance.planning.zdb import Blocks

FILES = 3
SMALLEST = 128 << 10
"""Bytes of a file that has blocks to look at."""
LARGEST = 256 << 20
"""Bytes of a file whose blocks are not too many to list."""
TRIES = 3
"""Batches whose files are looked at, if zdb has nothing to say of those before."""
AGAIN = 3600.0
"""Seconds until the next look: what is set on a dataset meanwhile may keep its blocks in place."""


@dataclass(slots=True)
class Samples:
    """Looks at the first batch, and at one every AGAIN seconds.

    Where none of its files could be judged, at the next.
    """

    reader: FactsReader
    place: JobDirectory
    path: Callable[[FileRow], str]
    clock: Callable[[], float]
    _due: float = float("-inf")
    _left: int = TRIES
    _before: dict[int, Blocks] = field(default_factory=dict)
    _moved: list[FileRow] = field(default_factory=list)

    def note(self, rows: Sequence[FileRow]) -> None:
        """Before a batch: where the blocks of some of its files lie."""
        self._before, self._moved = {}, []
        if self.clock() < self._due or self.place.dataset is None or os.geteuid() != 0:
            return
        root = os.fsdecode(self.place.root).rstrip("/") + "/"
        fit = (r for r in rows if SMALLEST <= r.size <= LARGEST and self.path(r).startswith(root))
        chosen = [row for row, _ in zip(fit, range(FILES), strict=False)]
        if chosen:
            self._try(self._left - 1)
            self._before = self._blocks([row.ino for row in chosen])

    def finished(self, outcomes: Sequence[FileOutcome]) -> None:
        """What became of files; one that was skipped is where it was, and says nothing."""
        if self._before:
            self._moved += [
                done.row
                for done in outcomes
                if done.outcome == "moved" and done.row.ino in self._before
            ]

    def stayed(self) -> bool:
        """After the batch: whether every block of every moved file is where it was."""
        before, moved, self._before = self._before, self._moved, {}
        if not moved or self.place.dataset is None:
            return False
        try:
            self.reader.sync(self.place.dataset.pool)
            inodes = [os.lstat(self.path(row)).st_ino for row in moved]
        except (OSError, UnavailableError):
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
        """So many more batches now; after the last, none for a while."""
        self._left = left or TRIES
        if left == 0:
            self._due = self.clock() + AGAIN

    def _blocks(self, inodes: Sequence[int]) -> dict[int, Blocks]:
        dataset = self.place.dataset
        return zdb.blocks_of(self.reader.run, dataset.name, inodes) if dataset else {}
