"""Several disks to swap: in which order, what each order costs, and beginning the checklists."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import Situation
from zconsole.actions.running_scans import (
    LITTLE,
    after_running,
    discarded,
    progress,
    will_defer,
)
from zconsole.actions.target import Swap, Target, others_missing
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.pool.model import FAILED
from zconsole.pool.redundancy import is_complete, may_fail, members, parity
from zconsole.swap.choice import SwapChoice, SwapWay, cause_of, choose, free_disks
from zconsole.swap.disk import (
    OPEN,
    REPLACE_FIRST,
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
    """Description of the order and its cost in time and redundancy."""
    refused: str = ""
    doubtful: bool = False
    """Whether some devices may need no new disk because their cable is the likely cause."""


def urgent_first(view: MachineView, targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the devices in the order in which to swap them.

    Devices of the vdev with the least redundancy come first; within a vdev failed devices by bay,
    then the others by number of errors.
    """

    def _urgency(target: Target) -> tuple[int, bool, int, tuple[str | int, ...]]:
        left = parity(target.top) - sum(not is_complete(m) for m in members(target.top))
        works = target.vdev.state not in FAILED
        errors = target.vdev.errors.total if works else 0
        # Compare digits as numbers, so that Slot 9 comes before Slot 10.
        parts = re.split(r"([0-9]+)", view.disk(target).spot)
        place = tuple(int(part) if n % 2 else part for n, part in enumerate(parts))
        return (left, works, -errors, place)

    return tuple(sorted(targets, key=_urgency))


def in_turn(
    view: MachineView, targets: Sequence[Target], estimates: Mapping[str, Estimate | None]
) -> SwapOrder:
    """Describe swapping one disk after the other, in this order."""
    situation = view.situation
    # What the running resilver fills needs none of its own.
    own = [t for t in targets if not (situation.repairing and is_being_replaced(t))]
    times = _seconds(own, estimates)
    # One unknown duration makes the total unknown.
    total = sum(times) if len(times) == len(own) else None
    least = max(0, min(map(left_without, targets), default=0))
    names = ", then ".join(view.disk(target).spot for target in targets)
    resilvers = f"{after_running(situation)}{counted(len(own), 'resilver')}"
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
    """Describe filling all new disks by one resilver, the old ones still in (``plan_batch``)."""
    wanting = [target for target in targets if not is_being_replaced(target)]
    longest = max(_seconds(targets, estimates), default=None)
    # An old disk that still reads counts until then.
    left = (parity(t.top) - len(others_missing(t)) - (t.vdev.state in FAILED) for t in targets)
    least = max(0, min(left, default=0))
    text = [
        f"all at once: replace all {len(wanting)}, pull the old disks afterwards",
        _one_resilver(view.situation, duration(longest, "of unknown duration")),
        *discarded(view.situation),
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
    """Return the known resilver durations of these devices, in seconds."""
    found = (estimates.get(target.key) for target in targets)
    return [each.eta for each in found if each is not None and each.eta is not None]


def _one_resilver(situation: Situation, time: str) -> str:
    """Describe how one resilver, which takes ``time``, fills all new disks; and a running one."""
    runs = situation.active("resilver")
    if runs is None:
        how = "it starts again as each new disk joins in its first seconds; little is lost"
        return f"one resilver fills them all, {time}; {how}"
    waits = will_defer(situation.facts, runs.percent)
    if waits and (runs.percent or 0.0) > LITTLE:
        left = "" if situation.left is None else f" (about {duration(situation.left)})"
        return (
            f"the new disks wait for the running resilver ({progress(runs)}), then one fills them"
            f" all: {time} beyond the rest of the running one{left}"
        )
    # The plan restarts a resilver that the new disks wait for while little of it is done.
    how = f"the running one restarts from 0 ({progress(runs)} lost)"
    if waits is None:
        how = (
            f"the running one ({progress(runs)}) restarts for all, or ends first: what decides this"
            " is unknown"
        )
    return f"one resilver fills them all, {time}; {how}"


def assigned(view: MachineView, targets: Sequence[Target]) -> dict[str, str]:
    """Assign free disks to as many places as possible: a dict of leaf key to disk path."""
    fits = {target.key: [device.path for device in free_disks(view, target)] for target in targets}
    taken: dict[str, str] = {}

    def _give(key: str, tried: set[str]) -> bool:
        """Return whether a place gets a disk, others moving to another one that fits if needed.

        One augmenting step of bipartite matching (Kuhn's algorithm); ``tried`` holds the paths
        that were visited in this step.
        """
        for path in fits[key]:
            if path in tried:
                continue
            tried.add(path)
            if path not in taken or _give(taken[path], tried):
                taken[path] = key
                return True
        return False

    for key in fits:
        _give(key, set())
    given = {key: path for path, key in taken.items()}
    return {key: given[key] for key in fits if key in given}


def started(
    choice: SwapChoice,
    way: SwapWay,
    store: SwapStore,
    now: float,
    estimate: Estimate | None = None,
) -> Guide:
    """Begin the checklist of a confirmed swap, or continue one that is open for this disk.

    ``estimate``: the predicted duration of its resilver, as shown to the operator.
    """
    swap = choice.checklist(way)
    for known in store.read():
        here = known.pool == swap.pool
        if known.guid and swap.guid:
            here = known.guid == swap.guid
        if known.state == OPEN and here and known.old.key == swap.old.key:
            return Guide(known, store)
    swap = replace(swap, id=secrets.token_hex(4), begun=now)
    if estimate is not None and estimate.eta is not None:
        swap = replace(swap, predicted=estimate.eta, basis=estimate.reason)
    begun = f"begun with {swap.old.words}: {WAYS[way.mode].title}"
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

    ``view`` is the machine before the batch. Raises StateError if the store does not answer.
    """
    commands = [event.text for event in events if event.kind == "begun"]
    if any(event.kind == "failed" for event in events):
        commands = commands[:-1]  # a batch stops at the first failure, so the last command failed
    found: list[Checklist] = []
    # The commands ran in the order of the swaps; a batch that stopped has fewer of them.
    for pair, command in zip(swaps, commands, strict=False):
        choice, device = choose(view, pair.old), view.situation.facts.disk(pair.new)
        if choice is None or choice.refusal is not None:
            continue
        new = SwapDisk(pair.new, whole=pair.new) if device is None else disk_of(device)
        guide = started(choice, SwapWay(REPLACE_FIRST, TOGETHER, new), store, now)
        guide.note(now, "replace", f"{new.words} takes the place, {TOGETHER}", command, "started")
        found.append(guide.checklist)
    return tuple(found)


def begin_adopted(
    view: MachineView, keys: Sequence[str], store: SwapStore, now: float
) -> tuple[Checklist, ...]:
    """Begin a checklist for each of these devices, whose replace is already running."""
    found: list[Checklist] = []
    for key in keys:
        choice = choose(view, key)
        way = choice.way if choice is not None else None
        if choice is None or way is None or way.new is None:
            continue
        guide = started(choice, way, store, now)
        if guide.checklist.begun == now:
            guide.note(now, "replace", f"started elsewhere: {way.new.words} takes the place")
        found.append(guide.checklist)
    return tuple(found)
