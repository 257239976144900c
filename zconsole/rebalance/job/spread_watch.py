"""What the vdevs of a pool hold while files move, and how far it is to a wanted spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from zconsole.errors import UnavailableError
from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import TOTAL_CHANGED
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.units import size

INTERVAL = 10.0
"""Seconds between two looks at the vdevs."""
ENOUGH = 32 << 20
"""Raw bytes that have to be expected to have moved before nothing having moved means anything."""
TOO_LITTLE = 0.05
"""Share of the expected movement under which nothing is taken to move."""
STRIKES = 3
"""Looks in a row that have to agree."""
SETTLING = 3
"""Txgs until freed space shows."""
SMALLEST_STEP = 4 << 20
"""Bytes of files that pass at least between two looks on the way to a wanted spread."""
SAME_TOTAL = 0.1
"""Share by which a prediction may differ from the total that was said, which then stays."""
STEP_SHARE = 0.25
"""Share of what is predicted to be left to the target that may pass before the next look."""


@dataclass(slots=True)
class SpreadWatch:
    """Watch a pool while files move: zpool is asked at most every INTERVAL seconds."""

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
        """Return the vdevs as of the last look; ``force`` a new one before INTERVAL is over."""
        now = self.clock()
        if force or self._looked is None or now - self._looked >= INTERVAL:
            self._looked = now
            try:
                self.now_spaces, self.fragmentation = self.reader.listing(self.pool)
            except UnavailableError:
                return self.now_spaces or self.before
        return self.now_spaces or self.before

    def settled(self) -> tuple[Space, ...]:
        """Return the vdevs once what was freed shows: SETTLING txgs later. Raises UnavailableError.

        Freed space is kept back for so long (TXG_DEFER_SIZE, include/sys/txg.h).
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


def vdevs_as_json(before: Sequence[Space], after: Sequence[Space]) -> list[dict[str, Any]]:
    """Allocation of every vdev before and after, raw bytes."""
    return [
        {"name": b.name, "alloc_before": round(b.alloc), "alloc_after": round(a.alloc)}
        for b, a in zip(before, after, strict=False)
    ]
