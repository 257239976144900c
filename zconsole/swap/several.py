"""Several disks to swap: in which order, what each choice costs, and how checklists begin."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import Situation
from zconsole.actions.replace import LITTLE
from zconsole.actions.running_scans import progress, will_defer
from zconsole.actions.target import Swap, Target, members, others_missing
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.pool.model import Scan
from zconsole.pool.redundancy import is_complete, may_fail, parity
from zconsole.pool.topology import FAILED
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import PastRate, member_duration, paces
from zconsole.swap.choice import SwapChoice, SwapWay, around, cause_of, choose, free_disks
from zconsole.swap.disk import (
    OPEN,
    REPLACE_FIRST,
    SPARE_FIRST,
    Checklist,
    MachineView,
    SwapDisk,
    disk_of,
    is_being_replaced,
)
from zconsole.swap.effects import left_without
from zconsole.swap.steps import WAYS
from zconsole.swap.store import Guide, SwapStore
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import counted, duration


@dataclass(frozen=True, slots=True)
class SwapOrder:
    """One way to swap several disks."""

    text: tuple[str, ...]
    """How it goes, and what it costs in time and redundancy."""
    refused: str = ""
    doubtful: bool = False
    """Whether some may need no new disk: their cable is the likely cause."""


def estimated(
    view: MachineView,
    targets: Iterable[Target],
    reports: Sequence[ScanReport] = (),
    others: Iterable[PastRate] = (),
) -> Mapping[str, Estimate | None]:
    """How long a resilver of each device would take, and what that is based on: scans of the pool.

    Those that the pool and the reports tell count; where there is none, ``others``: those that
    run, and those that a later one took the place of.
    """
    alike = sorted(others, key=lambda pace: (-pace.closeness, -pace.t))
    known = paces(view.pool.root, view.pool.scans, reports) or tuple(alike)
    return {target.key: member_duration(target.top, known) for target in targets}


def urgent_first(view: MachineView, targets: Iterable[Target]) -> tuple[Target, ...]:
    """The devices in the order in which to swap them.

    First where the vdev has the least redundancy; there the failed ones, by bay, then those with
    the most errors.
    """

    def _urgency(target: Target) -> tuple[int, bool, int, tuple[str | int, ...]]:
        left = parity(target.top) - sum(not is_complete(m) for m in members(target.top))
        works = target.vdev.state not in FAILED
        errors = target.vdev.errors.total if works else 0
        # Numbers count as such: Slot 9 before Slot 10.
        parts = re.split(r"([0-9]+)", view.disk(target).spot)
        place = tuple(int(part) if n % 2 else part for n, part in enumerate(parts))
        return (left, works, -errors, place)

    return tuple(sorted(targets, key=_urgency))


def in_turn(
    view: MachineView, targets: Sequence[Target], estimates: Mapping[str, Estimate | None]
) -> SwapOrder:
    """One disk after the other, in this order."""
    times = _seconds(targets, estimates)
    total = sum(times) if len(times) == len(targets) else None
    least = min((max(0, left_without(target)) for target in targets), default=0)
    names = ", then ".join(view.disk(target).spot for target in targets)
    resilvers = counted(len(targets), "resilver")
    return SwapOrder(
        (
            f"one after the other: {names}",
            f"{resilvers}, {duration(total, 'of unknown duration')} in all",
            f"meanwhile, {may_fail(least)} in the weakest vdev; begin each"
            " only when the resilver before it is done",
        )
    )


def together(
    view: MachineView, targets: Sequence[Target], estimates: Mapping[str, Estimate | None]
) -> SwapOrder:
    """All new disks filled by one resilver while the old ones stay in (``plan_batch``)."""
    wanting = [target for target in targets if not is_being_replaced(target)]
    longest = max(_seconds(targets, estimates), default=None)
    least = min(map(_left_now, targets), default=0)
    text = [
        f"together: replace all {len(wanting)} at once, pull the old disks afterwards",
        _one_resilver(view.situation, duration(longest, "of unknown duration")),
        f"old disks that still read count until then: {may_fail(least)} in the weakest vdev",
    ]
    if cabled := [target.name for target in wanting if cause_of(view, target) == "cable"]:
        # A new disk is no help to devices whose cable is the likely cause.
        doubt = f"not advised: {', '.join(cabled)}: {SUSPECTS['cable']}. A new disk there gets the"
        text.insert(0, f"{doubt} same errors: check cables and ports first, and clear the errors")
    missing = len(wanting) - len(assigned(view, wanting))
    needed = f"{counted(missing, 'more free disk')} needed in the machine" if missing > 0 else ""
    return SwapOrder(tuple(text), needed, doubtful=bool(cabled))


def _seconds(targets: Iterable[Target], estimates: Mapping[str, Estimate | None]) -> list[float]:
    """How long the resilvers of these devices take, as far as that is known."""
    found = (estimates.get(target.key) for target in targets)
    return [each.eta for each in found if each is not None and each.eta is not None]


def _left_now(target: Target) -> int:
    """How many more devices the vdev may lose while the old disk stays in."""
    own = target.vdev.state in FAILED
    return max(0, parity(target.top) - len(others_missing(target)) - own)


def _one_resilver(situation: Situation, time: str) -> str:
    """How one resilver comes to fill all new disks in this release, and how long that takes."""
    runs = situation.active("resilver")
    if runs is not None:
        return _after(situation, runs, time)
    facts = situation.facts
    waits = will_defer(facts, 0.0)
    percent = facts.parameters.get("zfs_resilver_defer_percent")
    never = facts.parameters.get("zfs_resilver_disable_defer")
    if waits is None:
        how = "if this release makes devices wait, the plan restarts the resilver once for all"
    elif waits:
        how = "all but the first wait: the plan restarts the resilver once for all"
    elif facts.has("resilver_defer") and percent and not never:
        how = f"until {percent} % are done, the resilver restarts for each new disk: little is lost"
    else:
        how = "this release lets no device wait: the resilver restarts for each new disk"
    return f"one resilver, {time}; {how}"


def _after(situation: Situation, runs: Scan, time: str) -> str:
    """How one resilver comes to fill all new disks where another one runs already."""
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
    fits = {target.key: [device.path for device in free_disks(view, target)] for target in targets}
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


def started(
    choice: SwapChoice,
    way: SwapWay,
    view: MachineView,
    store: SwapStore,
    now: float,
    estimate: Estimate | None = None,
) -> Guide:
    """The guide of a swap that was confirmed now; of the one that is open for this disk already.

    ``estimate``: how long its resilver was said to take.
    """
    for known in store.read():
        here = known.pool == choice.old.pool
        if known.guid and choice.guid:
            here = known.guid == choice.guid
        if known.state == OPEN and here and known.old.key == choice.old.key:
            return Guide(known, store)
    old = choice.old
    elsewhere = [(each.pool, each.target) for each in choice.effects if each.pool != old.pool]
    swap = Checklist(
        secrets.token_hex(4),
        old.pool,
        choice.guid,
        now,
        old,
        choice.vdev,
        way.mode,
        why=choice.found,
        predicted=None if estimate is None else estimate.eta,
        basis="" if estimate is None or estimate.eta is None else estimate.reason,
        new=way.new if way.mode == REPLACE_FIRST else None,
        spare=way.new if way.mode == SPARE_FIRST else None,
        spared=choice.spared or way.mode == SPARE_FIRST,
        along=choice.along,
        beside=tuple(
            replace(old, name=leaf.vdev.name, key=leaf.key, pool=pool, path="")
            for pool, leaf in elsewhere
        ),
        was_gone=choice.gone,
        around=around(view, old),
        boot=view.boot,
    )
    begun = f"begun with {old.words}: {WAYS[way.mode].title}"
    guide = Guide(swap.noting(now, "explain", begun), store)
    guide.save()
    return guide


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
    commands = [event.text for event in events if event.kind == "begun"]
    if any(event.kind == "failed" for event in events):
        commands = commands[:-1]  # it was the last one
    found: list[Checklist] = []
    for pair, command in zip(swaps, commands, strict=False):
        choice, device = choose(view, pair.old), view.situation.facts.disk(pair.new)
        if choice is None or choice.refusal is not None:
            continue
        new = SwapDisk(pair.new, whole=pair.new) if device is None else disk_of(device)
        guide = started(choice, SwapWay(REPLACE_FIRST, TOGETHER, new), view, store, now)
        guide.note(now, "replace", f"{new.words} takes the place, {TOGETHER}", command, "started")
        found.append(guide.checklist)
    return tuple(found)


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
