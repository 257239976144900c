"""The queue of a job in portions that are made durable together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from zconsole.rebalance.engine.descriptors import batch_directories, batch_files
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.job.job import Job
from zconsole.rebalance.planning.plan_model import BATCH_BYTES

SMALLEST_BATCH = 8 << 20
BATCH_SECONDS = 4.0
PARENTS = 10_000
"""Directories whose parent is kept at hand."""


@dataclass(slots=True)
class Batches:
    """Portions bounded in bytes, files and directories: what a portion opens stays open."""

    job: Job
    files: int = field(default_factory=batch_files)
    directories: int = field(init=False)
    """With those above them: each is opened through its parent."""
    bytes: int = 16 << 20
    _spent: int = 0
    """Bytes moved, and those that may be by the end of this portion."""
    _batch: list[FileRow] = field(default_factory=list)
    _size: int = 0
    _held: set[int] = field(default_factory=set)
    _waiting: deque[FileRow] = field(default_factory=deque)
    _parents: dict[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directories = batch_directories(self.files)

    def __iter__(self) -> Iterator[list[FileRow]]:
        """Every portion of what is to do now, in order. Raises StopJobError at the byte limit."""
        cursor = (-1, -1, -1)
        self._spent = self.job.journal.moved_bytes()
        while rows := self.job.journal.todo(cursor, self.files):
            for rank, row in rows:
                opened = self._opened(row)
                if self._is_spent or not self._fits(row, opened):
                    yield self._complete()
                    opened = self._opened(row)
                if self._is_spent:  # and what was skipped has been given back
                    raise StopJobError("byte limit reached")
                cursor = (rank, row.directory, row.number)
                self._batch.append(row)
                self._held |= opened
                self._size += row.size
                self._spent += row.size
        yield self._complete()

    def give_back(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take off the byte limit only what was moved."""
        self._spent -= sum(done.row.size for done in outcomes if done.outcome != "moved")

    def one_by_one(self, rows: Sequence[FileRow]) -> Iterator[FileRow]:
        """Rows of a portion that are handled alone, but for those ``shorten`` takes off."""
        self._waiting = deque(rows)
        while self._waiting:
            yield self._waiting.popleft()

    def shorten(self, drop_tail: Callable[[int], int]) -> None:
        """Leave to do what a limit lowered meanwhile leaves no room for in this portion.

        ``drop_tail`` is given how many bytes are too many, and returns how many of them it left.
        """
        self._spent -= drop_tail(self._excess)
        while self._waiting and 0 < self._waiting[-1].size <= self._excess:
            self._spent -= self._waiting.pop().size

    @property
    def _excess(self) -> int:
        most = self.job.limits.max_bytes
        return 0 if most is None else max(0, self._spent - most)

    def adapt(self, seconds: float, size: int, largest: int = BATCH_BYTES) -> None:
        """Aim the next portion at BATCH_SECONDS, after one of so many bytes took so long.

        With a limit of the rate, too: what a portion moved is reported when it ends, which must
        not be minutes later.
        """
        if seconds > 0 and size:
            self.bytes = round(size / seconds * BATCH_SECONDS)
        self.bytes = max(SMALLEST_BATCH, min(self.bytes, largest))
        if (rate := self.job.limits.rate) is not None:
            self.bytes = max(1, min(self.bytes, round(rate * BATCH_SECONDS)))

    def keep_within(self, room: int) -> None:
        """Take no more than half of so many free bytes: a portion frees space when it ends."""
        self.bytes = max(1, min(self.bytes, room // 2))

    @property
    def _is_spent(self) -> bool:
        most = self.job.limits.max_bytes
        return most is not None and self._spent >= most

    def _fits(self, row: FileRow, opened: set[int]) -> bool:
        if not self._batch:
            return True
        if self._size + row.size > self.bytes or len(self._batch) >= self.files:
            return False
        return len(self._held) + len(opened) <= self.directories

    def _complete(self) -> list[FileRow]:
        batch, self._batch, self._size, self._held = self._batch, [], 0, set()
        return batch

    def _opened(self, row: FileRow) -> set[int]:
        """The directories of all names of a file that are not held yet, and those above them."""
        opened: set[int] = set()
        for name in self.job.journal.names_of(row):
            number: int | None = name.directory
            while number is not None and number not in self._held and number not in opened:
                opened.add(number)
                if number not in self._parents:
                    if len(self._parents) >= PARENTS:
                        self._parents.clear()
                    self._parents[number] = self.job.journal.directory(number).parent
                number = self._parents[number]
        return opened
