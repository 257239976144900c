"""A plan for display: the one object that the text, the JSON and the console's dialog show.

Fields are named and ordered as in the JSON of ``zconsole rebalance plan --json``. Sizes in bytes,
fills and spreads as shares 0…1; None stands for values that only ZFS could provide. This module
also renders a plan as text, in sentences that the console shows as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from zconsole.pool.volumes import VolumeLimit
from zconsole.system.printable import clean
from zconsole.system.records import from_json
from zconsole.units import counted, percent, size

if TYPE_CHECKING:
    from zconsole.rebalance.planning.settings import Limits

PINS = {
    "snapshots": "snapshots",
    "clones": "clones",
    "checkpoint": "the checkpoint",
    "dedup": "dedup",
    "block_clones": "block clones",
}

Sentence = tuple[str, str]
"""A text, not yet escaped for a terminal, and its role (style) on a screen."""


@dataclass(frozen=True, slots=True)
class PredictedFill:
    """Fill of a top-level vdev before and after; of a special vdev, at most after."""

    name: str
    fill_before: float
    fill_after: float


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A subdirectory of a planned directory, with its totals."""

    name: str
    files: int
    bytes: int
    old_bytes: int | None
    """Bytes in files older than the newest vdev; None if unknown."""


@dataclass(frozen=True, slots=True)
class PlannedDirectory:
    """The plan for one directory."""

    dir: str
    dataset: str | None
    files: int
    bytes: int
    skipped: Mapping[str, int]
    """Number of files that will be skipped, by reason."""
    sampled: Mapping[str, int]
    """Number of sampled files by what opening them showed; ``sample_words`` renders it."""
    engine: str | None
    why: str
    space_needed_bytes: int
    pinned_bytes: Mapping[str, int | None]
    """Bytes of old blocks that stay allocated, by what holds them (keys of ``PINS``)."""
    next_incremental_bytes: int | None
    """Bytes by which the next incremental send grows."""
    allocated_bytes: int
    """Bytes that the blocks take now."""
    differs: tuple[str, ...]
    """Current properties that the files were not written with, so that their size may change."""
    old_bytes: int | None
    """Bytes in files older than the newest vdev; None if unknown, or no vdev was added."""
    below: tuple[PlannedPart, ...]
    """Subdirectories most worth moving, best first."""


@dataclass(frozen=True, slots=True)
class FillNew:
    """What ``allocating=off`` on the vdevs that are too full does to a plan, while the job runs."""

    chosen: bool
    """Whether the job does it."""
    vdevs: tuple[str, ...]
    """The vdevs that take no new writes."""
    less_available_bytes: int
    """Bytes by which ``zfs list`` shows less available meanwhile."""
    spread_after: float | None
    bytes_to_target: int | None
    usual_spread_after: float | None
    """Spread afterwards without it."""
    usual_bytes_to_target: int | None
    refused: str | None
    """Why it can't be done."""


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A complete plan: measured, predicted, and refused if it can't work."""

    directories: tuple[PlannedDirectory, ...]
    pool: str | None = None
    spread_before: float | None = None
    spread_after: float | None = None
    target_spread: float | None = None
    bytes_to_target: int | None = None
    busy_spread_after: float | None = None
    """Spread afterwards if the writes keep all disks busy (``allocator``)."""
    busy_bytes_to_target: int | None = None
    available_bytes: int = 0
    """Bytes that may be written before the free-space floor is reached."""
    fragmentation: float | None = None
    scanning: str | None = None
    raw_factor: float | None = None
    """Raw bytes that an allocated byte takes where the files lie: parity and padding."""
    vdevs: tuple[PredictedFill, ...] | None = None
    special: tuple[PredictedFill, ...] | None = None
    fill_new: FillNew | None = None
    """None without a pool."""
    volumes: VolumeLimit | None = None
    """The pool's volumes, which the job does not move; None if unknown."""
    estimate: str = ""
    """Evidence that the prediction is based on."""
    order: str = ""
    """Order in which files are moved."""
    notes: tuple[str, ...] = field(default=())
    refused: str | None = None

    @property
    def files(self) -> int:
        """Number of files that will be moved."""
        return sum(each.files for each in self.directories)

    @property
    def bytes(self) -> int:
        """Bytes that would be moved without limits."""
        return sum(each.bytes for each in self.directories)

    def bytes_within(self, limits: Limits) -> int:
        """Bytes that will be moved: all, or fewer by a limit or the wanted spread."""
        bounds = [self.bytes, limits.max_bytes]
        if limits.until_spread is not None:
            bounds.append(self.bytes_to_target)
        return min(bound for bound in bounds if bound is not None)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object; fields of a single directory are at the top level as well."""
        own = asdict(self)
        parts = own["directories"]
        single = parts[0] if len(parts) == 1 else {}
        return {"version": 1, **single, "files": self.files, "bytes": self.bytes, **own}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlanDocument:
        """Build the document from ``as_json``. Raises KeyError or RecordError for other data."""
        return from_json(cls, {each.name: data[each.name] for each in fields(cls)})


def plan_lines(plan: PlanDocument) -> list[str]:
    """Render a plan as text: its directories, spread, pool and notes."""
    lines = [line for part in plan.directories for line in _directory(part)]
    if plan.pool is not None:
        lines.append(
            f"spread of pool {clean(plan.pool)}: {percent(plan.spread_before, 1)} now,"
            f" {percent(plan.spread_after, 1)} after ({plan.estimate})"
        )
        needs = plan.bytes_to_target
        kind = f" logical{lands_again(plan)}" if needs else ""
        lines.append(f"to move for a spread of {target_of(plan)}: {size(needs)}{kind}")
    lines += [f"  {_fill(vdev)} then" for vdev in plan.vdevs or ()]
    lines += [f"  {_fill(vdev)} then at most (special)" for vdev in plan.special or ()]
    if words := fill_new_words(plan, size, "--fill-new"):
        lines.append(clean(words))
    lines += [clean(text) for text, _ in cost_sentences(plan, size)]
    lines += [f"note: {clean(note)}" for note in plan.notes]
    if plan.refused:
        lines.append(f"refused: {clean(plan.refused)}")
    return lines


def _directory(part: PlannedDirectory) -> Iterator[str]:
    yield (
        f"{clean(part.dir)}: {counted(part.files, 'file')}, {size(part.bytes)} logical,"
        f" engine {part.engine or 'none'} ({part.why})"
    )
    yield from (f"  {clean(text)}" for text, _ in file_sentences(part, size))


def file_sentences(part: PlannedDirectory, show: Callable[[float], str]) -> Iterator[Sentence]:
    """Yield sentences on a directory's files; ``show`` formats a size."""
    for reason, files in part.skipped.items():
        yield f"{files} skipped: {reason}", "warning"
    if seen := sample_words(part.sampled, part.engine):
        yield seen, "warning"
    if best := best_words(part.below, part.old_bytes, show):
        yield best, "notice"
    if part.differs:
        taken, why = show(part.allocated_bytes), "; ".join(part.differs)
        yield f"takes {taken} compressed, may change: {why}", "bold"


def target_of(plan: PlanDocument) -> str:
    """Return the spread that a plan aims at, with all its digits: ``5 %``, ``2.5 %``."""
    return "-" if plan.target_spread is None else f"{plan.target_spread * 100:g} %"


def lands_again(plan: PlanDocument) -> str:
    """Return how a plan's amount to move ends if part of it moves in vain; else empty."""
    chosen = plan.fill_new is not None and plan.fill_new.chosen
    return "" if chosen else "; part of the data lands on the full vdevs again"


def fill_new_words(plan: PlanDocument, show: Callable[[float], str], option: str) -> str:
    """Say what keeping full vdevs from new writes saves; empty if it saves little or can't be.

    ``option`` is how to choose it, where it is not chosen.
    """
    found = plan.fill_new
    if found is None or found.refused is not None:
        return ""
    needs, usual = found.bytes_to_target, found.usual_bytes_to_target
    if needs is not None:
        saves = usual is None or needs < (1 - CLEAR_SAVING) * usual
        instead = "out of reach otherwise" if usual is None else f"not {show(usual)}"
        gain = f"a spread of {target_of(plan)} needs {show(needs)} logical, {instead}"
    else:
        after, before = found.spread_after or 0.0, found.usual_spread_after or 0.0
        saves = before - after >= CLEAR_SPREAD
        gain = f"a spread of {percent(after, 1)} after all files, not {percent(before, 1)}"
    if not found.chosen and not saves:
        return ""
    names, less = ", ".join(found.vdevs), show(found.less_available_bytes)
    if found.chosen:
        return (
            f"no new writes on {names} while the job runs (allocating=off): {gain}; zfs list shows"
            f" {less} less available until it ends, or has moved nothing for an hour"
        )
    return f"without new writes on {names} meanwhile ({option}): {gain}; {less} less available"


CLEAR_SAVING = 0.05
"""Share of the bytes to move that must be saved to be worth telling."""


def cost_sentences(plan: PlanDocument, show: Callable[[float], str]) -> Iterator[Sentence]:
    """Yield sentences on the cost of the move and the space there is; ``show`` formats a size."""
    for cause, words in PINS.items():
        if held := sum(part.pinned_bytes.get(cause) or 0 for part in plan.directories):
            yield f"{show(held)} (compressed) of old blocks stay, held by {words}", "warning"
    if sent := sum(part.next_incremental_bytes or 0 for part in plan.directories):
        yield f"the next incremental send grows by {show(sent)} logical", "warning"
    if plan.order:
        yield f"order of files: {plan.order}", "dim"
    # Space in addition to the files: copies in flight, and old blocks that stay.
    needs, has = sum(each.space_needed_bytes for each in plan.directories), plan.available_bytes
    extra = f"up to {show(needs)} extra" if needs else "no extra space"
    fits, role = ("enough space", "dim") if needs <= has else ("space may run out", "warning")
    free = f"{show(has)} is usable beyond what is kept free"
    yield f"{fits}: the move needs {extra}, {free} (parity not counted)", role
    if words := busy_words(plan, show):
        yield words, "notice"
    if plan.fragmentation is not None:
        yield f"the pool's free space is {plan.fragmentation * 100:.0f} % fragmented", "dim"


def busy_words(plan: PlanDocument, show: Callable[[float], str]) -> str:
    """Say what differs if the writes keep all disks busy; empty if little does."""
    after, usual, found = plan.busy_spread_after, plan.spread_after, list[str]()
    if after is None or usual is None:
        return ""
    if abs(after - usual) >= CLEAR_SPREAD:
        found.append(f"a spread of {percent(after)} after all files")
    needed, needs = plan.bytes_to_target, plan.busy_bytes_to_target
    wanted = target_of(plan)
    if needs is None and needed is not None:
        found.append(f"{wanted} is out of reach")
    elif needs is not None and abs(needs - (needed or 0)) > CLEAR_BYTES * needs:
        found.append(f"{wanted} needs {show(needs)} logical")
    return f"if the writes keep all disks busy: {', '.join(found)}" if found else ""


CLEAR_SPREAD, CLEAR_BYTES = 0.01, 0.2
"""Differences of spreads, and shares of bytes, below which only one prediction is told."""


def _fill(vdev: PredictedFill) -> str:
    before, after = percent(vdev.fill_before, 1), percent(vdev.fill_after, 1)
    return f"{clean(vdev.name)}: {before} full now, {after}"


def sample_words(sampled: Mapping[str, int], engine: str | None) -> str | None:
    """Render why files that the plan opened as a sample will be skipped; None if none will.

    ``sampled`` counts files by finding, with those that could be opened as ``opened``.
    """
    opened = sampled.get("opened", 0)
    # A rewrite in place keeps the inode, so writers lose nothing.
    harmless = {"opened", *(("open for writing",) if engine == "rewrite" else ())}
    seen = [f"{files} {clean(word)}" for word, files in sampled.items() if word not in harmless]
    return f"in a sample of files, {opened} of them opened: {', '.join(seen)}" if seen else None


def best_words(
    below: Sequence[PlannedPart], old: int | None, size: Callable[[float], str]
) -> str | None:
    """Render the subdirectories most worth moving, from a plan's ``below`` and ``old_bytes``."""
    if old == 0:
        return "all files here are newer than the newest vdev: they are spread already"
    if old is None:
        head = "holding most (logical)"
        best = [f"{each.name} {size(each.bytes)}" for each in below if each.bytes]
    else:
        head = "worth most (logical), older than the newest vdev"
        best = [
            f"{each.name} {size(each.old_bytes)} of {size(each.bytes)}"
            for each in below
            if each.old_bytes
        ]
    return f"{head}: {', '.join(best)}" if best else None
