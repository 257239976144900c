"""Before the swap: what failed and why it is thought so, and the ways in which it can be done."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from zconsole.actions.candidates import ranked, spares, unfit_spare
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, find, stands_in
from zconsole.diagnosis.device_errors.faults import (
    SUSPECTS,
    Deltas,
    DeviceFault,
    ProbeResults,
    judge,
)
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import may_fail
from zconsole.pool.topology import FAILED
from zconsole.swap.checklist import (
    PULL_FIRST,
    REPLACE_FIRST,
    SPARE_FIRST,
    WAYS,
    Checklist,
    needed_steps,
    sentence,
)
from zconsole.swap.disk import MachineView, SwapDisk, device_of, disk_of, disk_of_leaf, leaves_of
from zconsole.swap.effects import (
    Effect,
    effects,
    hindrance,
    kept_words,
    marked,
    redundancy_words,
    untouchable,
)
from zconsole.swap.refusal import Refusal, partition_of, refusal, suspension
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import duration

KERNEL_LINES = 2
"""Newest lines of the kernel's log that are shown as a reason."""


@dataclass(frozen=True, slots=True)
class SwapWay:
    """One way to do the swap."""

    mode: str
    why: str
    """Why it can be done so, or what it costs."""
    new: SwapDisk | None = None
    """The disk or hot spare it uses; None: the one that will be inserted."""
    refused: str = ""
    begun: bool = False
    """Whether its resilver runs already …"""
    left: float | None = None
    """… and the seconds left of that, by its own ETA; None where unknown."""


@dataclass(frozen=True, slots=True)
class SwapChoice:
    """Everything to know before a swap begins."""

    old: SwapDisk
    vdev: str
    guid: str | None
    found: tuple[str, ...]
    """What failed and why it is thought so, the device's state first."""
    cause: str
    """cable, disk or unclear."""
    redundancy: tuple[str, ...]
    untouchable: tuple[SwapDisk, ...]
    """Disks that must stay where they are: without them, too, data is lost."""
    effects: tuple[Effect, ...]
    """What the pull does to each pool on the disk, this pool first."""
    ways: tuple[SwapWay, ...] = ()
    """The best first; those that are refused last."""
    gone: bool = False
    """Whether the machine has lost the disk already."""
    refusal: Refusal | None = None
    failed: bool = True
    """Whether it is out, or gives no data any more; else it only has errors, or none."""
    faulty: bool = True
    """Whether the device failed, or has errors."""
    spared: bool = False
    """Whether a hot spare stands in for it already."""
    advice: str = ""
    """What to do before any swap: check the cable, where that is the likely cause; else empty."""

    @property
    def along(self) -> bool:
        """Whether other devices of pools are on the disk, and go with it."""
        return any((e.pool, e.key) != (self.old.pool, self.old.key) for e in self.effects)

    def steps(self, way: SwapWay) -> tuple[str, ...]:
        """The steps of a way that this machine needs, as its checklist lists them."""
        spared = self.spared or way.mode == SPARE_FIRST
        return needed_steps(way.mode, bool(self.old.light), spared, self.along)

    def with_left(self, left: float | None) -> SwapChoice:
        """The same where the ETA of the resilver that runs is known: ``left`` seconds."""
        ways = (replace(way, left=left) if way.begun else way for way in self.ways)
        return replace(self, ways=tuple(ways))

    @property
    def way(self) -> SwapWay | None:
        """The way that is recommended; None when there is none now."""
        return next((way for way in self.ways if not way.refused), None)

    @property
    def refused(self) -> str:
        """Why no swap can begin now; empty when one can."""
        if self.refusal is not None:
            return self.refusal.why
        return "" if self.way else "; ".join(way.refused for way in self.ways)


def choose(view: MachineView, key: str) -> SwapChoice | None:
    """What is known of a swap of this leaf; None when it is not in the pool."""
    view = marked(view)
    situation = view.situation
    target = find(situation.pool, key)
    if target is None:
        return None
    old = disk_of_leaf(situation, target.vdev, key)
    fault = next((f for f in view.faults if f.key == key), None)
    refused = suspension(view) or refusal(situation, target, old)
    lost = effects(view, old)
    gone = bool(view.devices) and device_of(old, view.devices) is None
    failed = gone or target.vdev.state in FAILED
    ways = () if refused else tuple(sorted(_ways(view, target, old, lost), key=_last_if_refused))
    return SwapChoice(
        old,
        target.top.name,
        situation.pool.guid or situation.facts.properties.get("guid"),
        tuple(_found(view, target.vdev, old, fault, gone)),
        cause_of(view, target),
        redundancy_words(situation),
        untouchable(situation, old),
        lost,
        ways,
        gone,
        refused,
        failed=failed,
        faulty=failed or fault is not None or target.vdev.errors.total > 0,
        spared=bool(target.spares),
        advice=cable_advice(view, target),
    )


def begin(choice: SwapChoice, way: SwapWay, view: MachineView, name: str, now: float) -> Checklist:
    """The checklist of a swap that was confirmed; ``name`` is its id."""
    swap = Checklist(
        name,
        choice.old.pool,
        choice.guid,
        now,
        choice.old,
        choice.vdev,
        way.mode,
        why=choice.found,
        new=way.new if way.mode == REPLACE_FIRST else None,
        spare=way.new if way.mode == SPARE_FIRST else None,
        spared=choice.spared or way.mode == SPARE_FIRST,
        along=choice.along,
        beside=tuple(
            replace(choice.old, name=effect.name, key=effect.key, pool=effect.pool, path="")
            for effect in choice.effects
            if effect.pool != choice.old.pool
        ),
        was_gone=choice.gone,
        around=around(view, choice.old),
        boot=view.boot,
    )
    return swap.noting(now, "explain", f"begun with {choice.old.words}: {WAYS[way.mode]}")


def around(view: MachineView, old: SwapDisk) -> tuple[SwapDisk, ...]:
    """Every other disk that is on the machine: once for each leaf on it, or as it is."""
    leaves = (
        disk_of_leaf(situation, leaf, key)
        for situation in view.situations
        for key, leaf in leaves_of(situation.pool)
    )
    used = [disk for disk in leaves if device_of(disk, view.devices) is not None]
    wholes = {disk.whole for disk in used}
    unused = [disk_of(d) for d in view.devices if d.kind == "disk" and d.path not in wholes]
    return tuple(disk for disk in (*used, *unused) if disk.whole != old.whole)


def _last_if_refused(way: SwapWay) -> bool:
    return bool(way.refused)


def _found(
    view: MachineView, leaf: Vdev, old: SwapDisk, fault: DeviceFault | None, gone: bool
) -> Iterator[str]:
    """What speaks for a failure, and what for its cause."""
    note = f" ({leaf.note})" if leaf.note else ""
    yield f"{leaf.name} is {leaf.state}{note}"
    if gone:
        yield "the machine no longer has the disk: it is out, without power, or its link is down"
    counts = (
        (leaf.errors.read, "read"),
        (leaf.errors.write, "write"),
        (leaf.errors.cksum, "checksum"),
    )
    if said := ", ".join(f"{count} {word}" for count, word in counts if count):
        yield f"{said} errors since the last clear"
    if fault is not None:
        yield fault.text or SUSPECTS[fault.cause]
        yield from (fault.signs.kernel[-KERNEL_LINES:] if fault.signs else ())
    device = device_of(old, view.devices)
    smart = view.smart.get(device.path) if device else None
    if smart is not None:
        yield f"SMART: {smart.words()}"
    if fault is not None and fault.cause == "cable":
        yield "before buying a disk: reseat the disk and its cable; the checklist takes it back"


def _ways(
    view: MachineView, target: Target, old: SwapDisk, lost: tuple[Effect, ...]
) -> Iterator[SwapWay]:
    group = target.group
    if group is not None and group.kind == "replacing":
        yield _adopted(view, target)
        return
    yield from _with_free_disk(view, target, old)
    yield from _with_spare(view, target)
    yield _by_pulling(view.situation, target, lost)


def _adopted(view: MachineView, target: Target) -> SwapWay:
    """A replace that somebody else, or ZED, has begun."""
    group = target.group
    leaf = group.children[-1] if group else target.vdev
    key = next((k for k, each in leaves_of(view.situation.pool) if each is leaf), "")
    new = disk_of_leaf(view.situation, leaf, key)
    why = f"its replacement by {new.words} has begun already: the checklist goes on from there"
    return SwapWay(REPLACE_FIRST, why, new, begun=leaf.resilvering)


def _with_free_disk(view: MachineView, target: Target, old: SwapDisk) -> Iterator[SwapWay]:
    if partition_of(target) is not None:
        return  # a new disk has to be partitioned first
    situation = view.situation
    free = spares(situation.pool)
    for candidate in ranked(situation.pool, target, situation.facts):
        device = candidate.device
        if old.is_on(device):
            continue
        if candidate.usable and device.kind == "disk" and device.path not in free:
            new = disk_of(device)
            why = (
                f"{new.words} is free: replace with it now, and pull {target.vdev.name} once the"
                f" resilver is done. {kept_words(situation, target)}"
            )
            yield SwapWay(REPLACE_FIRST, why, new)
            return


def _with_spare(view: MachineView, target: Target) -> Iterator[SwapWay]:
    if target.group is not None:
        return
    situation = view.situation
    for path, spare in spares(situation.pool).items():
        if unfit_spare(spare, target) is None:
            key = next((k for k, each in leaves_of(situation.pool) if each is spare), "")
            new = disk_of_leaf(situation, spare, key)
            why = (
                f"hot spare {new.words} stands in first; it returns once the new disk is filled."
                f" {kept_words(situation, target)}. It takes two resilvers"
            )
            yield SwapWay(SPARE_FIRST, why, replace(new, whole=path))
            return


def _by_pulling(situation: Situation, target: Target, lost: tuple[Effect, ...]) -> SwapWay:
    """Pull first: allowed where the disk is out already, or every pool on it can do without it."""
    reads = target.vdev.state not in FAILED
    if target.group is not None and stands_in(target):
        names = ", ".join(x.name for x in target.spares)
        return SwapWay(PULL_FIRST, f"{names} stands in for it: pull it, and insert a new one")
    refused = _cannot_pull(situation, target, lost, reads)
    left = max(0, min(e.left for e in lost if e.vdev == target.top.name))
    why = (
        f"no other disk is needed: take it offline, pull it, insert a new one. Until the resilver"
        f" is done, {may_fail(left)} in {target.top.name}"
    )
    if not reads:
        why = "it is not read any more: pull it, and insert a new one"
    return SwapWay(PULL_FIRST, why, refused=refused)


def _cannot_pull(
    situation: Situation, target: Target, lost: tuple[Effect, ...], reads: bool
) -> str:
    along = [e.key for e in lost if e.pool == situation.pool.name]
    if reads and (why := hindrance(situation, target, along)):
        return f"{why}: wait for that resilver, or replace that device first"
    # What the disk no longer gives can't be lost by pulling it; another pool on it may still read.
    bad = [e for e in lost if e.left < 0 and (reads or e.key != target.key)]
    return "; ".join(effect.text for effect in bad)


def cause_of(view: MachineView, target: Target) -> str:
    """cable, disk or unclear: as judged while it was watched, else by what is counted.

    What a device that failed counted by then may be of either; what SMART counts speaks for it,
    also where watching left the cause unclear.
    """
    fault = next((f for f in view.faults if f.key == target.key), None)
    if fault is not None and fault.cause != "unclear":
        return fault.cause
    errors, failed = target.vdev.errors, target.vdev.state in FAILED
    if fault is None and not errors.total and not failed:
        return "unclear"
    device = view.situation.facts.device(target.vdev.path or "")
    signs = ProbeResults(view.smart.get(device.path) if device else None)
    counted = Deltas(errors.read or 0, errors.write or 0, errors.cksum or 0)
    return judge(Deltas() if failed else counted, signs=signs)[0]


def cable_advice(view: MachineView, target: Target) -> str:
    """What to do before the disk is replaced; empty unless its cable is the likely cause."""
    if cause_of(view, target) != "cable":
        return ""
    name = target.argument if target.vdev.state in FAILED else target.name
    clear = shlex.join(("zpool", "clear", view.situation.pool.name, name))
    return (
        f"{SUSPECTS['cable']}: check the cable and port, then clear the errors ({clear});"
        " replace it if they come back"
    )


FIRST_HEADING = "First"
FAILED_HEADING, WRONG_HEADING = "What failed", "What is wrong"
WAYS_HEADING = "Ways"


class ExplainedPart(NamedTuple):
    """A heading and its lines."""

    heading: str
    lines: tuple[str, ...]


def explained(choice: SwapChoice) -> tuple[ExplainedPart, ...]:
    """Everything to know, the danger before the ways; parts without lines are left out."""
    if choice.refusal is not None and choice.refusal.title:  # all else comes after it
        return (ExplainedPart("Not guided", (choice.refusal.title, *_by_hand(choice))),)
    parts = (
        ExplainedPart(FIRST_HEADING, (sentence(choice.advice),) if choice.advice else ()),
        ExplainedPart(f"Swap {choice.old.words}", tuple(_disk(choice))),
        ExplainedPart(_wrong(choice), (*choice.found, *_judged(choice))),
        ExplainedPart("Redundancy now", choice.redundancy),
        ExplainedPart("What a pull does now", tuple(_pulling(choice))),
        ExplainedPart("Must stay", tuple(_must_stay(choice))),
        ExplainedPart(WAYS_HEADING, tuple(way_text(way) for way in choice.ways)),
        ExplainedPart("Not guided", tuple(_by_hand(choice))),
    )
    return tuple(part for part in parts if part.lines)


def way_text(way: SwapWay) -> str:
    """A way in one line: what it is called, and why it is or isn't possible."""
    if way.refused:
        return f"{WAYS[way.mode]}: not now: {way.refused}"
    return f"{WAYS[way.mode]}: {way.why}"


def time_words(way: SwapWay, estimate: Estimate | None) -> str:
    """How long the resilvers of a way take, and what that is based on; what is left of one."""
    if way.left is not None:
        return f"Time: {duration(way.left)} left of the resilver that runs"
    times = 2 if way.mode == SPARE_FIRST else 1
    runs = "two resilvers" if times > 1 else "one resilver"
    if estimate is None or estimate.eta is None:
        return f"Time: {runs} of unknown duration: no completed scan recorded"
    each = " each" if times > 1 else " in all, and it runs already" if way.begun else ""
    return f"Time: {runs}, about {duration(estimate.eta)}{each}: {estimate.reason}"


def _pulling(choice: SwapChoice) -> Iterator[str]:
    """What it does to each pool on the disk, and which of them this swap doesn't restore."""
    yield from (effect.text for effect in choice.effects)
    for pool in dict.fromkeys(e.pool for e in choice.effects if e.pool != choice.old.pool):
        yield f"{pool} needs a swap of its own afterwards; it is offered at the end of this one"


def _wrong(choice: SwapChoice) -> str:
    """The heading over what speaks for a swap: of a device that still works nothing failed."""
    if choice.failed:
        return FAILED_HEADING
    return WRONG_HEADING if choice.faulty else "State"


def _judged(choice: SwapChoice) -> Iterator[str]:
    """The likely cause; of a device that shows nothing wrong there is none."""
    if choice.faulty:
        yield f"Judged: {SUSPECTS[choice.cause]}"


def _disk(choice: SwapChoice) -> Iterator[str]:
    old = choice.old
    yield f"{old.name} in {choice.vdev} of {old.pool}"
    if old.model:
        yield f"Model {old.model}"
    if not old.place:
        yield "Its bay is unknown: find it by its serial number"
    if not old.mark:
        yield "Its serial number is unknown: a wrong disk in its place isn't noticed"


def _must_stay(choice: SwapChoice) -> Iterator[str]:
    names = ", ".join(disk.words for disk in choice.untouchable)
    if names:
        yield (
            f"With {choice.old.name} out and no new disk filled, pulling any of these loses data:"
            f" {names}"
        )
    yield f"Pull {choice.old.words} only; every other disk stays where it is"


def _by_hand(choice: SwapChoice) -> Iterator[str]:
    if choice.refusal is not None:
        yield choice.refusal.why
        yield from (f"{n}. {line}" for n, line in enumerate(choice.refusal.manual, 1))
    elif choice.way is None:
        yield choice.refused
