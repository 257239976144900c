"""A plan in the making: of each directory of a job, and of the pool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import JobDirectory, PoolFacts
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory
from zconsole.rebalance.planning.survey import Survey

BATCH_BYTES = 256 << 20
"""What the copy engine has in flight beside a file that is larger."""


@dataclass(slots=True)
class DirectoryPlan:
    """What happens to one directory."""

    place: JobDirectory
    found: Survey
    choice: Choice
    files: int
    bytes: int
    pinned: dict[str, int | None] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    """Settings of now that its files were not written with."""
    shared: bool = False
    """Whether other hosts may have its files open."""
    in_flight: int = 0
    """Bytes that are there twice while the job runs, at most."""
    grown: int = 0
    """Bytes by which its blocks grow, as files looked at would be written now."""
    held_most: int = 0
    """Bytes of its blocks that snapshots may have: files may have changed since only in part."""

    @property
    def pinned_least(self) -> int:
        """Bytes that stay allocated after the move where all causes hold the same blocks."""
        return max((n or 0 for n in self.pinned.values()), default=0)

    @property
    def pinned_most(self) -> int:
        """Bytes that stay allocated where each cause holds others; a clone's are a snapshot's."""
        found = {cause: n or 0 for cause, n in self.pinned.items()}
        held = max(found.pop("snapshots", 0), found.pop("clones", 0), self.held_most)
        return min(self.found.allocated, held + sum(found.values()))

    def within(self, goal: int, allocated: int) -> int:
        """So many bytes of its blocks, or as many as ``goal`` bytes of its files have at most."""
        # Those that move first may be stored whole where others are compressed, or have holes.
        return min(allocated, round(goal * max(1.0, self.stored)))

    def growth(self, goal: int) -> int:
        """Bytes by which blocks have grown once so many bytes of its files have moved."""
        return round(self.grown * min(1.0, goal / self.bytes)) if self.bytes else 0

    @property
    def sent(self) -> int | None:
        """Bytes that the next incremental send from a snapshot or bookmark grows by; no holes."""
        dataset, found = self.place.dataset, self.found
        if dataset is None:
            return None
        content = round(found.allocated * dataset.ratio)
        return min(found.snapshot_bytes + found.bookmark_bytes, content)

    @property
    def stored(self) -> float:
        """Bytes that the blocks of a byte of its files take."""
        return self.found.allocated / self.bytes if self.bytes else 0.0

    def leave_out(self, reason: str, files: int, size: int) -> None:
        """Skip some files of so many bytes."""
        self.found.skipped[reason] += files
        self.files -= files
        self.bytes -= size

    def leave_alone(self, letters: str) -> None:
        """Take out of what moves, is pinned and sent what options of ``zfs rewrite`` spare."""
        if self.choice.engine != "rewrite":
            return
        found = self.found
        if "S" in letters:
            # Blocks in a clone's origin are those of a snapshot (dmu_objset_block_is_shared).
            self.bytes = max(0, self.bytes - found.snapshot_bytes)
            found.old_allocated = max(0, found.old_allocated - found.snapshot_allocated)
            found.allocated = max(0, found.allocated - found.snapshot_allocated)
            self.pinned |= {"snapshots": 0, "clones": 0}
            self.held_most = 0
        if "C" in letters:
            self.pinned |= {"block_clones": 0}
        if "S" in letters or "P" in letters:
            found.snapshot_bytes = 0
        if "P" in letters:
            found.bookmark_bytes = 0

    def document(self, goal: int) -> PlannedDirectory:
        """What is shown of it in a plan to move so many bytes of files."""
        lasting = self.within(goal, self.pinned_most) + self.growth(goal)
        known = self.found.ages.addition is not None
        return PlannedDirectory(
            dir=os.fsdecode(self.place.root),
            dataset=self.place.dataset.name if self.place.dataset else None,
            files=self.files,
            bytes=self.bytes,
            skipped=dict(self.found.skipped),
            sampled=dict(self.found.sampled),
            engine=self.choice.engine,
            why=self.choice.why,
            space_needed_bytes=self.in_flight + lasting,
            pinned_bytes=self.pinned,
            next_incremental_bytes=self.sent,
            allocated_bytes=self.found.allocated,
            differs=self.differs,
            old_bytes=self.found.old_allocated if known else None,
            below=tuple(self.found.below.best(known)),
        )


class RebalancePlan(NamedTuple):
    """What was measured of all directories and of their pool, and what is shown of it."""

    directories: Sequence[DirectoryPlan]
    pool: PoolFacts | None
    document: PlanDocument
    source: Sequence[float] | None = None
    """Share of the bytes to move that lies on each vdev; None where that is not known."""

    @property
    def allocated(self) -> int:
        """Bytes of the blocks to move."""
        return sum(each.found.allocated for each in self.directories)

    @property
    def pinned(self) -> float:
        """Share of them whose old ones stay."""
        held = sum(each.pinned_least for each in self.directories)
        return held / self.allocated if self.allocated else 0.0
