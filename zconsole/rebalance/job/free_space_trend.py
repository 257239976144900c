"""Where the free space is going while a job runs: its own writes, pinned blocks, other writers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from zconsole.units import duration, size

WINDOW = 900.0
"""Seconds looked back."""
STEP = 15.0
"""Seconds between two figures that are kept."""
LEAST = 120.0
"""Seconds of figures that tell a trend."""
FAR = 86400.0
"""Seconds from which on the floor is too far to be spoken of."""


@dataclass(slots=True)
class Trend:
    """How fast the room above the floor falls. Times are of a clock that never jumps.

    Copies take room until their originals are gone: what counts is the most there was in the
    earlier and in the later half of the figures.
    """

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, room: int) -> None:
        """Take in the bytes that may be written now; within a STEP, the most there were."""
        if self._seen and now - self._seen[-1][0] < STEP:
            self._seen[-1] = (self._seen[-1][0], max(room, self._seen[-1][1]))
            return
        self._seen.append((now, room))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def forget(self) -> None:
        """The floor has been moved: what was seen is of another."""
        self._seen.clear()

    def outlook(self) -> str | None:
        """When the floor will be reached if it goes on like that; None when not within a day."""
        seen = list(self._seen)
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < LEAST:
            return None
        half = len(seen) // 2
        (before, then), (after, now) = (_most(part) for part in (seen[:half], seen[half:]))
        falls = (then - now) / (after - before) if after > before else 0.0
        left = now / falls if falls > 0 else FAR
        if left >= FAR:
            return None
        return f"free space falls by {size(falls * 60)} a minute: at the floor in {duration(left)}"


def _most(seen: list[tuple[float, int]]) -> tuple[float, int]:
    """When there was most room, and how much."""
    return max(seen, key=lambda pair: pair[1])
