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
    _kept: list[float] = field(default_factory=list)
    """``left`` when it ended: what another job moves since does not count."""

    def __post_init__(self) -> None:
        self.plans = [directory.moved + directory.size for directory in self.directories]
        for directory in self.directories:
            directory.old = list(directory.held)

    @property
    def total(self) -> float:
        """Bytes it has to move in all."""
        return self.done + sum(self.left)

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

    def resume(self) -> None:
        """Go on with what was left when it ended, and was not moved by another job since."""
        pairs = zip(self.directories, self._kept, strict=True)
        left = [min(kept, sum(directory.old)) for directory, kept in pairs]
        self.plans = [d.moved + each for d, each in zip(self.directories, left, strict=True)]
        self._kept = []
        self.running, self.why = True, ""
