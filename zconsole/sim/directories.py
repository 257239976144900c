"""Directories of the simulated pool, and a job that rewrites their files."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(slots=True)
class SimulatedDirectory:
    """Files that can be rewritten; bytes are allocated ones, parity included."""

    path: str
    files: int
    held: list[float]
    """Bytes on each normal-class top-level vdev, in the pool's order."""
    pinned: float = 0.0
    """Share that snapshots hold: rewritten, it is not freed."""
    moved: float = 0.0
    """Bytes rewritten so far."""
    old: list[float] = field(default_factory=list)
    """What a pass has not rewritten yet, by vdev: each byte is moved once."""

    def __post_init__(self) -> None:
        self.old = self.old or list(self.held)

    @property
    def size(self) -> float:
        """Bytes in all."""
        return sum(self.held)


@dataclass(slots=True)
class Rewrite:
    """A rebalance under way: directories one after the other."""

    directories: list[SimulatedDirectory]
    limit: float = math.inf
    """Bytes/s it may take."""
    running: bool = True
    done: float = 0.0
    plans: list[float] = field(default_factory=list)
    """``moved`` of each directory once it is done: what it holds at the start, on top."""
    paused: bool = False
    during_scan: bool = True
    target: float | None = None
    """Spread at which it ends, a share."""
    most: float = math.inf
    """Bytes after which it ends."""
    floor: float = 0.0
    """Share of the pool that stays free."""
    waiting: str = ""
    """What it waits for now."""
    why: str = ""
    """How it ended."""
    rate: float = 0.0
    """Bytes/s in the last step."""
    worked: float = 0.0
    """Seconds in which it moved something."""
    elsewhere: list[float] = field(default_factory=list)
    """Bytes of each directory that another job copied, so that they are not moved here."""
    _kept: list[float] = field(default_factory=list)
    """``left`` when it ended: what another job moves since does not count."""

    def __post_init__(self) -> None:
        self.plans = [directory.moved + directory.size for directory in self.directories]
        self.elsewhere = [0.0] * len(self.directories)
        for directory in self.directories:
            directory.old = list(directory.held)

    @property
    def total(self) -> float:
        """Bytes of all its files."""
        return self.handled + sum(self.left)

    @property
    def handled(self) -> float:
        """Bytes that were moved, here or elsewhere."""
        return self.done + sum(self.elsewhere)

    @property
    def left(self) -> list[float]:
        """Bytes left of each directory."""
        if self._kept:
            return self._kept
        pairs = zip(self.directories, self.plans, strict=True)
        return [plan - directory.moved for directory, plan in pairs]

    def end(self, why: str) -> None:
        """End the job."""
        self._kept = self.left
        self.running, self.why, self.rate, self.waiting = False, why, 0.0, ""

    def resume(self, *, again: bool) -> None:
        """Go on with what was left when it ended; what another job moved since counts as done.

        ``again``: it is moved once more, as files rewritten in place don't show that they were.
        """
        for index, (directory, kept) in enumerate(zip(self.directories, self._kept, strict=True)):
            if again and sum(directory.old) < kept:
                directory.old = [held * kept / directory.size for held in directory.held]
            left = min(kept, sum(directory.old))
            self.elsewhere[index] += kept - left
            self.plans[index] = directory.moved + left
        self._kept = []
        self.running, self.why = True, ""
