"""Whether a job works: where blocks of moved files lie, what vdevs hold; and the line of each day.

Checked early, and again and again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zconsole.errors import UnavailableError
from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import TOTAL_CHANGED
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.planning import blocks
from zconsole.rebalance.planning.blocks import Blocks
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.plan_model import JobDirectory
from zconsole.units import size

if TYPE_CHECKING:
    from zconsole.rebalance.job.accounts import JobAccounts

INTERVAL = 10.0
"""Seconds between two looks at the vdevs."""
ENOUGH = 32 << 20
"""Raw bytes that have to be expected to have moved before nothing having moved means anything."""
TOO_LITTLE = 0.05
"""Share of the expected movement under which nothing is taken to move."""
STRIKES = 3
"""Looks in a row that have to agree."""
SETTLING = 3
SMALLEST_STEP = 4 << 20
SAME_TOTAL = 0.1
"""Share by which a prediction may differ from the total that was said, which then stays."""
STEP_SHARE = 0.25
"""Share of what is predicted to be left to the target that may pass before the next look."""


@dataclass(slots=True)
class MoveEffect:
    """Watches a pool while files move. Asks zpool at most every INTERVAL seconds."""

    reader: FactsReader
    pool: str
    before: tuple[Space, ...]
    raw_factor: float
    clock: Callable[[], float]
    now_spaces: tuple[Space, ...] = ()
    fragmentation: float | None = None
    """Of the free space, as of the last look."""
    next_look: int = 0
    """Bytes of files after which ``reached`` looks again."""
    step: int = 0
    _looked: float | None = None
    _strikes: int = 0
    total_changed: str = ""
    """Why the total is another than was said before; empty while it is the same."""
    _goal: tuple[float, int] | None = None
    """A spread, and after how many bytes of files in all it should be reached."""

    def look(self, force: bool = False) -> tuple[Space, ...]:
        """The vdevs as of the last look."""
        now = self.clock()
        if force or self._looked is None or now - self._looked >= INTERVAL:
            self._looked = now
            try:
                self.now_spaces, self.fragmentation = self.reader.listing(self.pool)
            except UnavailableError:
                return self.now_spaces or self.before
        return self.now_spaces or self.before

    def settled(self) -> tuple[Space, ...]:
        """The vdevs once what was freed shows. Raises UnavailableError.

        That is SETTLING txgs late (TXG_DEFER_SIZE, include/sys/txg.h).
        """
        for _ in range(SETTLING):
            self.reader.sync(self.pool)
        return self.look(force=True)

    def look_last(self, wait: bool) -> None:
        """Look once more at the end; with ``wait`` once what was freed shows."""
        try:
            self.settled() if wait else self.look(force=True)
        except UnavailableError:
            self.look(force=True)

    def spread(self) -> float:
        """The spread as of the last look."""
        return allocator.spread(self.look())

    def reached(self, target: float, handled: int) -> bool:
        """Whether the spread is down to ``target`` after ``handled`` bytes of files.

        Looks ever closer on the way there.
        """
        if handled < self.next_look:
            return False
        try:
            spaces = self.settled()
        except UnavailableError:
            return False
        if allocator.spread(spaces) <= target:
            return True
        left = self._predicted(spaces, target)
        self._expect(target, handled, handled + left)
        self.step = max(SMALLEST_STEP, round(left * STEP_SHARE))
        self.next_look = handled + self.step
        return False

    def _predicted(self, spaces: Sequence[Space], target: float) -> int:
        """Bytes of files to move until the spread is ``target``."""
        whole = sum(space.alloc for space in spaces)
        raw = allocator.raw_to_target(spaces, target, whole) or whole
        return round(raw / self.raw_factor)

    def _expect(self, target: float, handled: int, total: int) -> None:
        """Hold on to the total that was said, unless it turns out to be clearly another."""
        said = self._goal[1] if self._goal is not None and self._goal[0] == target else None
        if said is not None and handled < said and abs(total - said) <= SAME_TOTAL * said:
            return
        self._goal = target, total
        if said is None:
            self.total_changed = ""
            return
        spread = f"the spread falls {'slower' if total > said else 'faster'} than predicted"
        why = spread if self.step else "the pool changed since the plan"
        self.total_changed = f"{TOTAL_CHANGED}{size(total)}, not {size(said)}: {why}"

    def left(self, target: float, handled: int) -> int | None:
        """Bytes of files to go until the spread is ``target``, as predicted; None if unknown.

        Before the first look, by the vdevs as they were when the job was planned.
        """
        if self._goal is None and not self.step and self.before:
            self._goal = target, self._predicted(self.before, target)
        if self._goal is None or self._goal[0] != target:
            return None
        return max(0, self._goal[1] - handled)

    def in_vain(self, moved: int) -> bool:
        """Whether ``moved`` bytes of files have left no trace on the vdevs, look after look."""
        previous = self._looked
        spaces = self.look()
        if self._looked == previous or len(spaces) != len(self.before):
            return False
        expected = allocator.expected_move(self.before, moved * self.raw_factor)
        if expected < ENOUGH:
            return False
        changes = [abs(a.alloc - b.alloc) for a, b in zip(spaces, self.before, strict=True)]
        self._strikes = self._strikes + 1 if max(changes) < TOO_LITTLE * expected else 0
        return self._strikes >= STRIKES


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
    """Whether blocks of moved files move: by ``zdb`` on a few, before and after (root).

    Looks at the first batch, and at one every AGAIN seconds; where none of its files could be
    judged, at the next. What is seen is not disturbed by other writers, as the allocation of the
    vdevs is.
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
        found = blocks.listed(self.reader.run, dataset.name, inodes) if dataset else {}
        return {inode: file.blocks for inode, file in found.items() if file.blocks}


STAYED = "nothing moves: blocks stay where they were"
IN_VAIN = "nothing moves: vdev sizes don't change"


@dataclass(slots=True)
class BenefitCheck:
    """Judges a job by its effect, after every portion and within a file that takes long."""

    accounts: JobAccounts
    samples: Sequence[Samples]
    """One a directory of the job: they may be on datasets of which one keeps its blocks."""
    balancing: bool
    """Whether the job balances the vdevs; with another aim they need not change."""
    _already: int | None = None
    """Bytes that the runs before this one moved."""
    _moved: int = 0
    _told: float = field(default=float("-inf"))

    def begin(self, rows: Sequence[FileRow]) -> None:
        """Before a portion."""
        if self._already is None:
            self._already = self.accounts.job.journal.moved_bytes()
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
        if self.accounts.job.clocks.monotonic() - self._told >= INTERVAL:
            self._look()

    def _look(self) -> None:
        self._told = self.accounts.job.clocks.monotonic()
        watching = self.accounts.effect
        if watching and self.balancing and watching.in_vain(self._worked):
            raise StopJobError(IN_VAIN)
        self.day()

    @property
    def _worked(self) -> int:
        """Bytes this run has moved."""
        return self._moved + self.accounts.unfinished

    def day(self) -> None:
        """Write the line of today; nothing for a run that has moved nothing."""
        if self._already is None:
            return
        day = self.accounts.job.clocks.local().strftime("%Y-%m-%d")
        line = {"day": day, "moved_bytes": self._already + self._worked, **self._line()}
        self.accounts.job.journal.add_day(day, line)

    def _line(self) -> dict[str, Any]:
        accounts, watching = self.accounts, self.accounts.effect
        spaces = watching.look() if watching else None
        return {
            "files_done": accounts.files_done,
            "files_skipped": accounts.files_skipped,
            "files_replaced": accounts.files_replaced,
            "files_failed": accounts.files_failed,
            "fragmentation": watching.fragmentation if watching else None,
            "spread": watching.spread() if watching else None,
            "free_bytes": round(sum(space.free for space in spaces)) if spaces else None,
            "eta_seconds": accounts.as_json()["eta_seconds"],
        }
