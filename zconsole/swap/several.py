"""Several disks to swap: in which order, and what each choice costs in time and redundancy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from zconsole.actions.candidates import ranked, spares
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import Facts, Situation
from zconsole.actions.replace import LITTLE
from zconsole.actions.running_scans import progress, will_defer
from zconsole.actions.target import Swap, Target, find, members
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.pool.model import Scan
from zconsole.pool.redundancy import is_complete, may_fail, parity
from zconsole.pool.topology import FAILED
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import PastRate, member_duration, paces
from zconsole.swap.checklist import REPLACE_FIRST, Checklist
from zconsole.swap.choice import SwapChoice, SwapWay, cause_of, choose
from zconsole.swap.disk import MachineView, SwapDisk, disk_of, disk_of_leaf, is_being_replaced
from zconsole.swap.effects import left_without, others_missing
from zconsole.swap.refusal import partition_of
from zconsole.swap.session import started
from zconsole.swap.store import SwapStore
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import counted, duration


@dataclass(frozen=True, slots=True)
class SwapOrder:
    """One way to swap several disks."""

    together: bool
    """Whether one resilver fills all new disks."""
    keys: tuple[str, ...]
    """The devices, in the order in which to swap them."""
    seconds: float | None
    """How long the resilvers take in all; None when unknown."""
    least: int
    """How many more devices the weakest vdev may lose at the worst moment."""
    text: tuple[str, ...]
    refused: str = ""
    doubtful: bool = False
    """Whether some may need no new disk: their cable is the likely cause."""


def orders(
    view: MachineView, keys: Sequence[str], seconds: Mapping[str, float | None]
) -> tuple[SwapOrder, ...]:
    """One after the other, and together; ``seconds``: what a resilver of each is predicted to take.

    The choice that keeps more redundancy is first; of equal ones the faster.
    """
    targets = urgent_first(view, keys)
    found = (_in_turn(view, targets, seconds), _together(view, targets, seconds))
    return tuple(sorted(found, key=_rank))


def predicted(
    view: MachineView,
    keys: Sequence[str],
    reports: Sequence[ScanReport] = (),
    others: Iterable[PastRate] = (),
) -> Mapping[str, float | None]:
    """Seconds that a resilver of each device would take; see ``estimated``."""
    return seconds_of(estimated(view, keys, reports, others))


def seconds_of(estimates: Mapping[str, Estimate | None]) -> Mapping[str, float | None]:
    """Only the seconds; None where they are unknown."""
    return {key: None if found is None else found.eta for key, found in estimates.items()}


def estimated(
    view: MachineView,
    keys: Sequence[str],
    reports: Sequence[ScanReport] = (),
    others: Iterable[PastRate] = (),
) -> Mapping[str, Estimate | None]:
    """How long a resilver of each device would take, and what that is based on: scans of the pool.

    Those that the pool and the reports tell count; where there is none, ``others``: those that
    run, and those that a later one took the place of.
    """
    pool = view.situation.pool
    known = paces(pool.root, pool.scans, reports) or tuple(sorted(others, key=_most_alike))
    targets = (find(pool, key) for key in keys)
    return {t.key: member_duration(t.top, known) for t in targets if t is not None}


def _most_alike(pace: PastRate) -> tuple[int, float]:
    return (-pace.closeness, -pace.t)


def urgent_first(view: MachineView, keys: Sequence[str]) -> tuple[Target, ...]:
    """The devices in the order in which to swap them.

    First where the vdev has the least redundancy; there the failed ones, by bay, then those with
    the most errors.
    """
    found = (find(view.situation.pool, key) for key in keys)
    return tuple(sorted((t for t in found if t is not None), key=partial(_urgency, view)))


def _urgency(view: MachineView, target: Target) -> tuple[int, bool, int, tuple[str | int, ...]]:
    left = parity(target.top) - sum(not is_complete(m) for m in members(target.top))
    works = target.vdev.state not in FAILED
    errors = target.vdev.errors.total if works else 0
    return (left, works, -errors, _numbered(_spot(view, target)))


def _spot(view: MachineView, target: Target) -> str:
    """Where the disk of a device sits; where that is unknown, its name."""
    return disk_of_leaf(view.situation, target.vdev, target.key).spot


def _numbered(text: str) -> tuple[str | int, ...]:
    """A text to sort by, its numbers as such: Slot 9 before Slot 10."""
    parts = re.split(r"([0-9]+)", text)
    return tuple(int(part) if n % 2 else part for n, part in enumerate(parts))


def _rank(order: SwapOrder) -> tuple[bool, bool, int, float]:
    return (bool(order.refused), order.doubtful, -order.least, order.seconds or float("inf"))


def _in_turn(
    view: MachineView, targets: Sequence[Target], seconds: Mapping[str, float | None]
) -> SwapOrder:
    times = [seconds.get(target.key) for target in targets]
    total = sum(t for t in times if t is not None) if None not in times else None
    least = min((max(0, left_without(target)) for target in targets), default=0)
    names = ", then ".join(_spot(view, target) for target in targets)
    return SwapOrder(
        False,
        tuple(target.key for target in targets),
        total,
        least,
        (
            f"one after the other: {names}",
            f"{counted(len(targets), 'resilver')}, {duration(total, 'of unknown duration')} in all",
            f"meanwhile, {may_fail(least)} in the weakest vdev; begin each"
            " only when the resilver before it is done",
        ),
    )


def _together(
    view: MachineView, targets: Sequence[Target], seconds: Mapping[str, float | None]
) -> SwapOrder:
    """All new disks filled by one resilver while the old ones stay in (``plan_batch``)."""
    wanting = [target for target in targets if not is_being_replaced(target)]
    times = [seconds.get(target.key) for target in targets]
    longest = max((t for t in times if t is not None), default=None)
    least = min((_left_now(target) for target in targets), default=0)
    cabled = [target.name for target in wanting if cause_of(view, target) == "cable"]
    missing = len(wanting) - len(assigned(view, wanting))
    return SwapOrder(
        True,
        tuple(target.key for target in targets),
        longest,
        least,
        (
            *_cable_doubt(cabled),
            f"together: replace all {len(wanting)} at once, pull the old disks afterwards",
            _one_resilver(view.situation, duration(longest, "of unknown duration")),
            f"old disks that still read count until then: {may_fail(least)} in the weakest vdev",
        ),
        refused=f"{counted(missing, 'more free disk')} needed in the machine"
        if missing > 0
        else "",
        doubtful=bool(cabled),
    )


def _cable_doubt(cabled: Sequence[str]) -> tuple[str, ...]:
    """That a new disk is no help to devices whose cable is the likely cause."""
    if not cabled:
        return ()
    return (
        f"not advised: {', '.join(cabled)}: {SUSPECTS['cable']}. A new disk there gets the same"
        " errors: check cables and ports first, and clear the errors",
    )


def _one_resilver(situation: Situation, time: str) -> str:
    """How one resilver comes to fill all new disks in this release, and how long that takes."""
    runs = situation.active("resilver")
    if runs is not None:
        return _after(situation, runs, time)
    facts = situation.facts
    waits = will_defer(facts, 0.0)
    percent = facts.parameters.get("zfs_resilver_defer_percent")
    if waits is None:
        how = "if this release makes devices wait, the plan restarts the resilver once for all"
    elif waits:
        how = "all but the first wait: the plan restarts the resilver once for all"
    elif facts.has("resilver_defer") and percent and not _never_waits(facts):
        how = f"until {percent} % are done, the resilver restarts for each new disk: little is lost"
    else:
        how = "this release lets no device wait: the resilver restarts for each new disk"
    return f"one resilver, {time}; {how}"


def _never_waits(facts: Facts) -> bool:
    return bool(facts.parameters.get("zfs_resilver_disable_defer"))


def _after(situation: Situation, runs: Scan, time: str) -> str:
    """The same where a resilver runs already."""
    waits = will_defer(situation.facts, runs.percent)
    if waits is None:
        return (
            f"one resilver, {time}; the running one ({progress(runs)}) restarts for all, or ends"
            " first: what decides this is unknown"
        )
    if not waits or (runs.percent or 0.0) <= LITTLE:
        return f"one resilver, {time}; the running one restarts from 0 ({progress(runs)} lost)"
    return (
        f"the new disks wait for the running resilver ({progress(runs)}), then one fills them all:"
        f" {time} beyond the rest of the running one"
    )


def assigned(view: MachineView, targets: Sequence[Target]) -> dict[str, str]:
    """A free disk for as many of the places as can have one: leaf key to the disk's path."""
    fits = {target.key: _fitting(view, target) for target in targets}
    taken: dict[str, str] = {}
    for key in fits:
        _give(key, fits, taken, set())
    given = {key: path for path, key in taken.items()}
    return {key: given[key] for key in fits if key in given}


def _give(
    key: str, fits: Mapping[str, Sequence[str]], taken: dict[str, str], tried: set[str]
) -> bool:
    """Give a place a disk; a place that has it already moves to another one that fits it."""
    for path in fits[key]:
        if path in tried:
            continue
        tried.add(path)
        if path not in taken or _give(taken[path], fits, taken, tried):
            taken[path] = key
            return True
    return False


def _fitting(view: MachineView, target: Target) -> tuple[str, ...]:
    """The free disks that fit in a place, the best first."""
    situation = view.situation
    if partition_of(target) is not None:
        return ()  # a new disk has to be partitioned first
    spare = spares(situation.pool)
    free = (swap.device for swap in ranked(situation.pool, target, situation.facts) if swap.usable)
    return tuple(d.path for d in free if d.kind == "disk" and d.path not in spare)


def _left_now(target: Target) -> int:
    own = target.vdev.state in FAILED
    return max(0, parity(target.top) - len(others_missing(target)) - own)


TOGETHER = "replaced together with others, by one resilver"


def begin_replaced(
    view: MachineView,
    swaps: Sequence[Swap],
    events: Sequence[ExecutionEvent],
    store: SwapStore,
    now: float,
) -> tuple[Checklist, ...]:
    """Begin a checklist for each replace of a batch that was carried out.

    ``view`` is how the machine was before. Raises StateError where the store doesn't answer.
    """
    return tuple(
        _begun(choice, _disk(view, pair.new), view, store, now, command)
        for pair, command in _carried_out(swaps, events)
        if (choice := choose(view, pair.old)) is not None and choice.refusal is None
    )


def begin_adopted(
    view: MachineView, keys: Sequence[str], store: SwapStore, now: float
) -> tuple[Checklist, ...]:
    """Begin a checklist for each of these devices, whose replace runs already."""
    found: list[Checklist] = []
    for key in keys:
        choice = choose(view, key)
        way = choice.way if choice is not None else None
        if choice is None or way is None or way.new is None:
            continue
        guide = started(choice, way, view, store, now)
        if guide.checklist.begun == now:
            guide.note(now, "replace", f"started elsewhere: {way.new.words} takes the place")
        found.append(guide.checklist)
    return tuple(found)


def _carried_out(
    swaps: Sequence[Swap], events: Sequence[ExecutionEvent]
) -> Iterator[tuple[Swap, str]]:
    """The replaces that ended well, each with its command; the last one begun may have failed."""
    begun = [event.text for event in events if event.kind == "begun"]
    failed = any(event.kind == "failed" for event in events)
    yield from zip(swaps, begun[: len(begun) - failed], strict=False)


def _begun(
    choice: SwapChoice,
    new: SwapDisk,
    view: MachineView,
    store: SwapStore,
    now: float,
    command: str,
) -> Checklist:
    guide = started(choice, SwapWay(REPLACE_FIRST, TOGETHER, new), view, store, now)
    guide.note(now, "replace", f"{new.words} takes the place, {TOGETHER}", command, "started")
    return guide.checklist


def _disk(view: MachineView, path: str) -> SwapDisk:
    device = view.situation.facts.device(path)
    return SwapDisk(path, whole=path) if device is None else disk_of(device)
