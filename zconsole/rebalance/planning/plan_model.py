"""What a plan says: of a job, of each of its directories, and of the pool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning import hot_directories
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Mount, PoolFacts
from zconsole.rebalance.planning.survey import Survey

BATCH_BYTES = 256 << 20
"""What the copy engine has in flight beside a file that is larger."""
FLOOR = 0.05
"""Share of a pool that stays free unless told otherwise; ZFS slows down when nearly full."""
TARGET = 0.05
"""The spread a plan speaks of when none is asked for."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How far a job is to go. ``min_free`` is a share of the pool."""

    until_spread: float | None = None
    max_bytes: int | None = None
    min_free: float | None = None


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """One directory of the job and the filesystem it is on."""

    root: bytes
    mount: Mount
    dataset: Dataset | None

    @property
    def key(self) -> str:
        """What tells this filesystem from others, on every boot: on ZFS, not just its name."""
        guid = self.dataset.properties.get("guid", "") if self.dataset else ""
        return f"{self.mount.kind}:{self.mount.source}:{guid}"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes the blocks take now and afterwards; None with the reason where that is not known."""

    before: int
    after: int | None
    estimate: str

    @property
    def change(self) -> int:
        """Bytes they take more afterwards, or less; 0 where that is not known."""
        return 0 if self.after is None else self.after - self.before


@dataclass(slots=True)
class DirectoryPlan:
    """What happens to one directory."""

    place: JobDirectory
    found: Survey
    choice: Choice
    files: int
    bytes: int
    pinned: dict[str, int | None] = field(default_factory=dict)
    sizes: Sizes | None = None
    """What its blocks take afterwards; None off ZFS."""
    shared: bool = False
    """Whether other hosts may have its files open."""
    in_flight: int = 0
    """Bytes that are there twice while the job runs, at most."""

    @property
    def lasting(self) -> int:
        """Bytes that stay taken: by old blocks, and by larger ones."""
        return self.pinned_most + (max(0, self.sizes.change) if self.sizes else 0)

    @property
    def space_needed(self) -> int:
        """Free bytes the job has to find."""
        return self.in_flight + self.lasting

    @property
    def pinned_most(self) -> int:
        """Bytes that stay allocated after the move: the causes overlap, so the largest."""
        return max((n or 0 for n in self.pinned.values()), default=0)

    def as_json(self) -> dict[str, Any]:
        """The object of the contract."""
        zfs, known = self.place.dataset is not None, self.found.ages.addition is not None
        return {
            "dir": os.fsdecode(self.place.root),
            "dataset": self.place.dataset.name if self.place.dataset else None,
            "files": self.files,
            "bytes": self.bytes,
            "skipped": dict(self.found.skipped),
            "sampled": dict(self.found.sampled),
            "engine": self.choice.engine,
            "why": self.choice.why,
            "space_needed_bytes": self.space_needed,
            "pinned_bytes": self.pinned,
            "next_incremental_bytes": self.found.snapshot_bytes if zfs else None,
            "allocated_bytes": self.found.allocated,
            "allocated_after_bytes": self.sizes.after if self.sizes else None,
            "sizes_from": self.sizes.estimate if self.sizes else None,
            "old_bytes": self.found.old_allocated if known else None,
            "below": hot_directories.as_json(self.found.below, known),
        }


@dataclass(slots=True)
class RebalancePlan:
    """All directories and the pool."""

    directories: list[DirectoryPlan]
    pool: PoolFacts | None
    after: list[Space]
    bytes_to_target: int | None
    target: float
    available: int
    """Bytes that may be used before the floor is reached."""
    estimate: str
    """What the source of the bytes was taken from."""
    special: list[Space] = field(default_factory=list)
    """The special vdevs when every small block has gone there."""
    notes: list[str] = field(default_factory=list)
    refused: str | None = None

    @property
    def growth(self) -> float:
        """New size of all by old, as far as it is known."""
        before = sum(directory.found.allocated for directory in self.directories)
        change = sum(d.sizes.change for d in self.directories if d.sizes is not None)
        return 1 + change / before if before else 1.0

    def as_json(self) -> dict[str, Any]:
        """One object: totals, the pool, and every directory."""
        pool, first = self.pool, self.directories[0]
        directories = [directory.as_json() for directory in self.directories]
        summed = {k: sum(d[k] for d in directories) for k in ("files", "bytes")}
        return {
            "version": 1,
            **{k: v for k, v in first.as_json().items() if len(directories) == 1},
            **summed,
            "directories": directories,
            "pool": pool.name if pool else None,
            "spread_before": allocator.spread(pool.spaces) if pool else None,
            "spread_after": allocator.spread(self.after) if pool else None,
            "target_spread": self.target if pool else None,
            "bytes_to_target": self.bytes_to_target,
            "available_bytes": self.available,
            "fragmentation": pool.fragmentation if pool else None,
            "scanning": pool.scanning if pool else None,
            "raw_factor": pool.raw_factor if pool else None,
            "vdevs": _fills(pool.spaces, self.after) if pool else None,
            "special": _fills(pool.special, self.special) if pool else None,
            "estimate": self.estimate,
            "order": "older than the newest vdev first, then large before small"
            if pool and pool.added
            else "large before small",
            "notes": self.notes,
            "refused": self.refused,
        }


def _fills(before: Sequence[Space], after: Sequence[Space]) -> list[dict[str, Any]]:
    """Fill of every vdev, now and (of special ones at most) afterwards."""
    return [
        {"name": b.name, "fill_before": b.fill, "fill_after": a.fill}
        for b, a in zip(before, after, strict=True)
    ]
