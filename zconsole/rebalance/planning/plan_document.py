"""A plan as it is shown: the one object that text, JSON and the dialog of the console render.

Fields are named and ordered as in the JSON of ``zconsole rebalance plan --json``. Sizes in bytes,
fills and spreads as shares 0…1; None stands for what only ZFS could say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from zconsole.system.records import from_json

if TYPE_CHECKING:
    from zconsole.rebalance.planning.settings import Limits


@dataclass(frozen=True, slots=True)
class PredictedFill:
    """How full a top-level vdev is, and will be; a special one at most."""

    name: str
    fill_before: float
    fill_after: float


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A directory in one that is planned, and what it holds."""

    name: str
    files: int
    bytes: int
    old_bytes: int | None
    """Of which in files older than the newest vdev; None where that is not known."""


@dataclass(frozen=True, slots=True)
class PlannedDirectory:
    """What a plan says of one directory."""

    dir: str
    dataset: str | None
    files: int
    bytes: int
    skipped: Mapping[str, int]
    """Files by the reason they will be left as they are."""
    sampled: Mapping[str, int]
    """What the files that were opened showed, counted: see ``plan_text.sample_words``."""
    engine: str | None
    why: str
    space_needed_bytes: int
    pinned_bytes: Mapping[str, int | None]
    """Old blocks that stay allocated, by what holds them."""
    next_incremental_bytes: int | None
    """What the next incremental send grows by."""
    allocated_bytes: int
    """What the blocks take now."""
    allocated_after_bytes: int | None
    """What they take when all are written again."""
    sizes_from: str | None
    """How that is known, or why not; None where there is nothing to say."""
    old_bytes: int | None
    """In files older than the newest vdev; None where there is none, or nobody knows."""
    below: tuple[PlannedPart, ...]
    """The directories in it that are worth most, first."""


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan, made: measured and predicted, and refused where it cannot work."""

    directories: tuple[PlannedDirectory, ...]
    pool: str | None = None
    spread_before: float | None = None
    spread_after: float | None = None
    target_spread: float | None = None
    bytes_to_target: int | None = None
    available_bytes: int = 0
    """That may be written before the free-space floor."""
    fragmentation: float | None = None
    scanning: str | None = None
    raw_factor: float | None = None
    """Allocated bytes a byte of a file takes: parity and padding."""
    vdevs: tuple[PredictedFill, ...] | None = None
    special: tuple[PredictedFill, ...] | None = None
    estimate: str = ""
    """What the prediction is based on."""
    order: str = ""
    """Which files go first."""
    notes: tuple[str, ...] = field(default=())
    refused: str | None = None

    @property
    def files(self) -> int:
        """Files that will be moved."""
        return sum(each.files for each in self.directories)

    @property
    def bytes(self) -> int:
        """Bytes that would be moved without limits."""
        return sum(each.bytes for each in self.directories)

    def bytes_within(self, limits: Limits) -> int:
        """Bytes that will be moved: all, or as many as a limit or the wanted spread needs."""
        bounds = [self.bytes, limits.max_bytes]
        if limits.until_spread is not None:
            bounds.append(self.bytes_to_target)
        return min(bound for bound in bounds if bound is not None)

    def as_json(self) -> dict[str, Any]:
        """The object of the contract; a single directory's fields stand at the top as well."""
        own = asdict(self)
        parts = own["directories"]
        single = parts[0] if len(parts) == 1 else {}
        return {"version": 1, **single, "files": self.files, "bytes": self.bytes, **own}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlanDocument:
        """The document of such an object. Raises KeyError, RecordError for any other."""
        return from_json(cls, {each.name: data[each.name] for each in fields(cls)})
