"""Which directories inside one are worth moving: those that hold most of what is old.

What was written before the newest vdev was there lies on the others; what came later is spread
already. Where there is no such moment, or nobody may know it, those that hold most.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.planning.plan_document import PlannedPart
from zconsole.rebalance.planning.walk import Portion

MOST = 8
"""Directories that are named."""


class Held(NamedTuple):
    """What a directory and all below it hold."""

    files: int = 0
    bytes: int = 0
    """Lengths; a file of several names counts once where all of them are in here."""
    old_bytes: int = 0
    """Of which in files older than the newest vdev."""

    def plus(self, portion: Portion, addition: float | None) -> Held:
        """With some more files; ``addition`` is when the newest vdev was added (epoch seconds)."""
        sizes = [status.st_size // (status.st_nlink or 1) for _, status in portion.files]
        old = 0
        if addition is not None:
            files = zip(sizes, portion.files, strict=True)
            old = sum(size for size, (_, status) in files if status.st_ctime < addition)
        return Held(self.files + len(sizes), self.bytes + sum(sizes), self.old_bytes + old)


@dataclass(slots=True)
class Ranking:
    """Adds up a walk by the directories in its root, one after another, and keeps the best."""

    _root: int = 0
    _current: DirectoryRow | None = None
    _held: Held = field(default_factory=Held)
    """What is in the current one so far."""
    _best: list[tuple[bytes, Held]] = field(default_factory=list)

    def add(self, portion: Portion, addition: float | None) -> None:
        """Take in a portion; they come depth first, so that a directory is whole before the next.

        ``addition`` is when the newest vdev was added (epoch seconds).
        """
        row = portion.directory
        if row.parent is None:
            self._root = row.number
            return
        if row.parent == self._root and (not self._current or self._current.number != row.number):
            self._close()
            self._current = row
        if self._current is not None:
            self._held = self._held.plus(portion, addition)

    def note(self, name: bytes, held: Held) -> None:
        """Take in a directory that is whole."""
        self._best.append((name, held))
        self._best.sort(key=lambda x: (x[1].old_bytes, x[1].bytes), reverse=True)
        del self._best[MOST:]

    def best(self, known: bool) -> Iterator[PlannedPart]:
        """Those worth most, first; none where there is nothing to choose from.

        ``known``: whether there is a moment that tells old from new.
        """
        self._close()
        for name, (files, size, old) in self._best if len(self._best) > 1 else ():
            yield PlannedPart(os.fsdecode(name), files, size, old if known else None)

    def _close(self) -> None:
        if self._current is not None:
            self.note(self._current.name, self._held)
        self._current, self._held = None, Held()
